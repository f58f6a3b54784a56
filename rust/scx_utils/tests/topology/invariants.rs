//! Invariants of every topology.

use scx_utils::cpumask::Cpumask;
use scx_utils::topology::{Topology, MAX_CAPACITY};

/// Panics if an invariant is violated.
pub(crate) fn check(topology: &Topology) {
    check_masks(topology);
    check_nodes(topology);
    check_llcs(topology);
    check_cores(topology);
    check_cpus(topology);
    let printed = topology.to_string();
    assert!(
        printed.ends_with('\n') && !printed.contains(" \n"),
        "{printed}"
    );
    serde_json::to_string(topology).expect("a topology has a JSON form");
}

fn check_masks(topology: &Topology) {
    assert!(!topology.online().is_empty());
    assert!(topology.online().is_subset(topology.present()));
    assert!(topology.present().is_subset(topology.possible()));
    assert_eq!(topology.possible().last(), Some(topology.nr_cpu_ids() - 1));
    assert_eq!(topology.nr_cpus_possible(), topology.possible().weight());
    assert_eq!(topology.nr_cpus_online(), topology.online().weight());
    assert_eq!(topology.span(), topology.online());
}

fn check_nodes(topology: &Topology) {
    let nodes = topology.nodes();
    assert_partition(topology, nodes.iter().map(|node| node.span()));
    assert!(nodes.is_sorted_by(|a, b| a.kernel_id < b.kernel_id));
    let mut llcs: Vec<_> = nodes.iter().flat_map(|node| &node.llcs).collect();
    let mut cores: Vec<_> = nodes.iter().flat_map(|node| &node.cores).collect();
    llcs.sort_unstable();
    cores.sort_unstable();
    assert!(llcs.iter().copied().copied().eq(0..topology.llcs().len()));
    assert!(cores.iter().copied().copied().eq(0..topology.cores().len()));
    for (index, node) in nodes.iter().enumerate() {
        assert_eq!(node.index, index);
        assert_eq!(node.distances.len(), nodes.len());
        assert!(node
            .distances
            .iter()
            .all(|distance| (1..=255).contains(distance)));
        let llcs = node.llcs.iter().map(|&llc| topology.llcs()[llc].span());
        assert_eq!(&union(topology, llcs), node.span());
        let cores = node.cores.iter().map(|&core| topology.cores()[core].span());
        assert_eq!(&union(topology, cores), node.span());
    }
}

fn check_llcs(topology: &Topology) {
    let llcs = topology.llcs();
    assert_partition(topology, llcs.iter().map(|llc| llc.span()));
    assert!(llcs.is_sorted_by_key(|llc| (llc.node, llc.package_id, llc.kernel_id)));
    let mut cores: Vec<_> = llcs.iter().flat_map(|llc| &llc.cores).collect();
    cores.sort_unstable();
    assert!(cores.iter().copied().copied().eq(0..topology.cores().len()));
    for (index, llc) in llcs.iter().enumerate() {
        assert_eq!(llc.index, index);
        assert!(!llc.span().is_empty());
        assert!(llc.span().is_subset(topology.nodes()[llc.node].span()));
        let cores = llc.cores.iter().map(|&core| topology.cores()[core].span());
        assert_eq!(&union(topology, cores), llc.span());
    }
}

fn check_cores(topology: &Topology) {
    let cores = topology.cores();
    assert_partition(topology, cores.iter().map(|core| core.span()));
    assert!(cores.is_sorted_by_key(|core| (core.node, core.package_id)));
    for (index, core) in cores.iter().enumerate() {
        assert_eq!(core.index, index);
        assert!(!core.span().is_empty());
        assert!(core.span().is_subset(topology.llcs()[core.llc].span()));
        assert_eq!(core.node, topology.llcs()[core.llc].node);
        for (place, cpu) in core.span().iter().enumerate() {
            let cpu = topology.cpu(cpu).expect("siblings are online");
            assert_eq!((cpu.core, cpu.sibling_index), (index, place));
        }
    }
}

fn check_cpus(topology: &Topology) {
    let cpus = topology.cpus();
    assert!(cpus.iter().map(|cpu| cpu.id).eq(topology.online()));
    for cpu in cpus {
        assert_eq!(topology.cpu(cpu.id), Some(cpu));
        let core = &topology.cores()[cpu.core];
        assert_eq!((cpu.llc, cpu.node), (core.llc, core.node));
        assert_eq!(cpu.core_type, core.core_type);
        assert_eq!(topology.siblings(cpu.id), Some(core.span()));
        assert!((1..=MAX_CAPACITY).contains(&cpu.capacity));
        let leader = cpu
            .l2_leader
            .map(|leader| topology.cpu(leader).expect("it is online"));
        assert!(leader.is_none_or(|leader| leader.l2_leader == cpu.l2_leader));
    }
    let width = topology
        .cores()
        .iter()
        .map(|core| core.span().weight())
        .max();
    assert_eq!(Some(topology.smt_width()), width);
    for cpu in topology
        .online()
        .not()
        .iter()
        .chain([topology.nr_cpu_ids(), usize::MAX])
    {
        assert_eq!(topology.cpu(cpu), None);
    }
}

/// Asserts that each online CPU is in exactly one of `spans`, and no other CPU is.
fn assert_partition<'a>(topology: &Topology, spans: impl Iterator<Item = &'a Cpumask> + Clone) {
    let weight: usize = spans.clone().map(Cpumask::weight).sum();
    assert_eq!(weight, topology.nr_cpus_online());
    assert_eq!(&union(topology, spans), topology.online());
}

fn union<'a>(topology: &Topology, spans: impl Iterator<Item = &'a Cpumask>) -> Cpumask {
    let mut all = Cpumask::new(topology.nr_cpu_ids());
    for span in spans {
        assert_eq!(span.nr_cpu_ids(), topology.nr_cpu_ids());
        all |= span;
    }
    all
}
