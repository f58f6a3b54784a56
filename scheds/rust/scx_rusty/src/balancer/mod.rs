// SPDX-License-Identifier: GPL-2.0-only
//! Balances loads between domains: a snapshot of loads in, a list of migrations out.
//!
//! Each domain is due a part of the load by its CPUs. A round moves load in two passes, first from
//! node to node, and then from domain to domain of each node; what is due in a pass is a part of
//! what the parties of the pass have together. A domain that has lost its CPUs is emptied before.
//!
//! A migration brings two domains closer together: neither is then as full, by CPU, as the fuller
//! one was, nor as empty as the emptier one. So the worst never gets worse, and rounds come to an
//! end: of all loads by CPU, sorted from the highest down, the first that changes gets smaller.
//!
//! Loads are in hundredths of a CPU for tasks of nice 0: 100 for one that always wants to run.

use scx_utils::infeasible::{LoadAggregator, LoadKind, WEIGHT_MAX};

mod cluster;
mod mask;
mod shelf;

use cluster::Cluster;
pub(crate) use mask::DomainMask;

/// There are no more domains than that.
pub(crate) const DOMAINS_MAX: usize = 256;

/// The load of a task that always wants to run, of nice 0 or while weights do not count.
const LOAD_BUSY: f64 = 100.0;

/// What a pass costs, and so how much is moved at once. Each is a part of 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// Of what a party is due: so far off it may be.
    pub(crate) threshold: f64,
    /// Of the smaller of two imbalances: so much one party gives to the other.
    pub(crate) transfer: f64,
    /// Of its imbalance: so much a party gives in a round, or one task that is heavier.
    pub(crate) push_max: f64,
}

/// Memory stays behind. From facts: earlier `scx_rusty`.
pub(crate) const BETWEEN_NODES: Costs = Costs {
    threshold: 0.17,
    transfer: 0.5,
    push_max: 0.5,
};

/// Only what is cached stays behind. From facts: earlier `scx_rusty`.
pub(crate) const WITHIN_NODE: Costs = Costs {
    threshold: 0.05,
    transfer: 0.5,
    push_max: 0.5,
};

/// A domain as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Domain {
    /// Dense index of its node.
    pub(crate) node: usize,
    /// CPUs that are online. A domain without any gives everything away.
    pub(crate) nr_cpus: u32,
}

/// A task as it is.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) pid: i32,
    /// 1 to 10000; 100 is nice 0.
    pub(crate) weight: u32,
    /// The part of the time that it wants to run, 0 to 1.
    pub(crate) duty_cycle: f64,
    /// Index of the domain where it is. With an index that is none it is left out.
    pub(crate) domain: usize,
    /// The domains where it may be.
    pub(crate) allowed: DomainMask,
    /// The domains where it is better off, as its memory is there. None: no preference.
    pub(crate) preferred: DomainMask,
    /// Whether it may be moved at all. Its load counts either way.
    pub(crate) may_migrate: bool,
}

/// What is to be balanced.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// Up to [`DOMAINS_MAX`].
    pub(crate) domains: Vec<Domain>,
    pub(crate) tasks: Vec<Task>,
}

/// A task that goes from one domain to another.
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
    /// What `load` is above its part of the machine's whole load, by CPUs, or below (negative).
    pub(crate) imbal: f64,
    /// What the migrations bring, or take away (negative).
    pub(crate) delta: f64,
}

/// The load of a node: the sums of its domains.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NodeLoad {
    /// See [`DomainLoad`].
    pub(crate) load: f64,
    /// See [`DomainLoad`].
    pub(crate) imbal: f64,
    /// See [`DomainLoad`]; what goes from domain to domain of the node does not count.
    pub(crate) delta: f64,
    /// Indexes of its domains.
    pub(crate) domains: Vec<usize>,
}

/// What was found, and what is to be done about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plan {
    /// The load of the machine.
    pub(crate) total_load: f64,
    /// By index of the node.
    pub(crate) nodes: Vec<NodeLoad>,
    /// By index of the domain.
    pub(crate) domains: Vec<DomainLoad>,
    /// Each task is there once at most.
    pub(crate) migrations: Vec<Migration>,
}

/// One round. Use [`LoadKind::Weighted`] while all CPUs are busy, as weights decide about CPU time
/// then, and else [`LoadKind::DutyCycle`].
///
/// Takes n log n for n tasks that are free to go anywhere. Those that are not are passed by once
/// for each pair of a domain (or node) that gives and one that takes.
pub(crate) fn balance(snapshot: &Snapshot, kind: LoadKind) -> Plan {
    let loads = task_loads(snapshot, kind);
    let mut cluster = Cluster::new(snapshot, loads);
    cluster.evacuate();
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
        // Nothing that it refuses is left. It is asked for the weight that is feasible only, so
        // that it need not know the domains.
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
