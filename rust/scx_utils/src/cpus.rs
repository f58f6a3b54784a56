// SPDX-License-Identifier: GPL-2.0-only
//! The table of CPUs for BPF programs that select CPUs themselves (`<scx/cpus.h>`).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use anyhow::{ensure, Context as _, Result};
use zerocopy::{FromZeros, Immutable, IntoBytes};

use crate::topology::{CoreType, Cpu, Topology};

/// `SCX_CPUS_MAX`.
pub(crate) const CPUS_MAX: usize = 8192;
/// `SCX_NODES_MAX`.
const NODES_MAX: usize = 128;

/// The section of the table.
pub(crate) const SECTION: &str = ".rodata.scx_cpus";

/// Which CPUs form a group of the table. The CPUs of a group share a DSQ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grouping {
    /// All CPUs of the machine.
    Machine,
    /// The CPUs of a NUMA node.
    #[default]
    Nodes,
    /// The CPUs of a NUMA node that share a last-level cache and are of one kind: little or not
    /// little.
    Domains,
}

/// Which parts of the topology to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// Treat SMT siblings as separate cores.
    pub(crate) ignore_smt: bool,
    pub(crate) grouping: Grouping,
}

/// What the CPUs of a group have in common: NUMA node, last-level cache, and whether they are
/// little. Properties that a [`Grouping`] ignores are 0 or false.
type GroupKey = (usize, usize, bool);

impl Grouping {
    fn key(self, cpu: &Cpu) -> GroupKey {
        match self {
            Self::Machine => GroupKey::default(),
            Self::Nodes => (cpu.node, 0, false),
            Self::Domains => (cpu.node, cpu.llc, cpu.core_type == CoreType::Little),
        }
    }

    /// The sorted keys of all groups, in which groups of the same node are adjacent.
    fn groups(self, topology: &Topology) -> Vec<GroupKey> {
        let keys: BTreeSet<_> = topology.cpus().iter().map(|cpu| self.key(cpu)).collect();
        keys.into_iter().collect()
    }
}

/// `struct scx_cpu`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromZeros, Immutable, IntoBytes)]
#[repr(C)]
struct Entry {
    sibling: u16,
    llc: u16,
    node: u16,
    capacity: u16,
    by_capacity: u16,
    is_little: u16,
}

/// `struct scx_cpus`.
#[derive(FromZeros, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct Table {
    pub(crate) throttle_ns: u64,
    pub(crate) throttle_run_ns: u64,
    pub(crate) perf_level: i32,
    nr_cpu_ids: u32,
    nr_online: u32,
    nr_nodes: u32,
    has_smt: u32,
    is_hybrid: u32,
    node_id: [i32; NODES_MAX],
    near_first: [u16; NODES_MAX],
    near_nr: [u16; NODES_MAX],
    cpu: [Entry; CPUS_MAX],
}

impl Table {
    pub(crate) fn new(topology: &Topology, used: Use) -> Result<Box<Self>> {
        let nr_cpu_ids = topology.nr_cpu_ids();
        ensure!(
            nr_cpu_ids <= CPUS_MAX,
            "{nr_cpu_ids} CPU ids are more than {CPUS_MAX}"
        );
        let groups = used.grouping.groups(topology);
        ensure!(
            groups.len() <= NODES_MAX,
            "{} groups of CPUs are more than {NODES_MAX}",
            groups.len()
        );
        let mut table = Box::new(Self::new_zeroed());
        table.nr_cpu_ids = nr_cpu_ids.try_into()?;
        table.nr_online = topology.nr_cpus_online().try_into()?;
        table.has_smt = (topology.smt_enabled() && !used.ignore_smt).into();
        table.set_groups(topology, &groups)?;
        table.set_cpus(topology, used.grouping, &groups)?;
        table.rank(topology)?;
        Ok(table)
    }

    /// The number of groups.
    pub(crate) fn nr_nodes(&self) -> u32 {
        self.nr_nodes
    }

    fn set_groups(&mut self, topology: &Topology, groups: &[GroupKey]) -> Result<()> {
        self.nr_nodes = groups.len().try_into()?;
        for (index, (node, ..)) in groups.iter().enumerate() {
            let of_node = |(other, ..): &GroupKey| other == node;
            let kernel_id = topology.nodes().get(*node).map(|node| node.kernel_id);
            self.node_id[index] = match kernel_id {
                Some(id) if topology.nodes().len() > 1 && groups.len() > 1 => id.try_into()?,
                _ => -1,
            };
            let first = groups.iter().position(of_node).unwrap_or(index);
            self.near_first[index] = first.try_into()?;
            self.near_nr[index] = groups
                .iter()
                .filter(|key| of_node(key))
                .count()
                .try_into()?;
        }
        Ok(())
    }

    fn set_cpus(
        &mut self,
        topology: &Topology,
        grouping: Grouping,
        groups: &[GroupKey],
    ) -> Result<()> {
        for cpu in topology.cpus() {
            let siblings = topology.siblings(cpu.id).into_iter();
            let mut others = siblings.flat_map(|of| of.iter()).filter(|id| *id != cpu.id);
            let group = groups.binary_search(&grouping.key(cpu));
            let entry = self
                .cpu
                .get_mut(cpu.id)
                .context("a CPU beyond nr_cpu_ids")?;
            entry.sibling = others.next().unwrap_or(cpu.id).try_into()?;
            entry.llc = cpu.llc.try_into()?;
            entry.node = group.unwrap_or_default().try_into()?;
            entry.capacity = cpu.capacity.try_into()?;
            entry.is_little = (cpu.core_type == CoreType::Little).into();
        }
        Ok(())
    }

    fn rank(&mut self, topology: &Topology) -> Result<()> {
        let mut ranked: Vec<_> = topology.cpus().iter().collect();
        ranked.sort_by_key(|cpu| (Reverse(cpu.capacity), cpu.id));
        for (rank, cpu) in ranked.iter().enumerate() {
            self.cpu[rank].by_capacity = cpu.id.try_into()?;
        }
        let of = |cpu: Option<&&Cpu>| cpu.map(|cpu| cpu.capacity);
        self.is_hybrid = (of(ranked.first()) != of(ranked.last())).into();
        Ok(())
    }
}
