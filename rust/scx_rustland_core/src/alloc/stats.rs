// SPDX-License-Identifier: GPL-2.0-only
//! What a heap counts, for other threads to read.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How much of a heap's arena is in use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HeapStats {
    /// Blocks in use. What other threads have freed is, until the owner has taken it back.
    pub used_bytes: usize,
    /// The most that was ever in use.
    pub peak_bytes: usize,
    /// How often the owner was given memory of the system, because the arena had none for it.
    pub overflows: u64,
}

/// What [`HeapStats`] is made of. Only the owner writes: no update is lost.
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
