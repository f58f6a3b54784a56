// SPDX-License-Identifier: GPL-2.0-only
//! Avoids page faults of the policy thread: while the policy thread waits for memory, all tasks
//! wait for a decision. For the same reason, the runner disables transparent huge pages.

use std::io;
use std::path::Path;

use anyhow::{Context as _, Result};
use scx_utils::host::{Setting, NOTES_DIR};

use crate::alloc::Claim;
use crate::LockedHeap;

/// The sysctl that lets the kernel migrate locked pages. Pages are unmapped while they migrate, so
/// the sysctl is 0 while a policy runs.
pub const COMPACTION_SETTING: &str = "vm.compact_unevictable_allowed";

/// Size of the part of the stack that is populated at the start, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// A guard that keeps the memory of this process locked. It is created on the policy thread.
#[derive(Debug)]
pub(crate) struct Locked {
    _heap: Option<Claim>,
    _compaction: Option<Setting>,
}

impl Locked {
    /// Locks the memory, disables other causes of page faults, and claims the heap.
    ///
    /// # Errors
    ///
    /// If memory cannot be locked, or the heap has an owner. Failures of optional settings are
    /// only logged.
    pub(crate) fn hold(heap: Option<&'static LockedHeap>) -> Result<Self> {
        bind_to_all_nodes();
        // SAFETY: `mlockall` affects when pages are mapped, not their contents.
        if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
            return Err(io::Error::last_os_error()).context("cannot lock memory");
        }
        let mut locked = Self {
            _heap: None,
            _compaction: None,
        };
        touch_stack();
        let path = Path::new("/proc/sys").join(COMPACTION_SETTING.replace('.', "/"));
        let compaction = path
            .exists()
            .then(|| Setting::hold(&path, "0", Path::new(NOTES_DIR)));
        let compaction = compaction.transpose().unwrap_or_else(|error| {
            tracing::warn!("{error:#}");
            None
        });
        locked._compaction = compaction;
        let heap = heap.map(|heap| heap.claim()).transpose();
        locked._heap = heap.context("cannot claim the policy's heap")?;
        Ok(locked)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: like `mlockall`, `munlockall` does not affect the contents of pages.
        unsafe { libc::munlockall() };
    }
}

/// Sets a memory policy for this thread and for the threads that it creates later. In a thread
/// without a memory policy, NUMA balancing causes page faults, because it unmaps pages to find out
/// which threads use them.
fn bind_to_all_nodes() {
    let Some(nodes) = nodes_with_memory() else {
        // The kernel has no NUMA support.
        return;
    };
    let (mode, bits) = (libc::MPOL_BIND, nodes.len() * 64 + 1);
    // SAFETY: the kernel reads `bits - 1` bits, which are those of `nodes`.
    let err = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes.as_ptr(), bits) };
    if err != 0 {
        let error = io::Error::last_os_error();
        tracing::debug!("memory stays under NUMA balancing: {error}");
    }
}

/// A bitmap of the nodes that have memory; `None` if the kernel has no NUMA support.
fn nodes_with_memory() -> Option<Vec<u64>> {
    let list = std::fs::read_to_string("/sys/devices/system/node/has_memory").ok()?;
    let nodes = scx_utils::cpumask::Cpumask::from_list(list.trim(), 1024).ok()?;
    Some(nodes.words().to_vec())
}

/// Populates the stack, so that it need not grow later.
#[inline(never)]
fn touch_stack() {
    let mut stack = [0_u8; STACK_BYTES];
    stack.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&stack);
}
