// SPDX-License-Identifier: GPL-2.0-only
//! Access to members of the table of callbacks (`struct sched_ext_ops`) by name, before the load.
//! Their offsets are from the object's type information, so any version of the struct works.

use anyhow::{bail, Context as _, Result};
use libbpf_rs::{AsRawLibbpf as _, MapType, OpenMapMut, OpenObject, ProgramType};

use crate::btf;

/// The type of the table.
const TABLE: &str = "sched_ext_ops";

/// The table of callbacks. A scheduler's object has exactly one.
fn table(object: &mut OpenObject) -> Result<OpenMapMut<'_>> {
    object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .context("the BPF object has no struct sched_ext_ops")
}

/// Applies `change` to the bytes of a member; an error if there is no such member.
fn with_member<T>(
    object: &mut OpenObject,
    member: &str,
    change: impl FnOnce(&mut [u8]) -> Result<T>,
) -> Result<T> {
    let range = btf::of_object(object)
        .and_then(|btf| btf::member(&btf, TABLE, member))
        .with_context(|| format!("the BPF object's {TABLE} has no {member}"))?;
    let mut table = table(object)?;
    let bytes = table
        .initial_value_mut()
        .and_then(|value| value.get_mut(range));
    change(bytes.with_context(|| format!("cannot write {TABLE}.{member}"))?)
}

/// Sets an integer, of 32 or 64 bits.
pub(super) fn set(object: &mut OpenObject, member: &str, value: u64) -> Result<()> {
    with_member(object, member, |bytes| {
        match bytes.len() {
            4 => bytes.copy_from_slice(&u32::try_from(value)?.to_ne_bytes()),
            8 => bytes.copy_from_slice(&value.to_ne_bytes()),
            size => bail!("{TABLE}.{member} is not an integer, but {size} bytes"),
        }
        Ok(())
    })
}

/// Sets a name, with a terminating zero byte.
pub(super) fn set_text(object: &mut OpenObject, member: &str, text: &str) -> Result<()> {
    with_member(object, member, |bytes| {
        if text.len() >= bytes.len() || text.contains('\0') {
            bail!("{TABLE}.{member} cannot be '{}'", text.escape_debug());
        }
        bytes.fill(0);
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(())
    })
}

/// Removes a callback. Its program is then not loaded: see [`leave_out_unused`].
pub(super) fn clear(object: &mut OpenObject, callback: &str) -> Result<()> {
    with_member(object, callback, |bytes| {
        bytes.fill(0);
        Ok(())
    })
}

/// Disables callback programs that the table does not refer to, such as a library's callbacks that
/// the scheduler replaces with its own. The kernel would refuse them.
pub(super) fn leave_out_unused(object: &mut OpenObject) -> Result<()> {
    let table = table(object)?;
    let value = table.initial_value().context("cannot read the table")?;
    // Before the load, a callback in the table is the address of libbpf's `struct bpf_program`.
    let (words, _) = value.as_chunks();
    let used: Vec<usize> = words
        .iter()
        .map(|word| usize::from_ne_bytes(*word))
        .collect();
    for mut program in object.progs_mut() {
        let is_callback = program.prog_type() == ProgramType::StructOps;
        if is_callback && !used.contains(&program.as_libbpf_object().as_ptr().addr()) {
            program.set_autoload(false);
        }
    }
    Ok(())
}

/// Sets bits of `ops.flags`.
pub(super) fn or_flags(object: &mut OpenObject, flags: u64) -> Result<()> {
    with_member(object, "flags", |bytes| {
        let before = u64::from_ne_bytes((&*bytes).try_into()?);
        bytes.copy_from_slice(&(before | flags).to_ne_bytes());
        Ok(())
    })
}
