// SPDX-License-Identifier: GPL-2.0-only
//! Computes, from a snapshot of loads, the migrations that balance the domains.
//!
//! The share of a domain is proportional to its number of CPUs. A round moves load in two passes,
//! first between nodes, and then between the domains of each node. In the first pass, a share is a
//! part of the load of the machine. In the second pass, it is a part of the load of the node.
//!
//! A migration makes the loads per CPU of two domains less different: both end below the higher and
//! above the lower of the two previous values. So the highest load per CPU never increases. If
//! the loads of tasks do not change, migrations come to an end, because each of them makes the list
//! of all loads per CPU, in descending order, lexicographically smaller.
//!
//! The load of a task of nice 0 that is always runnable is 100, or less if its weight is clamped
//! ([`LoadKind::Weighted`]; see `scx_utils::infeasible`).

use scx_utils::infeasible::{LoadAggregator, LoadKind, WEIGHT_MAX};

mod cluster;
mod mask;
mod sorted_tasks;

use cluster::Cluster;
pub(crate) use mask::DomainMask;

/// Upper bound of the number of domains.
pub(crate) const DOMAINS_MAX: usize = 256;

/// The load of a task that is always runnable, if it is of nice 0 or if weights are ignored.
const LOAD_BUSY: f64 = 100.0;

/// The limits of a pass, which depend on the cost of its migrations. All numbers are fractions. A
/// very small load that results from `transfer` or `push_max` is raised to `Share::transfer_min`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// Tolerated deviation of a group (a node or a domain) from its share.
    pub(crate) threshold: f64,
    /// The part of an imbalance that one group transfers to another. If the imbalances of the two
    /// groups differ, the smaller one counts.
    pub(crate) transfer: f64,
    /// The part of its imbalance that a group may give in a pass. The first task that the group
    /// gives may be heavier than that.
    pub(crate) push_max: f64,
}

/// Migrations between nodes are expensive, because the memory of the task stays behind. The values
/// are from earlier versions of `scx_rusty`.
pub(crate) const BETWEEN_NODES: Costs = Costs {
    threshold: 0.17,
    transfer: 0.5,
    push_max: 0.5,
};

/// Migrations within a node are cheap, because only the contents of caches stay behind. The values
/// are from earlier versions of `scx_rusty`.
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
    /// Number of online CPUs, at least 1. It is constant, because CPU hotplug restarts the
    /// scheduler.
    pub(crate) nr_cpus: u32,
}

/// The state of a task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) pid: i32,
    /// 1 to 10000; 100 is nice 0.
    pub(crate) weight: u32,
    /// The average fraction of time for which the task is runnable, 0 to 1.
    pub(crate) duty_cycle: f64,
    /// Index of the domain of the task. If it is out of range, the task is ignored.
    pub(crate) domain: usize,
    /// The domains where the task is allowed.
    pub(crate) allowed: DomainMask,
    /// The domains of the nodes that the task's memory policy prefers; empty: no preference.
    pub(crate) preferred: DomainMask,
    /// Whether the task may migrate. If not, its load still counts.
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
    /// The load before the migrations.
    pub(crate) load: f64,
    /// `load` minus the domain's share of the machine's total load.
    pub(crate) imbal: f64,
    /// Change of the load by the migrations.
    pub(crate) delta: f64,
}

/// The load of a node. The numbers are sums over its domains.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NodeLoad {
    /// See [`DomainLoad`].
    pub(crate) load: f64,
    /// See [`DomainLoad`].
    pub(crate) imbal: f64,
    /// See [`DomainLoad`]; migrations within the node do not count.
    pub(crate) delta: f64,
    /// Indexes of the domains of the node.
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

/// Plans a round. Use [`LoadKind::Weighted`] while all CPUs are busy, when weights determine CPU
/// time, and [`LoadKind::DutyCycle`] otherwise.
///
/// This takes O(n log n) for n tasks that are allowed in all domains. A task with a restricted
/// affinity may be examined again for each pair of domains (or nodes) between which load is
/// transferred.
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
        // The aggregator is used only to clamp infeasible weights (`scx_utils::infeasible`). This
        // does not depend on domains, so all tasks are recorded in domain 0. Recording cannot fail,
        // because all values are in range.
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
