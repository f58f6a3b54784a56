//! NUMA nodes.

use std::path::Path;

use super::{sysfs, Node};
use crate::cpumask::Cpumask;

/// Maximum number of nodes in the kernel: `MAX_NUMNODES` with the largest `NODES_SHIFT`, 10.
const MAX_NODES: usize = 1024;

/// Default distance of a node to itself: the kernel's `LOCAL_DISTANCE`.
pub const LOCAL_DISTANCE: u32 = 10;

/// Default distance to another node: the kernel's `REMOTE_DISTANCE`.
pub const REMOTE_DISTANCE: u32 = 20;

/// The maximum distance: ACPI's table (SLIT) has one byte for each distance.
const MAX_DISTANCE: u32 = 255;

/// Reads the nodes below `dir`, the directory `node` of sysfs, without their LLCs and cores.
///
/// Each CPU of `online` is in exactly one node: the first node that lists it, or the first of all
/// nodes if none does. Without the directory there is one node with every CPU.
pub(super) fn nodes(dir: &Path, online: &Cpumask) -> Vec<Node> {
    let mut ids = sysfs::numbered(dir, "node", MAX_NODES);
    if ids.is_empty() {
        ids.push(0);
    }
    let mut homeless = online.clone();
    let mut nodes = Vec::with_capacity(ids.len());
    for (index, &id) in ids.iter().enumerate() {
        let dir = dir.join(format!("node{id}"));
        let span = homeless.and(&node_cpus(&dir, online));
        homeless = homeless.and_not(&span);
        nodes.push(Node {
            index,
            kernel_id: id,
            distances: distances(&dir, index, ids.len()),
            llcs: Vec::new(),
            cores: Vec::new(),
            span,
        });
    }
    if let Some(first) = nodes.first_mut() {
        first.span |= &homeless;
    }
    nodes
}

/// The online CPUs of a node, from its list, or else its mask, or else its links to CPUs.
fn node_cpus(dir: &Path, online: &Cpumask) -> Cpumask {
    let list = sysfs::list_within(&dir.join("cpulist"), online);
    let listed = list.or_else(|| sysfs::hex_within(&dir.join("cpumap"), online));
    listed.unwrap_or_else(|| {
        let mut linked = Cpumask::new(online.nr_cpu_ids());
        for cpu in sysfs::numbered(dir, "cpu", online.nr_cpu_ids()) {
            linked.set_range(cpu, cpu);
        }
        online.and(&linked)
    })
}

/// The distances from node `index` to each of `count` nodes, in the order of the node ids, as in
/// the kernel's file. If the file does not have exactly `count` valid distances, all of them have
/// their default values.
fn distances(dir: &Path, index: usize, count: usize) -> Vec<u32> {
    let text = sysfs::text(&dir.join("distance")).unwrap_or_default();
    let parsed = text.split_whitespace().map(|word| {
        let distance = word.parse().ok();
        distance.filter(|distance| (1..=MAX_DISTANCE).contains(distance))
    });
    let row: Option<Vec<u32>> = parsed.collect();
    row.filter(|row| row.len() == count).unwrap_or_else(|| {
        let mut row = vec![REMOTE_DISTANCE; count];
        row[index] = LOCAL_DISTANCE;
        row
    })
}
