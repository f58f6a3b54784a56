//! The topology as text and as JSON.

use insta::assert_snapshot;
use serde::Serialize;

use crate::machines::{big_little, desktop, hybrid, plain, server, xeon};

/// The fields of an object in order, one per line.
fn lines(object: &impl Serialize) -> String {
    let json = serde_json::to_string(object).expect("it has a JSON form");
    json.replace(",\"", ",\n\"")
}

#[test]
fn desktop_for_people() {
    assert_snapshot!(desktop().read().to_string(), @r#"
    16 possible CPUs, 16 online: 1 node, 1 LLC, 8 cores, SMT 2
    possible  0-15
    online    0-15
    node 0: CPUs 0-15
      LLC 0 (L3, id 0): CPUs 0-15
        cores 0-7  CPUs 0-15  2 threads (0,8, ...)  big  capacity 1024  800-4500 MHz
    "#);
}

#[test]
fn hybrid_for_people() {
    let mut tree = hybrid(5_000_000, 3_800_000);
    for cpu in 4..8 {
        tree.freq(cpu, 800_000, 5_200_000);
    }
    assert_snapshot!(tree.read().to_string(), @r#"
    24 possible CPUs, 24 online: 1 node, 1 LLC, 16 cores, SMT 2
    possible  0-23
    online    0-23
    node 0: CPUs 0-23
      LLC 0 (L3, id 0): CPUs 0-23
        cores 0-1,4-7  CPUs 0-3,8-15  2 threads (0-1, ...)  big        capacity 984   800-5000 MHz
        cores 2-3      CPUs 4-7       2 threads (4-5, ...)  big turbo  capacity 1024  800-5200 MHz
        cores 8-15     CPUs 16-23     1 thread              little     capacity 748   800-3800 MHz
    "#);
}

#[test]
fn sockets_for_people() {
    let mut tree = xeon();
    tree.put("sys/devices/system/cpu/possible", "0-31");
    tree.put("sys/devices/system/cpu/online", "0-8,11-15");
    tree.node(4, "", "40 40 10");
    tree.node(0, "0-3,8-11", "10 21 40");
    tree.node(1, "4-7,12-15", "21 10 40");
    assert_snapshot!(tree.read().to_string(), @r#"
    32 possible CPUs, 14 online: 3 nodes, 2 LLCs, 8 cores, SMT 2
    possible  0-31
    online    0-8,11-15
    offline   9-10,16-31
    absent    16-31
    node 0: CPUs 0-3,8,11, distances 10 21 40
      LLC 0 (L3, id 0): CPUs 0-3,8,11
        cores 0,3  CPUs 0,3,8,11   2 threads (0,8, ...)   big  capacity 1024
        cores 1-2  CPUs 1-2        1 thread               big  capacity 1024
    node 1: CPUs 4-7,12-15, distances 21 10 40
      LLC 1 (L3, id 1): CPUs 4-7,12-15
        cores 4-7  CPUs 4-7,12-15  2 threads (4,12, ...)  big  capacity 1024
    node 2 (id 4): no CPUs, distances 40 40 10
    "#);
}

#[test]
fn arm_for_people() {
    assert_snapshot!(big_little().read().to_string(), @r#"
    8 possible CPUs, 8 online: 1 node, 1 LLC, 8 cores, no SMT
    possible  0-7
    online    0-7
    node 0: CPUs 0-7
      LLC 0 (L3, no id): CPUs 0-7
        cores 0-3  CPUs 0-3  1 thread  little     capacity 290   500-1800 MHz
        cores 4-6  CPUs 4-6  1 thread  big        capacity 830   500-2600 MHz
        core 7     CPUs 7    1 thread  big turbo  capacity 1024  500-3000 MHz
    "#);
}

#[test]
fn a_large_server_fits_two_screens() {
    let printed = server().read().to_string();
    assert!(printed.lines().count() < 70, "{printed}");
    assert!(printed.lines().all(|line| line.len() < 100), "{printed}");
}

#[test]
fn for_programs() {
    let mut tree = plain(2);
    tree.put("sys/devices/system/cpu/online", "1");
    tree.put_cpu(1, "cpufreq/base_frequency", 1_500_000);
    let topology = tree.read();
    let whole = serde_json::to_string(&topology).unwrap();
    let start = concat!(
        r#"{"hotplug_seq":0,"nr_cpu_ids":2,"smt_width":1,"#,
        r#""possible":"0-1","present":"0-1","online":"1","nodes":[{"#
    );
    assert!(whole.starts_with(start), "{whole}");
    let node = lines(&topology.nodes()[0]);
    assert_snapshot!(node, @r#"
    {"index":0,
    "kernel_id":0,
    "distances":[10],
    "llcs":[0],
    "cores":[0],
    "span":"1"}
    "#);
    let llc = lines(&topology.llcs()[0]);
    assert_snapshot!(llc, @r#"
    {"index":0,
    "kernel_id":null,
    "level":null,
    "node":0,
    "package_id":0,
    "cores":[0],
    "span":"1"}
    "#);
    let core = lines(&topology.cores()[0]);
    assert_snapshot!(core, @r#"
    {"index":0,
    "kernel_id":1,
    "node":0,
    "llc":0,
    "package_id":0,
    "core_type":"big",
    "span":"1"}
    "#);
    let cpu = lines(&topology.cpus()[0]);
    assert_snapshot!(cpu, @r#"
    {"id":1,
    "core":0,
    "llc":0,
    "node":0,
    "package_id":0,
    "cluster_id":null,
    "l2_id":null,
    "l3_id":null,
    "l2_leader":null,
    "sibling_index":0,
    "min_freq_khz":null,
    "max_freq_khz":null,
    "base_freq_khz":1500000,
    "capacity":1024,
    "core_type":"big"}
    "#);
}

#[test]
fn names_of_core_types() {
    let topology = hybrid(5_000_000, 3_800_000).read();
    let json = serde_json::to_value(&topology).unwrap();
    assert_eq!(json["cores"][0]["core_type"], "big_turbo");
    assert_eq!(json["cores"][15]["core_type"], "little");
    assert_eq!(json["nodes"][0]["span"], "0-23");
    assert_eq!(json["cores"][1]["span"], "2-3");
}
