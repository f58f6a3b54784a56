// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of the machine, of each node, and of each domain.

use std::collections::BTreeMap;
use std::fmt;

use scx_stats::{Percent, Stats};
use serde::{Deserialize, Serialize};

use crate::bpf_intf::rusty_counts;

/// Statistics of the machine. The unit of loads is a task of nice 0 that is always runnable.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(
    top,
    desc = "Domains, their loads, and how tasks were dispatched",
    _om_prefix = "rusty_"
)]
pub(crate) struct ClusterStats {
    #[stat(desc = "Time of these statistics (us, monotonic clock)")]
    pub(crate) at_us: u64,
    #[stat(desc = "Time of the last balancing (us, monotonic clock)")]
    pub(crate) lb_at_us: u64,
    #[stat(counter, desc = "Dispatches")]
    pub(crate) total: u64,
    #[stat(desc = "Slice (us)")]
    pub(crate) slice_us: u64,
    #[stat(desc = "CPU utilization (%)")]
    pub(crate) cpu_busy: f64,
    #[stat(desc = "Load of all tasks")]
    pub(crate) load: f64,
    #[stat(counter, desc = "Tasks migrated to another domain by the balancer")]
    pub(crate) nr_migrations: u64,
    #[stat(counter, desc = "Failed lookups of task contexts")]
    pub(crate) task_get_err: u64,
    #[stat(desc = "Duration of the last balancing (s)")]
    pub(crate) time_used: f64,
    #[stat(desc = "Sync wakeup: previous CPU, idle, in the waker's domain (% of total)")]
    pub(crate) sync_prev_idle: Percent,
    #[stat(desc = "Sync wakeup: the waker's CPU (% of total)")]
    pub(crate) wake_sync: Percent,
    #[stat(desc = "Previous CPU, idle (% of total)")]
    pub(crate) prev_idle: Percent,
    #[stat(desc = "Previous CPU, idle, in another domain (% of total)")]
    pub(crate) greedy_idle: Percent,
    #[stat(desc = "Pinned, its CPU idle (% of total)")]
    pub(crate) pinned: Percent,
    #[stat(desc = "Another idle CPU of its domain, or a task that bypasses queues (% of total)")]
    pub(crate) direct: Percent,
    #[stat(desc = "Idle CPU of another domain of the node (% of total)")]
    pub(crate) greedy: Percent,
    #[stat(desc = "Idle CPU of another node (% of total)")]
    pub(crate) greedy_far: Percent,
    #[stat(desc = "Waited in the queue of its domain or CPU (% of total)")]
    pub(crate) dsq_dispatch: Percent,
    #[stat(desc = "Taken by a CPU of another domain of the node (% of total)")]
    pub(crate) greedy_local: Percent,
    #[stat(desc = "Taken by a CPU of another node (% of total)")]
    pub(crate) greedy_xnuma: Percent,
    #[stat(desc = "Idle CPUs of other domains kicked for a waiting task (% of total)")]
    pub(crate) kick_greedy: Percent,
    #[stat(desc = "Idle CPUs kicked for a task that returned to its domain (% of total)")]
    pub(crate) repatriate: Percent,
    #[stat(desc = "Preempted a task with a later deadline on wakeup (% of total)")]
    pub(crate) preempt: Percent,
    #[stat(desc = "Queued with its credit cut to the bound (% of total)")]
    pub(crate) dl_clamp: Percent,
    #[stat(desc = "Queued by its own vtime (% of total)")]
    pub(crate) dl_preset: Percent,
    #[stat(
        desc = "CPUs that tasks of other domains may use if idle, 64 in a word",
        _om_skip
    )]
    pub(crate) direct_greedy_cpus: Vec<u64>,
    #[stat(
        desc = "CPUs that are kicked to steal tasks of other domains, 64 in a word",
        _om_skip
    )]
    pub(crate) kick_greedy_cpus: Vec<u64>,
    #[stat(desc = "The nodes, by the kernel's ids")]
    pub(crate) nodes: BTreeMap<usize, NodeStats>,
}

/// Statistics of a node.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "A node", _om_prefix = "n_", _om_label = "node")]
pub(crate) struct NodeStats {
    #[stat(desc = "Load of its tasks")]
    pub(crate) load: f64,
    #[stat(desc = "Excess over its share")]
    pub(crate) imbal: f64,
    #[stat(desc = "Load migrated to it, negative: away from it")]
    pub(crate) delta: f64,
    #[stat(desc = "Its domains, by their ids")]
    pub(crate) doms: BTreeMap<usize, DomainStats>,
}

/// Statistics of a domain.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "A domain", _om_prefix = "d_", _om_label = "domain")]
pub(crate) struct DomainStats {
    #[stat(desc = "Load of its tasks")]
    pub(crate) load: f64,
    #[stat(desc = "Excess over its share")]
    pub(crate) imbal: f64,
    #[stat(desc = "Load migrated to it, negative: away from it")]
    pub(crate) delta: f64,
}

impl ClusterStats {
    /// Sums up the counters of all CPUs.
    pub(crate) fn count(&mut self, counts: &[rusty_counts]) {
        let sum = |of: fn(&rusty_counts) -> u64| counts.iter().map(of).sum::<u64>();
        self.total = sum(|c| c.wake_sync_prev_idle + c.wake_sync + c.prev_idle + c.greedy_idle)
            + sum(|c| c.pinned + c.direct + c.greedy + c.greedy_far)
            + sum(|c| c.dsq_dispatch + c.greedy_local + c.greedy_xnuma);
        self.nr_migrations = sum(|c| c.migrations);
        self.task_get_err = sum(|c| c.task_get_err);
        let total = self.total;
        let percent = |of| Percent::of(sum(of), total);
        self.sync_prev_idle = percent(|c| c.wake_sync_prev_idle);
        self.wake_sync = percent(|c| c.wake_sync);
        self.prev_idle = percent(|c| c.prev_idle);
        self.greedy_idle = percent(|c| c.greedy_idle);
        self.pinned = percent(|c| c.pinned);
        self.direct = percent(|c| c.direct);
        self.greedy = percent(|c| c.greedy);
        self.greedy_far = percent(|c| c.greedy_far);
        self.dsq_dispatch = percent(|c| c.dsq_dispatch);
        self.greedy_local = percent(|c| c.greedy_local);
        self.greedy_xnuma = percent(|c| c.greedy_xnuma);
        self.kick_greedy = percent(|c| c.kick_greedy);
        self.repatriate = percent(|c| c.repatriate);
        self.preempt = percent(|c| c.preempt);
        self.dl_clamp = percent(|c| c.dl_clamp);
        self.dl_preset = percent(|c| c.dl_preset);
    }
}

impl fmt::Display for ClusterStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "total={} busy={:.1}% load={:.2} migrations={} slice_us={} idle={:.1}% queued={:.1}% \
             stolen={:.1}%",
            self.total,
            self.cpu_busy,
            self.load,
            self.nr_migrations,
            self.slice_us,
            self.sync_prev_idle.get()
                + self.prev_idle.get()
                + self.greedy_idle.get()
                + self.direct.get()
                + self.greedy.get()
                + self.greedy_far.get(),
            self.dsq_dispatch.get(),
            self.greedy_local.get() + self.greedy_xnuma.get(),
        )?;
        for (node, of_node) in &self.nodes {
            for (domain, of) in &of_node.doms {
                write!(f, " N{node}/D{domain}={:.2}({:+.2})", of.load, of.imbal)?;
            }
        }
        Ok(())
    }
}
