// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's statistics.

use std::fmt;

use scx_stats::Stats;
use serde::{Deserialize, Serialize};

use crate::bpf_intf::flash_counts;

/// Sums over all CPUs, and the number of online CPUs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(top, desc = "How tasks were dispatched", _om_prefix = "flash_")]
pub(crate) struct Metrics {
    #[stat(desc = "Running tasks")]
    pub(crate) nr_running: u64,
    #[stat(desc = "Online CPUs")]
    pub(crate) nr_cpus: u64,
    #[stat(
        counter,
        desc = "Per-CPU kernel threads that bypassed the queues because of an option"
    )]
    pub(crate) nr_kthread_dispatches: u64,
    #[stat(counter, desc = "Tasks that went directly to a CPU")]
    pub(crate) nr_direct_dispatches: u64,
    #[stat(
        counter,
        desc = "Tasks that found no idle CPU: they waited in a queue, or preempted at once"
    )]
    pub(crate) nr_shared_dispatches: u64,
    #[stat(counter, desc = "Tasks preempted by others that were new or woke up")]
    pub(crate) nr_preemptions: u64,
}

impl Metrics {
    /// Sums up the counters of all CPUs.
    pub(crate) fn new(nr_cpus: u64, counts: &[flash_counts]) -> Self {
        let sum = |of: fn(&flash_counts) -> u64| counts.iter().map(of).sum::<u64>();
        Self {
            // The two counters of a single CPU must not be subtracted: if the class of a running
            // task is changed from another CPU, that other CPU counts the stop. The difference of
            // the sums may still be negative, because the counters are not read at the same time.
            nr_running: sum(|of| of.nr_started).saturating_sub(sum(|of| of.nr_stopped)),
            nr_cpus,
            nr_kthread_dispatches: sum(|of| of.nr_kthread_dispatches),
            nr_direct_dispatches: sum(|of| of.nr_direct_dispatches),
            nr_shared_dispatches: sum(|of| of.nr_shared_dispatches),
            nr_preemptions: sum(|of| of.nr_preemptions),
        }
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "running={}/{} kthreads={} direct={} shared={} preempted={}",
            self.nr_running,
            self.nr_cpus,
            self.nr_kthread_dispatches,
            self.nr_direct_dispatches,
            self.nr_shared_dispatches,
            self.nr_preemptions,
        )
    }
}
