//! The attributes `#[stat(...)]` and `#[serde(...)]`.

use std::collections::BTreeMap;

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Result, Token};

/// The user attribute that marks a counter in the metadata.
const COUNTER: &str = "_counter";

/// Serde's attributes that change neither names nor the shape of the output.
const HARMLESS: [&str; 5] = ["alias", "bound", "crate", "default", "deny_unknown_fields"];

/// Where an attribute is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Struct,
    Field,
}

/// The contents of all `#[stat(...)]` attributes of a struct or of a field.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) top: bool,
    pub(crate) counter: bool,
    pub(crate) desc: Option<String>,
    /// User attributes, whose names begin with `_`.
    pub(crate) user: BTreeMap<String, String>,
}

impl Attributes {
    /// Reads each `#[stat(...)]` of `attributes`, and checks that no `#[serde(...)]` of them can
    /// change names or shapes.
    ///
    /// # Errors
    /// If an attribute is not allowed, such as one that is unknown, in the wrong place, or given
    /// twice.
    pub(crate) fn read(attributes: &[Attribute], place: Place) -> Result<Self> {
        let mut read = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("stat") {
                attribute.parse_nested_meta(|meta| read.add(&meta, place))?;
            } else if attribute.path().is_ident("serde") {
                attribute.parse_nested_meta(|meta| check_serde(&meta))?;
            }
        }
        if read.counter {
            read.user.insert(COUNTER.to_string(), "true".to_string());
        }
        Ok(read)
    }

    fn add(&mut self, meta: &ParseNestedMeta<'_>, place: Place) -> Result<()> {
        let key = meta
            .path
            .get_ident()
            .map(|ident| ident.unraw().to_string())
            .unwrap_or_default();
        match (key.as_str(), place) {
            ("top", Place::Struct) => set_flag(&mut self.top, meta),
            ("counter", Place::Field) => set_flag(&mut self.counter, meta),
            ("desc", _) => {
                let desc = meta.value()?.parse::<LitStr>()?.value();
                if desc.contains('\n') {
                    return Err(meta.error("a description must be one line"));
                }
                match self.desc.replace(desc) {
                    Some(_) => Err(meta.error("`desc` is given twice")),
                    None => Ok(()),
                }
            }
            (COUNTER, _) => Err(meta.error("`_counter` is reserved: use `counter` on a field")),
            _ if key.starts_with('_') => self.add_user(key, meta),
            ("top", _) => Err(meta.error("`top` belongs on the struct")),
            ("counter", _) => Err(meta.error("`counter` belongs on a field")),
            _ => Err(meta.error(match place {
                Place::Struct => "expected `top`, `desc = \"...\"` or a name that begins with `_`",
                Place::Field => {
                    "expected `counter`, `desc = \"...\"` or a name that begins with `_`"
                }
            })),
        }
    }

    fn add_user(&mut self, key: String, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let value = if meta.input.peek(Token![=]) {
            meta.value()?.parse::<LitStr>()?.value()
        } else {
            "true".to_string()
        };
        let message = format!("`{key}` is given twice");
        match self.user.insert(key, value) {
            Some(_) => Err(meta.error(message)),
            None => Ok(()),
        }
    }
}

fn set_flag(flag: &mut bool, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if *flag {
        return Err(meta.error("this is given twice"));
    }
    *flag = true;
    Ok(())
}

/// Refuses every attribute that is not in [`HARMLESS`]: others could make the JSON differ from the
/// description.
fn check_serde(meta: &ParseNestedMeta<'_>) -> Result<()> {
    let is_harmless = HARMLESS.iter().any(|name| meta.path.is_ident(name));
    if !is_harmless {
        return Err(meta.error(
            "statistics must match their description: no serde attribute may change their names \
             or shape",
        ));
    }
    skip_argument(meta)
}

/// Skips `= "value"` or `(...)`, if there is one.
fn skip_argument(meta: &ParseNestedMeta<'_>) -> Result<()> {
    while !meta.input.is_empty() && !meta.input.peek(Token![,]) {
        meta.input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}
