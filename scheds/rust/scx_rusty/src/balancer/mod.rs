// SPDX-License-Identifier: GPL-2.0-only
//! Balances loads between domains: a snapshot of loads in, a list of migrations out.
//!
//! The share of a domain is proportional to its number of CPUs. A round moves load in two passes,
//! first between nodes, and then between the domains of each node. Shares are relative to the load
//! of the machine in the first pass, and of the node in the second one.
//!
//! A migration brings two domains closer together: afterwards, neither has a load per CPU as high
//! as the fuller one had, or as low as the other one had. So the maximum never increases, and
//! rounds terminate: of all loads per CPU in descending order, the first one that changes
//! decreases.
//!
//! Loads are in percent of a CPU for tasks of nice 0: 100 for one that is always runnable.

use scx_utils::infeasible::{LoadAggregator, LoadKind, WEIGHT_MAX};

mod cluster;
mod mask;
mod sorted_tasks;

use cluster::Cluster;
pub(crate) use mask::DomainMask;

/// Upper bound of the number of domains.
pub(crate) const DOMAINS_MAX: usize = 256;

/// The load of a task that is always runnable, if it is of nice 0 or weights are ignored.
const LOAD_BUSY: f64 = 100.0;

/// What a pass may move, given what its migrations cost. All numbers are relative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// Tolerated deviation from a group's share.
    pub(crate) threshold: f64,
    /// The part of the smaller of two imbalances that one group transfers to the other.
    pub(crate) transfer: f64,
    /// The part of its imbalance that a group may give in a round. It may be exceeded by one task.
    pub(crate) push_max: f64,
}

/// The expensive pass: a task's memory stays behind. Values of earlier versions of `scx_rusty`.
pub(crate) const BETWEEN_NODES: Costs = Costs {
    threshold: 0.17,
    transfer: 0.5,
    push_max: 0.5,
};

/// The cheap pass: only the contents of caches stay behind. Values of earlier versions of
/// `scx_rusty`.
pub(crate) const WITHIN_NODE: Costs = Costs {
    threshold: 0.05,
    transfer: 0.5,
    push_max: 0.5,
};

/// The state of a domain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Domain {
    /// Dense index of its node.
    pub(crate) node: usize,
    /// Number of online CPUs, at least one: CPU hotplug restarts the scheduler, with new domains.
    pub(crate) nr_cpus: u32,
}

/// The state of a task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) pid: i32,
    /// 1 to 10000; 100 is nice 0.
    pub(crate) weight: u32,
    /// The average fraction of time that it is runnable, 0 to 1.
    pub(crate) duty_cycle: f64,
    /// Index of its domain. If out of range, the task is ignored.
    pub(crate) domain: usize,
    /// The domains where it is allowed.
    pub(crate) allowed: DomainMask,
    /// The domains near its memory; empty: no preference.
    pub(crate) preferred: DomainMask,
    /// Whether it may migrate. Its load counts either way.
    pub(crate) may_migrate: bool,
}

/// The input of the balancer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// Up to [`DOMAINS_MAX`].
    pub(crate) domains: Vec<Domain>,
    pub(crate) tasks: Vec<Task>,
}

/// A migration of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Migration {
    pub(crate) pid: i32,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// The load of a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct DomainLoad {
    /// Before the migrations.
    pub(crate) load: f64,
    /// `load` minus its share of the machine's total load.
    pub(crate) imbal: f64,
    /// Change by the migrations.
    pub(crate) delta: f64,
}

/// The load of a node: the sums of its domains.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NodeLoad {
    /// See [`DomainLoad`].
    pub(crate) load: f64,
    /// See [`DomainLoad`].
    pub(crate) imbal: f64,
    /// See [`DomainLoad`]; migrations within the node do not count.
    pub(crate) delta: f64,
    /// Indexes of its domains.
    pub(crate) domains: Vec<usize>,
}

/// The loads, and the migrations.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plan {
    /// The load of the machine.
    pub(crate) total_load: f64,
    /// Indexed by node.
    pub(crate) nodes: Vec<NodeLoad>,
    /// Indexed by domain.
    pub(crate) domains: Vec<DomainLoad>,
    /// At most one per task.
    pub(crate) migrations: Vec<Migration>,
}

/// One round. Use [`LoadKind::Weighted`] while all CPUs are busy, when weights determine CPU time,
/// and otherwise [`LoadKind::DutyCycle`].
///
/// Takes O(n log n) for n tasks that may go anywhere. A task with a restricted affinity may be
/// looked at once for each pair of domains (or nodes) that give and take.
pub(crate) fn balance(snapshot: &Snapshot, kind: LoadKind) -> Plan {
    let loads = task_loads(snapshot, kind);
    let mut cluster = Cluster::new(snapshot, loads);
    cluster.balance_nodes(&BETWEEN_NODES);
    cluster.balance_domains(&WITHIN_NODE);
    cluster.into_plan()
}

/// The load of each task.
fn task_loads(snapshot: &Snapshot, kind: LoadKind) -> Vec<f64> {
    let weight_of = |task: &Task| task.weight.clamp(1, WEIGHT_MAX);
    if kind == LoadKind::DutyCycle {
        let load = |task: &Task| LOAD_BUSY * duty_cycle(task);
        return snapshot.tasks.iter().map(load).collect();
    }
    let nr_cpus = snapshot.domains.iter().map(|domain| domain.nr_cpus).sum();
    let mut aggregator = LoadAggregator::new(nr_cpus, kind);
    let known = |task: &&Task| task.domain < snapshot.domains.len();
    for task in snapshot.tasks.iter().filter(known) {
        // The aggregator is only used to find the feasible weights, which do not depend on domains:
        // all tasks count as those of domain 0. It refuses none, because all values are in range.
        let _ = aggregator.record(0, weight_of(task), duty_cycle(task));
    }
    let ledger = aggregator.calculate();
    let load = |task: &Task| ledger.effective_load(weight_of(task), duty_cycle(task));
    snapshot.tasks.iter().map(load).collect()
}

fn duty_cycle(task: &Task) -> f64 {
    if task.duty_cycle.is_nan() {
        return 0.0;
    }
    task.duty_cycle.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests;
