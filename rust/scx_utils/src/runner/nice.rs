// SPDX-License-Identifier: GPL-2.0-only
//! The thread that loads a scheduler runs at the lowest nice value.
//!
//! The kernel's verifier needs a second of CPU time on a slow machine. With many busy tasks, it
//! takes half a minute to get this time. During a restart, no scheduler is attached for that long.

use rustix::process::{getpriority_process, setpriority_process};

const NICE_MIN: i32 = -20;

/// A guard that keeps the calling thread at nice -20. The same thread has to drop it.
#[derive(Debug)]
pub(super) struct LowestNice {
    /// The nice value to restore; `None` if nothing was changed.
    before: Option<i32>,
}

impl LowestNice {
    /// Sets the lowest nice value. Without the permission, nothing changes, and the scheduler still
    /// loads.
    pub(super) fn raise() -> Self {
        // `None` is process 0, which on Linux means the calling thread.
        let before = getpriority_process(None).ok();
        Self {
            before: before.filter(|_| setpriority_process(None, NICE_MIN).is_ok()),
        }
    }
}

impl Drop for LowestNice {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            if let Err(error) = setpriority_process(None, before) {
                tracing::warn!("cannot go back to nice {before}: {error}");
            }
        }
    }
}
