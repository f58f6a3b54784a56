// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's statistics.

use std::fmt;

use scx_stats::Stats;
use serde::{Deserialize, Serialize};

/// The slice, and the counters summed over all CPUs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(top, desc = "How tasks were dispatched", _om_prefix = "fifo_")]
pub(crate) struct Metrics {
    #[stat(counter, desc = "Tasks that went directly to an idle CPU")]
    pub(crate) nr_local: u64,
    #[stat(counter, desc = "Tasks that waited in the queue")]
    pub(crate) nr_queued: u64,
    #[stat(counter, desc = "Per-CPU kernel threads, which bypass the queue")]
    pub(crate) nr_kthreads: u64,
    #[stat(desc = "Maximum slice (us)")]
    pub(crate) slice_us: u64,
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            nr_local,
            nr_queued,
            nr_kthreads,
            slice_us,
        } = self;
        write!(
            f,
            "local={nr_local} queued={nr_queued} kthreads={nr_kthreads} slice_us={slice_us}"
        )
    }
}
