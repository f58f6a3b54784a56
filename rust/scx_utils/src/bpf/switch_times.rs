// SPDX-License-Identifier: GPL-2.0-only
//! The times of context switches that several tools observe (`scx/switch_time.bpf.h`).

use std::os::fd::AsFd as _;

use anyhow::{Context as _, Result};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore as _, MapHandle, OpenMapMut, ProgramType};

/// Makes a tool use the map `scx_switch_time` of another running tool, so that both record the same
/// time for a context switch. If there is no other tool, `map` stays as it is, and tools that start
/// later find it. If two tools start at the same moment, each may keep its own map.
///
/// # Errors
///
/// If the map that was found cannot be used instead of `map`.
pub fn share_switch_times(map: &mut OpenMapMut<'_>) -> Result<()> {
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    // An unprivileged user may be able to create maps, but not tracing programs. So a map that a
    // tracing program uses is not a forgery.
    let found = ProgInfoIter::with_query_opts(options)
        .filter(|program| program.ty == ProgramType::Tracing)
        .flat_map(|program| program.map_ids)
        .filter_map(|id| MapHandle::from_map_id(id).ok())
        .find(|other| is_same(map, other));
    found.map_or(Ok(()), |other| {
        map.reuse_fd(other.as_fd())
            .context("cannot share the times of context switches")
    })
}

/// Whether the maps have the same name, type, key size, value size and number of entries.
fn is_same(map: &OpenMapMut<'_>, other: &MapHandle) -> bool {
    map.name() == other.name()
        && map.map_type() == other.map_type()
        && map.key_size() == other.key_size()
        && map.value_size() == other.value_size()
        && map.max_entries() == other.max_entries()
}
