// SPDX-License-Identifier: GPL-2.0-only
//! The orders in which CPUs become active.

use std::cmp::Reverse;

use anyhow::{Context as _, Result};
use scx_utils::topology::{Cpu, Topology};
use scx_utils::zerocopy::FromZeros as _;

use crate::bpf_intf::lavd_orders;

/// Fills the table of orders for the BPF side.
///
/// # Errors
///
/// If the machine has too many CPUs.
pub(crate) fn table(topology: &Topology) -> Result<Box<lavd_orders>> {
    let mut table = Box::new(lavd_orders::new_zeroed());
    fill(&mut table.performance, &performance(topology))?;
    fill(&mut table.powersave, &powersave(topology))?;
    Ok(table)
}

fn fill(row: &mut [u16], order: &[usize]) -> Result<()> {
    for (index, id) in order.iter().enumerate() {
        *row.get_mut(index).context("too many CPUs")? = u16::try_from(*id)?;
    }
    Ok(())
}

fn sorted<K: Ord>(topology: &Topology, key: impl Fn(&Cpu) -> K) -> Vec<usize> {
    let mut cpus: Vec<&Cpu> = topology.cpus().iter().collect();
    cpus.sort_by_key(|cpu| key(cpu));
    cpus.iter().map(|cpu| cpu.id).collect()
}

/// The order for all modes except powersave: the first threads of all cores, then the second
/// threads, and so on. In each part, the CPUs of a last-level cache are adjacent, with the fastest
/// CPU first.
fn performance(topology: &Topology) -> Vec<usize> {
    sorted(topology, |cpu| {
        let place = (cpu.sibling_index, cpu.node, cpu.llc);
        (place, Reverse(cpu.capacity), cpu.core, cpu.id)
    })
}

/// The order for powersave mode: all threads of a core before the next core, so that the other
/// cores can stay in deep idle states. Within a last-level cache, the slowest CPUs are first on a
/// machine with little CPUs, else the fastest CPUs.
fn powersave(topology: &Topology) -> Vec<usize> {
    let has_little = topology.has_little_cores();
    sorted(topology, |cpu| {
        let rank = if has_little {
            i64::from(cpu.capacity)
        } else {
            -i64::from(cpu.capacity)
        };
        let place = (cpu.node, cpu.llc);
        (place, rank, cpu.core, cpu.sibling_index, cpu.id)
    })
}
