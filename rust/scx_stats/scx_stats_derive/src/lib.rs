//! Derive macro of `scx_stats`, which re-exports and documents it.
//!
//! `attributes` parses the attributes, `expand` generates the implementation. Field types are
//! checked by the traits of `scx_stats`, so that type aliases work.

#![forbid(unsafe_code)]

mod attributes;
mod expand;

use proc_macro::TokenStream;
use syn::{parse_macro_input, DeriveInput};

/// Derives `scx_stats::Stats` for a struct with named fields. That trait documents the attributes.
#[proc_macro_derive(Stats, attributes(stat))]
pub fn derive_stats(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
