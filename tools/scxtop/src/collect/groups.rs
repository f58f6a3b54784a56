// SPDX-License-Identifier: GPL-2.0-only
//! LLCs and nodes: sums, means and ranges over their online CPUs.

use scx_utils::topology::Topology;

use super::cpus::Counted;
use crate::histogram::Latency;
use crate::model::Group;

pub(super) fn llcs(topology: &Topology, cpus: &[Counted]) -> Vec<Group> {
    let groups = topology.llcs().iter().map(|llc| {
        let of = |cpu: &&Counted| cpu.shown.llc as usize == llc.index;
        group(llc.index, llc.node, cpus.iter().filter(of), |cpu| {
            cpu.migrations_llc
        })
    });
    groups.collect()
}

pub(super) fn nodes(topology: &Topology, cpus: &[Counted]) -> Vec<Group> {
    let groups = topology.nodes().iter().map(|node| {
        let of = |cpu: &&Counted| cpu.shown.node as usize == node.index;
        group(node.index, node.index, cpus.iter().filter(of), |cpu| {
            cpu.migrations_node
        })
    });
    groups.collect()
}

/// The group of `cpus`. `outside` returns a CPU's rate of migrations from outside the group.
fn group<'a>(
    id: usize,
    node: usize,
    cpus: impl Iterator<Item = &'a Counted>,
    outside: impl Fn(&Counted) -> f64,
) -> Group {
    let cpus: Vec<&Counted> = cpus.filter(|cpu| cpu.shown.is_online).collect();
    let busy = || cpus.iter().map(|cpu| cpu.shown.busy_pct);
    let migrations: f64 = cpus.iter().map(|cpu| cpu.shown.migrations).sum();
    let migrations_in: f64 = cpus.iter().map(|cpu| outside(cpu)).sum();
    #[allow(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let nr_cpus = cpus.len().max(1) as f64;
    Group {
        id: u32::try_from(id).unwrap_or(u32::MAX),
        node: u32::try_from(node).unwrap_or(u32::MAX),
        cpus: cpus.iter().map(|cpu| cpu.shown.id).collect(),
        busy_pct: busy().sum::<f64>() / nr_cpus,
        busy_min_pct: busy().reduce(f64::min).unwrap_or(0.0),
        busy_max_pct: busy().reduce(f64::max).unwrap_or(0.0),
        migrations_in,
        migrations_within: (migrations - migrations_in).max(0.0),
        switches: cpus.iter().map(|cpu| cpu.shown.switches).sum(),
        wakeup: Latency::sum(cpus.iter().map(|cpu| &cpu.shown.wakeup)),
    }
}
