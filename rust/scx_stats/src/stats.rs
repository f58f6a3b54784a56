//! The traits behind `#[derive(Stats)]`: field types and counters.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Kind, MetaError, Registry, Shape, StructMeta};

/// A struct of statistics. Implement it with `#[derive(Stats)]`, on a struct with named fields that
/// also derives `Clone` and serde's `Serialize` (and `Deserialize`, for clients).
///
/// A field is an integer, a float, a [`Percent`](crate::Percent), a `String` or `&'static str`,
/// another such struct, or a `Vec` or a `BTreeMap` (whose keys are integers or `String`s) of these.
/// Attributes are written as `#[stat(...)]`:
///
/// | attribute | on | meaning |
/// |---|---|---|
/// | `top` | struct | the top-level struct for clients |
/// | `desc = "..."` | both | one line that describes the struct or field |
/// | `_name`, `_name = "..."` | both | interpreted by clients; the default value is "true" |
/// | `counter` | field | the field is monotonic; sent as user attribute `_counter` |
///
/// Of serde's attributes, only `alias`, `bound`, `crate`, `default` and `deny_unknown_fields` are
/// allowed. Others could change names or shapes, and clients rely on the description.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a struct of statistics",
    label = "does not derive `Stats`"
)]
pub trait Stats: Serialize + Clone + Send + Sync + 'static {
    /// The name of the struct.
    const NAME: &'static str;

    /// The description of this struct, without the structs that it contains.
    fn meta() -> StructMeta;

    /// Registers the structs that this struct contains.
    ///
    /// # Errors
    /// See [`MetaError`].
    fn register_fields(registry: &mut Registry) -> Result<(), MetaError>;

    /// The changes between the snapshots `prev` and `self`: a counter becomes its increase, or zero
    /// if it has decreased; a [`Percent`](crate::Percent) covers the events between the snapshots;
    /// every other value is the value of `self`. Elements of lists are compared by position, and
    /// elements of maps by key. The counters of a new element count from zero.
    #[must_use]
    fn since(&self, prev: &Self) -> Self;
}

/// The type of one value of a field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a statistic",
    label = "not an integer of up to 64 bits, a float, a string, a `Percent` or a struct that \
             derives `Stats`"
)]
pub trait Datum: Clone {
    /// The kind of the value.
    fn kind() -> Kind;

    /// Registers the type if it is a struct. Records its use if it is a
    /// [`Percent`](crate::Percent).
    ///
    /// # Errors
    /// See [`MetaError`].
    fn register(registry: &mut Registry) -> Result<(), MetaError>;

    /// The changes since `prev`: see [`Stats::since`].
    #[must_use]
    fn since(&self, prev: &Self) -> Self;
}

impl<T: Stats> Datum for T {
    fn kind() -> Kind {
        Kind::Struct(T::NAME.to_string())
    }

    fn register(registry: &mut Registry) -> Result<(), MetaError> {
        registry.add::<T>()
    }

    fn since(&self, prev: &Self) -> Self {
        Stats::since(self, prev)
    }
}

/// A key of a map of values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a map of statistics",
    label = "neither an integer of up to 64 bits nor a `String`"
)]
pub trait Key: Datum + Ord {}

/// The type of a field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a statistic",
    label = "cannot be a statistic",
    note = "a field is an integer of up to 64 bits, a float, a `String`, a `&'static str`, a \
            `Percent`, a struct that derives `Stats`, or a `Vec` or `BTreeMap` of one of these",
    note = "keys of maps are integers or `String`s; lists and maps nest through structs only",
    note = "the protocol has neither booleans nor options: use numbers"
)]
pub trait FieldType {
    /// The shape of a field of this type.
    fn shape() -> Shape;

    /// Registers the structs in this type.
    ///
    /// # Errors
    /// See [`MetaError`].
    fn register(registry: &mut Registry) -> Result<(), MetaError>;

    /// [`Stats::since`] of every value.
    #[must_use]
    fn since(&self, prev: &Self) -> Self;
}

impl<T: Datum> FieldType for T {
    fn shape() -> Shape {
        Shape::Datum(T::kind())
    }

    fn register(registry: &mut Registry) -> Result<(), MetaError> {
        <T as Datum>::register(registry)
    }

    fn since(&self, prev: &Self) -> Self {
        Datum::since(self, prev)
    }
}

impl<T: Datum> FieldType for Vec<T> {
    fn shape() -> Shape {
        Shape::Array(T::kind())
    }

    fn register(registry: &mut Registry) -> Result<(), MetaError> {
        <T as Datum>::register(registry)
    }

    fn since(&self, prev: &Self) -> Self {
        by_position(self, prev, Datum::since)
    }
}

impl<K: Key, T: Datum> FieldType for BTreeMap<K, T> {
    fn shape() -> Shape {
        Shape::Dict {
            key: K::kind(),
            datum: T::kind(),
        }
    }

    fn register(registry: &mut Registry) -> Result<(), MetaError> {
        <T as Datum>::register(registry)
    }

    fn since(&self, prev: &Self) -> Self {
        by_key(self, prev, Datum::since)
    }
}

/// A field type that can be marked `counter`: numbers, and lists and maps of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a counter",
    label = "not a number, nor a list or map of numbers",
    note = "counters inside a struct are marked there"
)]
pub trait Counter: FieldType {
    /// The increase since `prev`; zero if the counter has decreased.
    #[must_use]
    fn counted_since(&self, prev: &Self) -> Self;
}

impl<T: Datum + Counter> Counter for Vec<T> {
    fn counted_since(&self, prev: &Self) -> Self {
        by_position(self, prev, Counter::counted_since)
    }
}

impl<K: Key, T: Datum + Counter> Counter for BTreeMap<K, T> {
    fn counted_since(&self, prev: &Self) -> Self {
        by_key(self, prev, Counter::counted_since)
    }
}

fn by_position<T: Clone>(cur: &[T], prev: &[T], since: fn(&T, &T) -> T) -> Vec<T> {
    let prev = prev.iter().map(Some).chain(std::iter::repeat(None));
    let pairs = cur.iter().zip(prev);
    pairs
        .map(|(cur, prev)| prev.map_or_else(|| cur.clone(), |prev| since(cur, prev)))
        .collect()
}

fn by_key<K: Key, T: Clone>(
    cur: &BTreeMap<K, T>,
    prev: &BTreeMap<K, T>,
    since: fn(&T, &T) -> T,
) -> BTreeMap<K, T> {
    let changed = cur.iter().map(|(key, cur)| {
        let prev = prev.get(key);
        let value = prev.map_or_else(|| cur.clone(), |prev| since(cur, prev));
        (key.clone(), value)
    });
    changed.collect()
}

/// Implements [`Datum`] for numbers and strings.
macro_rules! plain {
    ($kind:expr => $($type:ty),*) => {$(
        impl Datum for $type {
            fn kind() -> Kind {
                $kind
            }

            fn register(_: &mut Registry) -> Result<(), MetaError> {
                Ok(())
            }

            fn since(&self, _: &Self) -> Self {
                self.clone()
            }
        }
    )*};
}

/// Implements [`Key`] and [`Counter`] for integers.
macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Key for $type {}

        impl Counter for $type {
            fn counted_since(&self, prev: &Self) -> Self {
                self.saturating_sub(*prev).max(0)
            }
        }
    )*};
}

/// Implements [`Counter`] for floats.
macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Counter for $type {
            fn counted_since(&self, prev: &Self) -> Self {
                (self - prev).max(0.0)
            }
        }
    )*};
}

plain!(Kind::I64 => i8, i16, i32, i64, isize);
plain!(Kind::U64 => u8, u16, u32, u64, usize);
plain!(Kind::Float => f32, f64);
plain!(Kind::String => String, &'static str);
integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
floats!(f32, f64);

impl Key for String {}
