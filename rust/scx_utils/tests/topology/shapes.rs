//! Presence and grouping of CPUs.

use std::time::{Duration, Instant};

use scx_utils::hotplug::HotplugToken;
use scx_utils::topology::{Topology, TopologyError};

use crate::invariants;
use crate::machines::{desktop, hybrid, plain, server, xeon, Grid};
use crate::sysfs_tree::{temporary_dir, Place, Tree};

/// The spans of LLCs.
fn llcs(topology: &Topology) -> Vec<String> {
    let llcs = topology.llcs().iter();
    llcs.map(|llc| llc.span().to_list()).collect()
}

/// The spans of cores.
fn cores(topology: &Topology) -> Vec<String> {
    let cores = topology.cores().iter();
    cores.map(|core| core.span().to_list()).collect()
}

/// The threads of a CPU's core.
fn siblings(topology: &Topology, cpu: usize) -> String {
    topology.siblings(cpu).expect("the CPU is online").to_list()
}

/// The spans of nodes.
fn nodes(topology: &Topology) -> Vec<String> {
    let nodes = topology.nodes().iter();
    nodes.map(|node| node.span().to_list()).collect()
}

#[test]
fn smt_desktop() {
    let topology = desktop().read();
    assert_eq!(llcs(&topology), ["0-15"]);
    let want: Vec<_> = (0..8).map(|core| format!("{core},{}", core + 8)).collect();
    assert_eq!(cores(&topology), want);
    assert_eq!(topology.smt_width(), 2);
    let cpu = topology.cpu(11).unwrap();
    assert_eq!((cpu.core, cpu.sibling_index), (3, 1));
    assert_eq!(
        (cpu.l2_id, cpu.l2_leader, cpu.l3_id),
        (Some(3), Some(3), Some(0))
    );
    assert_eq!(
        (cpu.min_freq_khz, cpu.max_freq_khz),
        (Some(800_000), Some(4_500_000))
    );
    assert_eq!(cpu.base_freq_khz, None);
    assert_eq!(topology.llcs()[0].level, Some(3));
}

#[test]
fn sockets_that_reuse_core_ids() {
    let topology = xeon().read();
    assert_eq!(topology.cores().len(), 8);
    let ids: Vec<_> = topology
        .cores()
        .iter()
        .map(|core| core.kernel_id.unwrap())
        .collect();
    assert_eq!(ids, [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(nodes(&topology), ["0-3,8-11", "4-7,12-15"]);
    assert_eq!(llcs(&topology), ["0-3,8-11", "4-7,12-15"]);
    assert_eq!(topology.nodes()[1].distances, [21, 10]);
    assert_eq!(siblings(&topology, 12), "4,12");
}

#[test]
fn core_ids_that_repeat_in_one_node() {
    let mut tree = xeon();
    tree.remove("system/node");
    tree.remove("cpus_list");
    tree.remove("siblings_list");
    let topology = tree.read();
    assert_eq!(nodes(&topology), ["0-15"]);
    assert_eq!(llcs(&topology), ["0-3,8-11", "4-7,12-15"]);
    assert_eq!(topology.cores().len(), 8);
    assert_eq!(siblings(&topology, 4), "4,12");
}

#[test]
fn core_ids_that_repeat_in_one_llc() {
    let mut tree = Tree::new("0-3", "0-3");
    for cpu in 0..4 {
        tree.put_cpu(cpu, "topology/physical_package_id", 0);
        tree.put_cpu(cpu, "topology/core_id", cpu % 2);
        tree.put_cpu(cpu, "topology/cluster_id", cpu / 2);
    }
    assert_eq!(cores(&tree.read()), ["0", "1", "2", "3"]);
}

#[test]
fn ids_that_are_no_ids() {
    let mut tree = plain(4);
    for (cpu, cluster) in [(0, "-1"), (1, "65535"), (2, "7")] {
        tree.put_cpu(cpu, "topology/cluster_id", cluster);
    }
    tree.put_cpu(0, "topology/physical_package_id", -1);
    let topology = tree.read();
    let clusters: Vec<_> = topology.cpus().iter().map(|cpu| cpu.cluster_id).collect();
    assert_eq!(clusters, [None, None, Some(7), None]);
    assert_eq!(topology.cpu(0).unwrap().package_id, None);
    assert_eq!(topology.cores()[0].package_id, Some(0));
    assert_eq!(topology.llcs().len(), 1);
}

#[test]
fn holes_in_cpu_ids() {
    let mut tree = plain(12);
    for name in ["possible", "present", "online"] {
        tree.put(&format!("sys/devices/system/cpu/{name}"), "0-1,4,8-11");
    }
    let topology = tree.read();
    assert_eq!(
        (topology.nr_cpu_ids(), topology.nr_cpus_possible()),
        (12, 7)
    );
    assert_eq!(topology.nr_cpus_online(), 7);
    assert_eq!(llcs(&topology), ["0-1,4,8-11"]);
    assert_eq!(topology.cpus()[2].id, 4);
    assert_eq!(topology.cpu(3), None);
}

#[test]
fn cpus_that_firmware_lists_and_never_starts() {
    let mut tree = plain(4);
    tree.put("sys/devices/system/cpu/possible", "0-255");
    tree.put("sys/devices/system/cpu/present", "0-7");
    for cpu in 4..8 {
        tree.put_cpu(cpu, "online", 0);
    }
    let topology = tree.read();
    assert_eq!(
        (topology.nr_cpu_ids(), topology.nr_cpus_possible()),
        (256, 256)
    );
    assert_eq!(topology.present().to_list(), "0-7");
    assert_eq!(topology.online().to_list(), "0-3");
    assert_eq!(topology.online().nr_cpu_ids(), 256);
}

#[test]
fn the_last_cpu_of_the_range_runs() {
    let mut tree = plain(64);
    tree.put("sys/devices/system/cpu/online", "0,63");
    let topology = tree.read();
    assert_eq!(topology.nr_cpu_ids(), 64);
    assert_eq!(topology.span().to_list(), "0,63");
    assert_eq!(topology.cpus()[1].id, 63);
    assert!(topology.span().test(63));
}

#[test]
fn offline_cpus_are_in_no_span() {
    let mut tree = desktop();
    tree.put("sys/devices/system/cpu/online", "0-7,9");
    tree.put_cpu(8, "online", 0);
    let topology = tree.read();
    assert_eq!(topology.possible().to_list(), "0-15");
    assert_eq!(llcs(&topology), ["0-7,9"]);
    assert_eq!(siblings(&topology, 0), "0");
    assert_eq!(siblings(&topology, 9), "1,9");
    assert_eq!(topology.cpu(8), None);
}

#[test]
fn nosmt_has_no_siblings() {
    let mut tree = desktop();
    tree.put("sys/devices/system/cpu/online", "0-7");
    assert!(!tree.read().smt_enabled());
}

#[test]
fn without_level_3_level_2_is_the_last() {
    let mut tree = xeon();
    tree.remove("index3");
    let topology = tree.read();
    assert_eq!(topology.llcs().len(), 8);
    assert_eq!(topology.llcs()[0].level, Some(2));
    assert_eq!(topology.llcs()[5].kernel_id, Some(5));
    assert_eq!(topology.cpu(0).unwrap().l3_id, None);
}

#[test]
fn cores_without_level_3_beside_cores_with_it() {
    let mut tree = hybrid(5_000_000, 3_800_000);
    for cpu in 20..24 {
        tree.remove(&format!("cpu{cpu}/cache/index3"));
    }
    for cpu in 0..20 {
        tree.cache(cpu, 3, Some(0), "0-19");
    }
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-19", "20-23"]);
    assert_eq!(topology.llcs()[1].level, Some(2));
}

#[test]
fn caches_without_ids() {
    let mut tree = xeon();
    tree.remove("index3/id");
    tree.remove("index2/id");
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-3,8-11", "4-7,12-15"]);
    assert_eq!(topology.llcs()[1].kernel_id, None);
    assert_eq!(topology.llcs()[1].level, Some(3));
    assert_eq!(topology.cpu(13).unwrap().l2_id, None);
    assert_eq!(topology.cpu(13).unwrap().l2_leader, Some(5));
    tree.remove("index3");
    assert_eq!(tree.read().llcs().len(), 8);
}

/// Like QEMU's emulated processor: the lists are correct, but each CPU has its own id for a shared
/// cache. Threads remain threads of one core.
#[test]
fn ids_of_one_cache_that_disagree() {
    let mut tree = desktop();
    for cpu in 0..16 {
        tree.put_cpu(cpu, "cache/index3/id", cpu);
    }
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-15"]);
    assert_eq!(topology.llcs()[0].kernel_id, None);
    assert_eq!(topology.smt_width(), 2);
    // A CPU without a list is found by the lists of the other CPUs.
    tree.remove("cpu5/cache/index3/shared_cpu_list");
    assert_eq!(llcs(&tree.read()), ["0-15"]);
}

/// Without the lists of sharers, CPUs are grouped by the ids of their caches.
#[test]
fn caches_without_lists() {
    let mut tree = xeon();
    tree.remove("index3/shared_cpu_list");
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-3,8-11", "4-7,12-15"]);
    assert!(topology.llcs().iter().all(|llc| llc.kernel_id.is_some()));
}

#[test]
fn one_cache_id_is_missing() {
    let mut tree = desktop();
    tree.remove("cpu5/cache/index3/id");
    tree.remove("cpu6/cache/");
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-15"]);
    assert_eq!(topology.cpu(6).unwrap().l2_leader, Some(6));
}

#[test]
fn no_caches_at_all() {
    let mut tree = xeon();
    tree.remove("/cache/");
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-3,8-11", "4-7,12-15"]);
    assert_eq!(topology.llcs()[0].level, None);
    tree.remove("system/node");
    assert_eq!(llcs(&tree.read()), ["0-15"]);
}

#[test]
fn cache_ids_with_holes() {
    let mut tree = plain(4);
    for (cpu, id, shared) in [(0, 40, "0-1"), (1, 40, "0-1"), (2, 7, "2-3"), (3, 7, "2-3")] {
        tree.cache(cpu, 3, Some(id), shared);
    }
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["2-3", "0-1"]);
    let ids: Vec<_> = topology.llcs().iter().map(|llc| llc.kernel_id).collect();
    assert_eq!(ids, [Some(7), Some(40)]);
}

#[test]
fn cache_directories_in_another_order() {
    let mut tree = plain(4);
    for cpu in 0..4 {
        let half = if cpu < 2 { "0-1" } else { "2-3" };
        tree.cache_at(cpu, 0, 3, "Unified", None, half);
        tree.cache_at(cpu, 1, 2, "Instruction", None, "0-3");
        tree.cache_at(cpu, 2, 1, "Data", None, &cpu.to_string());
        tree.cache_at(cpu, 3, 2, "Data", None, &cpu.to_string());
    }
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-1", "2-3"]);
    assert_eq!(topology.cpu(3).unwrap().l2_leader, Some(3));
}

#[test]
fn no_numa() {
    let mut tree = desktop();
    tree.remove("system/node");
    let topology = tree.read();
    assert_eq!(nodes(&topology), ["0-15"]);
    assert_eq!(topology.nodes()[0].distances, [10]);
}

#[test]
fn nodes_without_cpus_and_cpus_without_node() {
    let mut tree = plain(6);
    tree.node(0, "0-1", "10 17 28");
    tree.node(2, "2-3", "17 10 28");
    tree.node(5, "", "28 28 10");
    let topology = tree.read();
    assert_eq!(nodes(&topology), ["0-1,4-5", "2-3", ""]);
    let ids: Vec<_> = topology.nodes().iter().map(|node| node.kernel_id).collect();
    assert_eq!(ids, [0, 2, 5]);
    assert_eq!(topology.nodes()[1].distances, [17, 10, 28]);
    assert!(topology.nodes()[2].llcs.is_empty());
}

#[test]
fn distances_that_make_no_sense() {
    for row in ["", "10", "10 20 30", "10 x", "10 0", "10 256", "10 -1"] {
        let mut tree = plain(2);
        tree.node(0, "0", row);
        tree.node(1, "1", "20 10");
        assert_eq!(tree.read().nodes()[0].distances, [10, 20], "{row}");
    }
}

#[test]
fn nodes_by_mask_or_links() {
    let mut tree = plain(4);
    tree.put("sys/devices/system/node/node0/cpumap", "3");
    tree.put("sys/devices/system/node/node1/cpu2/online", "1");
    tree.put("sys/devices/system/node/node1/cpu3/online", "1");
    assert_eq!(nodes(&tree.read()), ["0-1", "2-3"]);
}

#[test]
fn one_llc_in_two_nodes() {
    let mut tree = plain(4);
    for cpu in 0..4 {
        tree.cache(cpu, 3, Some(0), "0-3");
    }
    tree.node(0, "0,2", "10 20");
    tree.node(1, "1,3", "20 10");
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0,2", "1,3"]);
    let ids: Vec<_> = topology.llcs().iter().map(|llc| llc.kernel_id).collect();
    assert_eq!(ids, [Some(0), Some(0)]);
}

#[test]
fn a_cpu_in_two_nodes_is_in_the_first() {
    let mut tree = plain(4);
    tree.node(0, "0-2", "10 20");
    tree.node(1, "1-3", "20 10");
    assert_eq!(nodes(&tree.read()), ["0-2", "3"]);
}

#[test]
fn many_threads() {
    for threads in [4, 8] {
        let grid = Grid {
            packages: 2,
            llcs: 2,
            cores: 3,
            threads,
            neighbours: true,
        };
        let topology = grid.tree().read();
        assert_eq!(topology.smt_width(), threads);
        assert_eq!(topology.cores().len(), 12);
        let last = topology.cpu(grid.cpus() - 1).unwrap();
        assert_eq!((last.core, last.sibling_index), (11, threads - 1));
    }
}

#[test]
fn more_cpus_than_a_word() {
    let grid = Grid {
        packages: 1,
        llcs: 3,
        cores: 23,
        threads: 2,
        neighbours: false,
    };
    let topology = grid.tree().read();
    assert_eq!(llcs(&topology)[2], "46-68,115-137");
    assert_eq!(siblings(&topology, 137), "68,137");
}

#[test]
fn a_large_server_is_quick() {
    let root = temporary_dir();
    server().write(root.path());
    let token = HotplugToken::read(root.path()).unwrap();
    let start = Instant::now();
    let topology = Topology::read(&token).unwrap();
    // An unoptimized build on a busy machine takes a tenth of this time.
    assert!(start.elapsed() < Duration::from_secs(5));
    invariants::check(&topology);
    assert_eq!(
        (topology.nr_cpus_online(), topology.llcs().len()),
        (512, 28)
    );
    assert_eq!(topology.cores().len(), 256);
}

#[test]
fn threads_go_by_what_they_agree_on() {
    let mut tree = plain(8);
    let lists = [
        // CPUs that list each other are siblings, whatever their core ids.
        (0, "0-1"),
        (1, "0-1"),
        // CPU 3 does not list CPU 2.
        (2, "2-3"),
        (3, "3"),
        // CPU 4 lists CPU 5, which has no valid list.
        (4, "4-5"),
        (5, "garbage"),
        // Invalid lists: with a CPU id that is too large, and without the CPU itself.
        (6, "6,100,99999"),
        (7, "0"),
    ];
    for (cpu, siblings) in lists {
        let (package, core) = (0, 10 - i64::try_from(cpu).unwrap());
        let place = Place {
            package,
            core,
            siblings,
        };
        tree.place(cpu, place);
    }
    let mut cores = cores(&tree.read());
    cores.sort_unstable();
    assert_eq!(cores, ["0-1", "2", "3", "4-5", "6", "7"]);
}

#[test]
fn a_cpu_vanishes_meanwhile() {
    let mut tree = desktop();
    tree.remove("cpu/cpu3/");
    let topology = tree.read();
    assert_eq!(llcs(&topology), ["0-15"]);
    let cpu = topology.cpu(3).unwrap();
    assert_eq!((cpu.package_id, cpu.max_freq_khz), (None, None));
    // The CPU's sibling still lists it.
    assert_eq!(siblings(&topology, 3), "3,11");
}

#[test]
fn possible_is_missing() {
    let mut tree = plain(4);
    tree.put_cpu(5, "online", 0);
    tree.remove("cpu/possible");
    let topology = tree.read();
    assert_eq!(topology.possible().to_list(), "0-3,5");
    assert_eq!(topology.online().to_list(), "0-3");
}

#[test]
fn online_is_missing() {
    let mut tree = plain(6);
    tree.remove("cpu/online");
    tree.remove("cpu4/topology");
    for (cpu, online) in [(1, 1), (3, 0)] {
        tree.put_cpu(cpu, "online", online);
    }
    assert_eq!(tree.read().online().to_list(), "0-2,5");
}

#[test]
fn more_online_than_possible() {
    let mut tree = plain(4);
    tree.put("sys/devices/system/cpu/possible", "0-1");
    assert_eq!(tree.read().possible().to_list(), "0-3");
}

#[test]
fn no_cpus_are_an_error() {
    let mut tree = plain(2);
    tree.remove("cpu/online");
    tree.remove("/topology/");
    let error = tree.try_read().unwrap_err();
    assert!(matches!(error, TopologyError::NoneOnline { .. }), "{error}");
    assert!(
        error.to_string().contains("sys/devices/system/cpu/online"),
        "{error}"
    );
    tree.remove("cpu/possible");
    let error = tree.try_read().unwrap_err();
    assert!(matches!(error, TopologyError::NoCpus { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("sys/devices/system/cpu/possible"),
        "{error}"
    );
    assert!(Tree::default().try_read().is_err());
}

#[test]
fn the_token_goes_with_the_topology() {
    let mut tree = plain(1);
    tree.put("sys/kernel/sched_ext/hotplug_seq", "42");
    assert_eq!(tree.read().hotplug_seq(), 42);
}

/// The machine that runs the test.
#[test]
fn this_machine() {
    let token = HotplugToken::read("/".as_ref()).unwrap();
    let topology = Topology::read(&token).unwrap();
    invariants::check(&topology);
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    assert_eq!(topology.possible().to_list(), possible.trim());
}
