// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler counts, of the machine, of each node, and of each domain.

use std::collections::BTreeMap;
use std::fmt;

use scx_stats::{Percent, Stats};
use serde::{Deserialize, Serialize};

use crate::bpf_intf::rusty_counts;

/// Of the machine. Loads are in tasks of nice 0 that always want to run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(
    top,
    desc = "Domains, their loads, and how tasks came to their CPUs",
    _om_prefix = "rusty_"
)]
pub(crate) struct ClusterStats {
    #[stat(desc = "When this was read (us, monotonic clock)")]
    pub(crate) at_us: u64,
    #[stat(desc = "When loads were balanced last (us, monotonic clock)")]
    pub(crate) lb_at_us: u64,
    #[stat(counter, desc = "Times that a task got a CPU")]
    pub(crate) total: u64,
    #[stat(desc = "How long a task may run (us)")]
    pub(crate) slice_us: u64,
    #[stat(desc = "CPU time that was used, of what there is (%)")]
    pub(crate) cpu_busy: f64,
    #[stat(desc = "Load of all tasks")]
    pub(crate) load: f64,
    #[stat(
        counter,
        desc = "Tasks that were moved to another domain to balance loads"
    )]
    pub(crate) nr_migrations: u64,
    #[stat(counter, desc = "Tasks that nothing was known of")]
    pub(crate) task_get_err: u64,
    #[stat(desc = "Time that the last balancing took (s)")]
    pub(crate) time_used: f64,
    #[stat(desc = "Woken by one about to sleep: last CPU, idle, near the waker (% of total)")]
    pub(crate) sync_prev_idle: Percent,
    #[stat(desc = "Woken by one about to sleep: on his CPU (% of total)")]
    pub(crate) wake_sync: Percent,
    #[stat(desc = "Last CPU, idle (% of total)")]
    pub(crate) prev_idle: Percent,
    #[stat(desc = "Last CPU, idle, in another domain (% of total)")]
    pub(crate) greedy_idle: Percent,
    #[stat(desc = "The only CPU allowed, idle (% of total)")]
    pub(crate) pinned: Percent,
    #[stat(desc = "Another idle CPU of its domain, or at once where it woke up (% of total)")]
    pub(crate) direct: Percent,
    #[stat(desc = "Idle CPU of another domain of the node (% of total)")]
    pub(crate) greedy: Percent,
    #[stat(desc = "Idle CPU of another node (% of total)")]
    pub(crate) greedy_far: Percent,
    #[stat(desc = "Waited in the queue of its domain (% of total)")]
    pub(crate) dsq_dispatch: Percent,
    #[stat(desc = "Taken by an idle CPU of another domain of the node (% of total)")]
    pub(crate) greedy_local: Percent,
    #[stat(desc = "Taken by an idle CPU of another node (% of total)")]
    pub(crate) greedy_xnuma: Percent,
    #[stat(desc = "Idle CPUs of other domains woken for a waiting task (% of total)")]
    pub(crate) kick_greedy: Percent,
    #[stat(desc = "Idle CPUs woken for a task that came back from another domain (% of total)")]
    pub(crate) repatriate: Percent,
    #[stat(desc = "Interrupted somebody who could wait, when it woke up (% of total)")]
    pub(crate) preempt: Percent,
    #[stat(
        desc = "Queued with more due to it than is kept: its vtime brought forward (% of total)"
    )]
    pub(crate) dl_clamp: Percent,
    #[stat(desc = "Queued by its own virtual time (% of total)")]
    pub(crate) dl_preset: Percent,
    #[stat(
        desc = "CPUs that tasks of other domains may take if idle, 64 in a word",
        _om_skip
    )]
    pub(crate) direct_greedy_cpus: Vec<u64>,
    #[stat(
        desc = "CPUs that are woken to take tasks of other domains, 64 in a word",
        _om_skip
    )]
    pub(crate) kick_greedy_cpus: Vec<u64>,
    #[stat(desc = "The nodes, by the kernel's ids")]
    pub(crate) nodes: BTreeMap<usize, NodeStats>,
}

/// Of a node.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "A node", _om_prefix = "n_", _om_label = "node")]
pub(crate) struct NodeStats {
    #[stat(desc = "Load of its tasks")]
    pub(crate) load: f64,
    #[stat(desc = "By how much that is more than its share")]
    pub(crate) imbal: f64,
    #[stat(desc = "Load that was moved here, or away if negative")]
    pub(crate) delta: f64,
    #[stat(desc = "Its domains, by their ids")]
    pub(crate) doms: BTreeMap<usize, DomainStats>,
}

/// Of a domain.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "A domain", _om_prefix = "d_", _om_label = "domain")]
pub(crate) struct DomainStats {
    #[stat(desc = "Load of its tasks")]
    pub(crate) load: f64,
    #[stat(desc = "By how much that is more than its share")]
    pub(crate) imbal: f64,
    #[stat(desc = "Load that was moved here, or away if negative")]
    pub(crate) delta: f64,
}

impl ClusterStats {
    /// Puts the counts of all CPUs in.
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
