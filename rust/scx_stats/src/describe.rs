//! The table that `--help-stats` prints.

use std::fmt::{self, Write};

use crate::{FieldMeta, Registry, Stats, StructMeta};

/// A table of the fields of `T`, followed by a table for each struct that `T` contains:
///
/// ```text
/// [Metrics] What the scheduler has done
///   nr_dispatches (u64)        : Tasks dispatched
///   nodes         ({u64:Node}) : By NUMA node
/// ```
///
/// Structs that a server would refuse are described as far as they can be registered.
pub fn describe<T: Stats>() -> String {
    let mut registry = Registry::default();
    // On an error, such as for a recursive struct, what was registered so far is described.
    let _ = registry.add::<T>();
    registry.describe()
}

impl Registry {
    /// A table of all registered structs: see [`describe()`].
    pub fn describe(&self) -> String {
        let blocks: Vec<_> = self.iter().map(StructMeta::to_string).collect();
        blocks.join("\n")
    }
}

impl fmt::Display for StructMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.name)?;
        if let Some(desc) = &self.desc {
            write!(f, " {desc}")?;
        }
        f.write_char('\n')?;
        let widest = |width: fn(&FieldMeta) -> usize| self.fields.iter().map(width).max();
        let name_width = widest(|field| field.name.chars().count()).unwrap_or(0);
        let shape_width = widest(|field| field.shape.to_string().chars().count()).unwrap_or(0) + 2;
        for field in &self.fields {
            let shape = format!("({})", field.shape);
            write!(f, "  {:name_width$} ", field.name)?;
            match &field.desc {
                Some(desc) => writeln!(f, "{shape:shape_width$} : {desc}")?,
                None => writeln!(f, "{shape}")?,
            }
        }
        Ok(())
    }
}
