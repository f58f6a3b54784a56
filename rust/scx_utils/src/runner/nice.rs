// SPDX-License-Identifier: GPL-2.0-only
//! The thread that loads a scheduler has the lowest nice value meanwhile.
//!
//! The kernel's verifier takes a second of CPU time on a slow machine, which among many busy tasks
//! is half a minute, and after a restart no policy of ours is in force meanwhile.

use rustix::process::{getpriority_process, setpriority_process};

const NICE_MIN: i32 = -20;

/// Holds the calling thread at nice -20 until it is dropped, on the same thread.
#[derive(Debug)]
pub(super) struct Favoured {
    /// The nice value to go back to; `None` if nothing was changed.
    before: Option<i32>,
}

impl Favoured {
    /// Where it may not, nothing changes: the scheduler loads all the same.
    pub(super) fn raise() -> Self {
        // To Linux, the process 0 is the calling thread.
        let before = getpriority_process(None).ok();
        Self {
            before: before.filter(|_| setpriority_process(None, NICE_MIN).is_ok()),
        }
    }
}

impl Drop for Favoured {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            if let Err(error) = setpriority_process(None, before) {
                tracing::warn!("cannot go back to nice {before}: {error}");
            }
        }
    }
}
