// SPDX-License-Identifier: GPL-2.0-only
//! Page faults of the policy thread. During a page fault, the thread may wait for a task that waits
//! for a decision, so there should be no page fault once the policy runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use procfs::process::Process;

/// Counts the page faults of one thread of this process. Any thread may read the count.
#[derive(Debug, Clone)]
pub(crate) struct PageFaults {
    tid: i32,
    /// The kernel's count at the call of `begin`; `u64::MAX` before that call.
    before: Arc<AtomicU64>,
}

impl PageFaults {
    /// A counter for the calling thread.
    pub(crate) fn of_this_thread() -> Result<Self> {
        // SAFETY: `gettid` takes no arguments and returns a number.
        let tid = unsafe { libc::gettid() };
        // Fail now if page faults cannot be counted.
        all_of(tid)?;
        Ok(Self {
            tid,
            before: Arc::new(AtomicU64::new(u64::MAX)),
        })
    }

    /// Starts counting.
    pub(crate) fn begin(&self) -> Result<()> {
        // The first call may itself cause page faults.
        all_of(self.tid)?;
        self.before.store(all_of(self.tid)?, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn count(&self) -> Result<u64> {
        let before = self.before.load(Ordering::Relaxed);
        Ok(all_of(self.tid)?.saturating_sub(before))
    }
}

fn all_of(tid: i32) -> Result<u64> {
    let task = Process::myself().and_then(|process| process.task_from_tid(tid));
    let stat = task.and_then(|task| task.stat());
    let stat = stat.context("cannot count page faults")?;
    Ok(stat.minflt + stat.majflt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_new_memory_is_a_fault() {
        let faults = PageFaults::of_this_thread().unwrap();
        assert_eq!(faults.count().unwrap(), 0);
        faults.begin().unwrap();
        let len = 1 << 20;
        let mut map = memmap2::MmapMut::map_anon(len).unwrap();
        map.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        assert!(faults.count().unwrap() >= 1);
    }
}
