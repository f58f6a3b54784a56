//! Collects the descriptions of structs and of the structs that they contain.

use std::any::TypeId;
use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};
use thiserror::Error;

use crate::{FieldMeta, Stats, StructMeta};

/// Why structs cannot be described together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MetaError {
    /// A struct contains itself, possibly through other structs. These are the names along the
    /// cycle, from the struct back to itself.
    #[error("recursive statistics: {}", .0.join(" -> "))]
    Loop(Vec<String>),
    /// Two different structs have the same name, but clients identify structs by name only.
    #[error("two different structs of statistics are named {0}")]
    SameName(String),
    /// Two structs are marked `top`, but clients look for one top-level struct.
    #[error("both {0} and {1} are marked `top`")]
    TwoTops(String, String),
}

/// Descriptions of structs, each once, in the order of registration: a struct is followed by the
/// structs that it contains, unless they were registered before. Serializes as the answer to
/// `stats_meta`.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    metas: Vec<(TypeId, StructMeta)>,
    /// The structs that are being registered, each contained in the struct before it.
    open: Vec<(TypeId, String)>,
    /// Whether a struct has a [`Percent`](crate::Percent). Descriptions do not show this, because a
    /// percentage is described as a float.
    has_percent: bool,
}

impl Registry {
    /// Registers `T` and the structs that it contains, unless they are registered already.
    ///
    /// # Errors
    /// See [`MetaError`]; what was registered up to the error remains.
    pub fn add<T: Stats>(&mut self) -> Result<(), MetaError> {
        let id = TypeId::of::<T>();
        if let Some(start) = self.open.iter().position(|open| open.0 == id) {
            let names = self.open[start..].iter().chain([&self.open[start]]);
            return Err(MetaError::Loop(
                names.map(|(_, name)| name.clone()).collect(),
            ));
        }
        if self.metas.iter().any(|known| known.0 == id) {
            return Ok(());
        }
        let meta = T::meta();
        self.check(&meta)?;
        self.open.push((id, meta.name.clone()));
        self.metas.push((id, meta));
        let result = T::register_fields(self);
        self.open.pop();
        result
    }

    /// Checks that a new struct is compatible with the registered structs.
    fn check(&self, meta: &StructMeta) -> Result<(), MetaError> {
        if self.iter().any(|known| known.name == meta.name) {
            return Err(MetaError::SameName(meta.name.clone()));
        }
        match self.iter().find(|known| known.top && meta.top) {
            Some(top) => Err(MetaError::TwoTops(top.name.clone(), meta.name.clone())),
            None => Ok(()),
        }
    }

    /// Records that a struct has a [`Percent`](crate::Percent).
    pub(crate) fn add_percent(&mut self) {
        self.has_percent = true;
    }

    /// Whether any field depends on the previous snapshot: a counter or a percentage.
    pub(crate) fn has_counters(&self) -> bool {
        let mut fields = self.iter().flat_map(|meta| &meta.fields);
        self.has_percent || fields.any(FieldMeta::is_counter)
    }

    /// The descriptions, in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &StructMeta> {
        self.metas.iter().map(|(_, meta)| meta)
    }
}

impl Serialize for Registry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_name: BTreeMap<_, _> = self.iter().map(|meta| (&meta.name, meta)).collect();
        serializer.collect_map(by_name)
    }
}
