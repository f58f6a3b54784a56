// SPDX-License-Identifier: GPL-2.0-only
//! Lookups in the type information (BTF) of objects and of the kernel.

use std::ffi::{CString, OsStr};
use std::ops::Range;

use libbpf_rs::btf::types::{Array, Enum, Enum64, Func, FuncProto, Int, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, HasSize as _, TypeId};
use libbpf_rs::{AsRawLibbpf as _, OpenObject};

/// Type information of an open object.
pub(crate) fn of_object(object: &OpenObject) -> Option<Btf<'_>> {
    // SAFETY: the object is borrowed for as long as the result lives, and libbpf keeps an open
    // object's type information until the object is closed.
    let raw = unsafe { object.as_libbpf_object().as_ref() };
    Btf::from_bpf_object(raw).ok().flatten()
}

/// The type called `name` of the kind `kind`. `K` is libbpf-rs' type for this kind.
///
/// Types of different kinds, such as a struct and a variable, may have the same name. libbpf-rs
/// finds only the first type with a name, whatever its kind, so this calls libbpf.
pub(crate) fn find<'a, K>(btf: &'a Btf<'_>, kind: BtfKind, name: &str) -> Option<K>
where
    K: TryFrom<BtfType<'a>>,
{
    let name = CString::new(name).ok()?;
    // SAFETY: `btf` is borrowed and the name is a C string; both are only read.
    let id = unsafe {
        libbpf_sys::btf__find_by_name_kind(
            btf.as_libbpf_object().as_ptr(),
            name.as_ptr(),
            kind as u32,
        )
    };
    btf.type_by_id(TypeId::from(u32::try_from(id).ok()?))
}

/// The byte range of a struct's member. `None` if there is no such struct or member, or if the
/// member is a bit field or has a type that `size_of()` does not support.
pub(crate) fn member(btf: &Btf<'_>, name: &str, member: &str) -> Option<Range<usize>> {
    let of = find::<Struct<'_>>(btf, BtfKind::Struct, name)?;
    let found = of.iter().find(|m| m.name == Some(OsStr::new(member)))?;
    let MemberAttr::Normal { offset: bits } = found.attr else {
        return None;
    };
    let start = usize::try_from(bits / 8).ok()?;
    let size = size_of(btf.type_by_id::<BtfType<'_>>(found.ty)?)?;
    Some(start..start.checked_add(size)?)
}

/// Size of a type in bytes; `None` for kinds whose size no caller needs.
fn size_of(of: BtfType<'_>) -> Option<usize> {
    let of = of.skip_mods_and_typedefs();
    match of.kind() {
        BtfKind::Array => {
            let array = Array::try_from(of).ok()?;
            size_of(array.contained_type())?.checked_mul(array.capacity())
        }
        BtfKind::Int => Some(Int::try_from(of).ok()?.size()),
        BtfKind::Enum => Some(Enum::try_from(of).ok()?.size()),
        BtfKind::Struct => Some(Struct::try_from(of).ok()?.size()),
        // BPF has 64-bit pointers, even on a 32-bit machine.
        BtfKind::Ptr => Some(8),
        _ => None,
    }
}

/// Whether the struct `name` has this member.
pub(crate) fn has_member(btf: &Btf<'_>, name: &str, member: &str) -> bool {
    find::<Struct<'_>>(btf, BtfKind::Struct, name)
        .is_some_and(|of| of.iter().any(|m| m.name == Some(OsStr::new(member))))
}

/// The value of an enumerator of the enum `name`; `None` if it is missing or negative.
pub(crate) fn enumerator(btf: &Btf<'_>, name: &str, enumerator: &str) -> Option<u64> {
    let wanted = Some(OsStr::new(enumerator));
    let narrow = find::<Enum<'_>>(btf, BtfKind::Enum, name).and_then(|of| {
        let found = of.iter().find(|m| m.name == wanted)?;
        u64::try_from(found.value).ok()
    });
    narrow.or_else(|| {
        let of = find::<Enum64<'_>>(btf, BtfKind::Enum64, name)?;
        let found = of.iter().find(|m| m.name == wanted)?;
        u64::try_from(found.value).ok()
    })
}

/// Whether there is a function whose name starts with `prefix` and does not end with `but_suffix`,
/// and whose last parameter is called `parameter`.
pub(crate) fn any_ends_with_parameter(
    btf: &Btf<'_>,
    prefix: &[u8],
    but_suffix: &[u8],
    parameter: &str,
) -> bool {
    let is_of_kind = |function: &Func<'_>| {
        let name = function.name().map(OsStr::as_encoded_bytes);
        name.is_some_and(|name| name.starts_with(prefix) && !name.ends_with(but_suffix))
    };
    let has_parameter = |function: Func<'_>| -> Option<bool> {
        let prototype = FuncProto::try_from(function.next_type()?).ok()?;
        let last = prototype.iter().last()?;
        Some(last.name == Some(OsStr::new(parameter)))
    };
    let mut functions = btf.type_by_kind::<Func<'_>>().filter(is_of_kind);
    functions.any(|function| has_parameter(function) == Some(true))
}
