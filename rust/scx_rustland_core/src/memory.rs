// SPDX-License-Identifier: GPL-2.0-only
//! Keeping the policy's thread out of page faults: while it waits for memory, all wait for it. That
//! nobody makes huge pages of its memory is the runner's doing.

use std::io;
use std::path::Path;

use anyhow::{Context as _, Result};
use scx_utils::host::{Setting, NOTES_DIR};

use crate::alloc::Claim;
use crate::LockedHeap;

/// Lets the kernel move locked pages about, which are gone meanwhile. Switched off while a policy
/// runs.
pub const COMPACTION_SETTING: &str = "vm.compact_unevictable_allowed";

/// How much of the stack is there from the start, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// The memory of this process stays where it is, as long as this lives. On the policy's thread.
#[derive(Debug)]
pub(crate) struct Locked {
    _heap: Option<Claim>,
    _compaction: Option<Setting>,
}

impl Locked {
    /// # Errors
    ///
    /// If memory cannot be locked. What only some machines have is told and done without.
    pub(crate) fn hold(heap: Option<&'static LockedHeap>) -> Result<Self> {
        bind_to_all_nodes();
        // SAFETY: changes when pages are mapped, not what is in them.
        if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
            return Err(io::Error::last_os_error()).context("cannot lock memory");
        }
        touch_stack();
        let path = Path::new("/proc/sys").join(COMPACTION_SETTING.replace('.', "/"));
        let compaction = path
            .exists()
            .then(|| Setting::hold(&path, "0", Path::new(NOTES_DIR)));
        let compaction = compaction.transpose().unwrap_or_else(|error| {
            tracing::warn!("{error:#}");
            None
        });
        let heap = heap.map(|heap| heap.claim()).transpose();
        Ok(Self {
            _heap: heap.context("the policy's memory")?,
            _compaction: compaction,
        })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::munlockall() };
    }
}

/// NUMA balancing unmaps pages to see who uses them, which are page faults; but not the pages of a
/// thread with a policy of its own. Threads that are made later inherit it.
fn bind_to_all_nodes() {
    let Some(nodes) = nodes_with_memory() else {
        // A kernel without NUMA.
        return;
    };
    let (mode, bits) = (libc::MPOL_BIND, nodes.len() * 64 + 1);
    // SAFETY: the kernel reads as many bits as it is told, which are there: it takes one less.
    let err = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes.as_ptr(), bits) };
    if err != 0 {
        let error = io::Error::last_os_error();
        tracing::debug!("memory stays under NUMA balancing: {error}");
    }
}

/// A bit for each.
fn nodes_with_memory() -> Option<Vec<u64>> {
    let list = std::fs::read_to_string("/sys/devices/system/node/has_memory").ok()?;
    let nodes = scx_utils::cpumask::Cpumask::from_list(list.trim(), 1024).ok()?;
    Some(nodes.words().to_vec())
}

/// So that the stack need not grow later.
#[inline(never)]
fn touch_stack() {
    let mut stack = [0_u8; STACK_BYTES];
    stack.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&stack);
}
