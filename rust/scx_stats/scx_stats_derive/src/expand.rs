//! Generates the implementation of `Stats` for a struct.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Result, Type};

use crate::attributes::{Attributes, Place};

/// A field of the struct.
struct Stat<'a> {
    ident: &'a Ident,
    name: String,
    ty: &'a Type,
    attributes: Attributes,
}

impl<'a> Stat<'a> {
    fn read(field: &'a Field) -> Result<Self> {
        let ident = field.ident.as_ref();
        let ident = ident.ok_or_else(|| Error::new_spanned(field, "expected a name"))?;
        Ok(Self {
            ident,
            // Without the `r#` of a raw identifier, as serde writes it.
            name: ident.unraw().to_string(),
            ty: &field.ty,
            attributes: Attributes::read(&field.attrs, Place::Field)?,
        })
    }

    /// An expression that describes the field.
    fn meta(&self) -> TokenStream {
        let (name, ty) = (&self.name, self.ty);
        let desc = optional(self.attributes.desc.as_ref());
        let user = user(&self.attributes);
        quote_spanned! {ty.span()=>
            ::scx_stats::FieldMeta {
                name: ::std::string::String::from(#name),
                shape: <#ty as ::scx_stats::FieldType>::shape(),
                desc: #desc,
                user: #user,
            }
        }
    }

    /// A statement that registers the structs in the field's type.
    fn register(&self) -> TokenStream {
        let ty = self.ty;
        quote_spanned! {ty.span()=>
            <#ty as ::scx_stats::FieldType>::register(registry)?;
        }
    }

    /// The field's initialiser in the struct that `since()` returns.
    fn since(&self) -> TokenStream {
        let (ident, ty) = (self.ident, self.ty);
        let since = if self.attributes.counter {
            quote_spanned!(ty.span()=> <#ty as ::scx_stats::Counter>::counted_since)
        } else {
            quote_spanned!(ty.span()=> <#ty as ::scx_stats::FieldType>::since)
        };
        quote!(#ident: #since(&self.#ident, &prev.#ident))
    }
}

/// The implementation of `Stats` for the struct `input`.
///
/// # Errors
/// If `input` is not a struct with named fields, is generic, or has a wrong attribute.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let stats = read_fields(input)?;
    let attributes = Attributes::read(&input.attrs, Place::Struct)?;
    let ident = &input.ident;
    let name = ident.unraw().to_string();
    let top = attributes.top;
    let desc = optional(attributes.desc.as_ref());
    let user = user(&attributes);
    let metas = stats.iter().map(Stat::meta);
    let registers = stats.iter().map(Stat::register);
    let sinces = stats.iter().map(Stat::since);
    Ok(quote! {
        #[automatically_derived]
        impl ::scx_stats::Stats for #ident {
            const NAME: &'static str = #name;

            fn meta() -> ::scx_stats::StructMeta {
                ::scx_stats::StructMeta {
                    name: ::std::string::String::from(Self::NAME),
                    top: #top,
                    desc: #desc,
                    user: #user,
                    fields: ::std::vec![#(#metas),*],
                }
            }

            fn register_fields(
                registry: &mut ::scx_stats::Registry,
            ) -> ::std::result::Result<(), ::scx_stats::MetaError> {
                #(#registers)*
                ::std::result::Result::Ok(())
            }

            fn since(&self, prev: &Self) -> Self {
                Self { #(#sinces),* }
            }
        }
    })
}

fn read_fields(input: &DeriveInput) -> Result<Vec<Stat<'_>>> {
    if !input.generics.params.is_empty() {
        let message = "statistics have one description: the struct cannot be generic";
        return Err(Error::new_spanned(&input.generics, message));
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => fields.named.iter().map(Stat::read).collect(),
            _ => Err(wrong_item(input)),
        },
        _ => Err(wrong_item(input)),
    }
}

fn wrong_item(input: &DeriveInput) -> Error {
    Error::new_spanned(&input.ident, "expected a struct with named fields")
}

/// An expression for an `Option<String>`.
fn optional(text: Option<&String>) -> TokenStream {
    match text {
        Some(text) => quote! {
            ::std::option::Option::Some(::std::string::String::from(#text))
        },
        None => quote!(::std::option::Option::None),
    }
}

/// An expression for the map of user attributes.
fn user(attributes: &Attributes) -> TokenStream {
    let (keys, values) = (attributes.user.keys(), attributes.user.values());
    quote! {
        ::std::collections::BTreeMap::from([
            #((::std::string::String::from(#keys), ::std::string::String::from(#values))),*
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_str(item: &str) -> Result<TokenStream> {
        expand(&syn::parse_str(item).unwrap())
    }

    #[track_caller]
    fn refused(item: &str, message: &str) {
        let error = expand_str(item).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn only_plain_structs_with_named_fields() {
        expand_str("struct S { a: u64 }").unwrap();
        expand_str("struct S {}").unwrap();
        refused("struct S(u64);", "named fields");
        refused("struct S;", "named fields");
        refused("enum E { A }", "named fields");
        refused("union U { a: u64 }", "named fields");
        refused("struct S<T> { a: T }", "generic");
        refused("struct S<'a> { a: &'a str }", "generic");
    }

    #[test]
    fn attributes_of_structs() {
        expand_str(r#"#[stat(top, desc = "d", _a, _b = "c")] struct S { a: u64 }"#).unwrap();
        expand_str(r#"#[stat(top)] #[stat(desc = "d")] struct S { a: u64 }"#).unwrap();
        refused("#[stat(top, top)] struct S {}", "twice");
        refused(
            "#[stat(counter)] struct S {}",
            "`counter` belongs on a field",
        );
        refused("#[stat(om_prefix)] struct S {}", "begins with `_`");
        refused(
            r#"#[stat(desc = "a", desc = "b")] struct S {}"#,
            "`desc` is given twice",
        );
        refused(r#"#[stat(desc = "a\nb")] struct S {}"#, "one line");
        refused("#[stat(desc = 3)] struct S {}", "expected string literal");
        refused("#[stat(desc)] struct S {}", "expected `=`");
        refused("#[stat(a::b)] struct S {}", "expected `top`");
        refused("#[stat] struct S {}", "expected attribute arguments");
    }

    #[test]
    fn attributes_of_fields() {
        expand_str(r#"struct S { #[stat(counter, desc = "d", _a, _b = "c")] a: u64 }"#).unwrap();
        refused(
            "struct S { #[stat(top)] a: u64 }",
            "`top` belongs on the struct",
        );
        refused("struct S { #[stat(_a, _a)] a: u64 }", "`_a` is given twice");
        refused("struct S { #[stat(counter, counter)] a: u64 }", "twice");
        refused("struct S { #[stat(_counter)] a: u64 }", "is reserved");
        refused("struct S { #[stat(gauge)] a: u64 }", "expected `counter`");
    }

    #[test]
    fn serde_may_not_rename() {
        refused(
            r#"struct S { #[serde(rename = "b")] a: u64 }"#,
            "no serde attribute",
        );
        refused(
            r#"struct S { #[serde(default, skip)] a: u64 }"#,
            "no serde attribute",
        );
        refused("struct S { #[serde(flatten)] a: B }", "no serde attribute");
        refused(
            r#"struct S { #[serde(skip_serializing_if = "f")] a: u64 }"#,
            "no serde attribute",
        );
        refused(
            r#"struct S { #[serde(with = "m")] a: u64 }"#,
            "no serde attribute",
        );
        refused(
            r#"#[serde(rename_all = "camelCase")] struct S {}"#,
            "no serde attribute",
        );
        refused(r#"#[serde(into = "B")] struct S {}"#, "no serde attribute");
        refused(
            "#[serde(transparent)] struct S { a: u64 }",
            "no serde attribute",
        );
        expand_str(r#"#[serde(default, deny_unknown_fields)] struct S { a: u64 }"#).unwrap();
        expand_str(r#"struct S { #[serde(default = "f", alias = "b")] a: u64 }"#).unwrap();
    }

    #[test]
    fn raw_names_lose_their_prefix() {
        let tokens = expand_str("struct r#S { r#type: u64 }")
            .unwrap()
            .to_string();
        assert!(
            tokens.contains("\"type\"") && tokens.contains("\"S\""),
            "{tokens}"
        );
    }
}
