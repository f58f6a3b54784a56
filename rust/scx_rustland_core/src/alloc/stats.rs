// SPDX-License-Identifier: GPL-2.0-only
//! Counters of a heap, readable by other threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Usage of a heap's arena.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HeapStats {
    /// Sum of the requested sizes of all blocks in use. A block that another thread has freed
    /// counts until the owner has reclaimed it.
    pub used_bytes: usize,
    /// Maximum of `used_bytes` so far.
    pub peak_bytes: usize,
    /// How often the owner used the system's allocator because the arena was full.
    pub overflows: u64,
}

/// The counters that [`HeapStats`] shows. Only the owner writes them, so no update is lost.
#[derive(Debug)]
pub(super) struct Counters {
    used_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    overflows: AtomicU64,
}

impl Counters {
    pub(super) const fn new() -> Self {
        Self {
            used_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
            overflows: AtomicU64::new(0),
        }
    }

    pub(super) fn read(&self) -> HeapStats {
        HeapStats {
            used_bytes: self.used_bytes.load(Ordering::Relaxed),
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed),
            overflows: self.overflows.load(Ordering::Relaxed),
        }
    }

    pub(super) fn add_used(&self, bytes: usize) {
        let stats = self.read();
        let used_bytes = stats.used_bytes.saturating_add(bytes);
        self.used_bytes.store(used_bytes, Ordering::Relaxed);
        if used_bytes > stats.peak_bytes {
            self.peak_bytes.store(used_bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn sub_used(&self, bytes: usize) {
        let used_bytes = self.read().used_bytes.saturating_sub(bytes);
        self.used_bytes.store(used_bytes, Ordering::Relaxed);
    }

    pub(super) fn add_overflow(&self) {
        let overflows = self.read().overflows.saturating_add(1);
        self.overflows.store(overflows, Ordering::Relaxed);
    }
}
