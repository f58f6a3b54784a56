//! Structs that cannot be statistics. Each differs in one point from these valid structs:
//!
//! ```
//! use std::collections::BTreeMap;
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { #[stat(counter)] a: u64, b: f32, c: BTreeMap<String, Vec1>, d: Vec<&'static str> }
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct Vec1 { a: Vec<u64> }
//! ```
//!
//! The protocol has no booleans, no options, and no numbers of more than 64 bits.
//!
//! ```compile_fail,E0277
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { a: bool }
//! ```
//! ```compile_fail,E0277
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { a: Option<u64> }
//! ```
//! ```compile_fail,E0277
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { a: u128 }
//! ```
//!
//! Lists and maps do not nest directly, and a nested struct has to derive `Stats`.
//!
//! ```compile_fail,E0277
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { a: Vec<Vec<u64>> }
//! ```
//! ```compile_fail,E0277
//! #[derive(Clone, serde::Serialize)]
//! struct Inner { a: u64 }
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { a: Inner }
//! ```
//!
//! Keys are integers or strings.
//!
//! ```compile_fail,E0277
//! use std::collections::BTreeMap;
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { a: BTreeMap<char, u64> }
//! ```
//!
//! Counters are numbers.
//!
//! ```compile_fail,E0277
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { #[stat(counter)] a: String }
//! ```
//! ```compile_fail,E0277
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct Inner { #[stat(counter)] a: u64 }
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { #[stat(counter)] a: Vec<Inner> }
//! ```
//!
//! Fields cannot be renamed. (Other attributes are tested in the derive crate.)
//!
//! ```compile_fail
//! #[derive(Clone, serde::Serialize, scx_stats::Stats)]
//! struct S { #[serde(rename = "b")] a: u64 }
//! ```
//!
//! `Serialize` is required.
//!
//! ```compile_fail,E0277
//! #[derive(Clone, scx_stats::Stats)]
//! struct S { a: u64 }
//! ```
