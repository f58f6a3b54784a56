// SPDX-License-Identifier: GPL-2.0-only
//! The BPF side: its skeleton and the definitions of `bpf/intf.h`.

scx_utils::include_bpf!();

pub(crate) use bpf_intf::*;
pub(crate) use bpf_skel::{BpfProgs, BpfSkel, BpfSkelBuilder, OpenBpfProgs, OpenBpfSkel};

/// A task's name. Bytes that are not UTF-8 are replaced.
pub(crate) fn comm(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}
