//! Machine-readable descriptions of statistics (`stats_meta`).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The user attribute that marks a counter.
const COUNTER: &str = "_counter";

/// The description of a struct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructMeta {
    /// The name of the Rust struct.
    pub name: String,
    /// Whether this is the top-level struct. On the wire, it is the string "true" or absent.
    #[serde(default, skip_serializing_if = "is_false", with = "flag")]
    pub top: bool,
    /// One line that describes the struct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desc: Option<String>,
    /// Attributes that are interpreted by clients only; their names begin with `_`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub user: BTreeMap<String, String>,
    /// The fields, in the order of their declaration; sorted by name on the wire, and thus in
    /// received descriptions.
    #[serde(with = "by_name")]
    pub fields: Vec<FieldMeta>,
}

/// The description of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldMeta {
    /// The name. On the wire, it is the key of this description.
    #[serde(skip)]
    pub name: String,
    /// The type of the field.
    #[serde(flatten)]
    pub shape: Shape,
    /// One line that describes the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desc: Option<String>,
    /// User attributes, like those of a struct. `_counter` marks a counter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub user: BTreeMap<String, String>,
}

impl FieldMeta {
    /// Whether the field is a counter. The server sends the increase of a counter, unless the
    /// client requests totals.
    pub fn is_counter(&self) -> bool {
        self.user.contains_key(COUNTER)
    }
}

/// The shape of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// One value.
    Datum(Kind),
    /// A list of values.
    Array(Kind),
    /// Values by key. Keys are strings in JSON.
    Dict {
        /// The kind of keys; never a struct.
        key: Kind,
        /// The kind of values.
        datum: Kind,
    },
}

/// The kind of a value, regardless of the width of its Rust type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A signed integer.
    I64,
    /// An unsigned integer.
    U64,
    /// A floating-point number.
    Float,
    /// A string.
    String,
    /// A struct, by its name.
    Struct(String),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Float => "float",
            Self::String => "string",
            Self::Struct(name) => name,
        })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datum(kind) => write!(f, "{kind}"),
            Self::Array(kind) => write!(f, "[{kind}]"),
            Self::Dict { key, datum } => write!(f, "{{{key}:{datum}}}"),
        }
    }
}

// Serde requires this signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A flag as the string "true".
mod flag {
    use super::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("true")
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        Ok(String::deserialize(from)? == "true")
    }
}

/// Fields as an object, sorted by name.
mod by_name {
    use super::{BTreeMap, Deserialize, Deserializer, FieldMeta, Serializer};

    pub(super) fn serialize<S: Serializer>(
        fields: &[FieldMeta],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let sorted: BTreeMap<_, _> = fields.iter().map(|field| (&field.name, field)).collect();
        serializer.collect_map(sorted)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<FieldMeta>, D::Error> {
        let sorted = BTreeMap::<String, FieldMeta>::deserialize(from)?;
        let fields = sorted.into_iter();
        Ok(fields
            .map(|(name, field)| FieldMeta { name, ..field })
            .collect())
    }
}
