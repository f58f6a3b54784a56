//! Core types and capacities.

use scx_utils::topology::{CoreType, Topology, MAX_CAPACITY};

use crate::machines::{big_little, desktop, hybrid, plain};
use crate::sysfs_tree::Tree;

const TURBO: CoreType = CoreType::Big { turbo: true };
const BIG: CoreType = CoreType::Big { turbo: false };
const LITTLE: CoreType = CoreType::Little;

fn types(topology: &Topology) -> Vec<CoreType> {
    topology.cpus().iter().map(|cpu| cpu.core_type).collect()
}

fn capacities(topology: &Topology) -> Vec<u32> {
    topology.cpus().iter().map(|cpu| cpu.capacity).collect()
}

/// A machine whose CPUs have these numbers in `file`.
fn numbers(file: &str, of_cpus: &[u32]) -> Tree {
    let mut tree = plain(of_cpus.len());
    for (cpu, number) in of_cpus.iter().enumerate() {
        tree.put_cpu(cpu, file, number);
    }
    tree
}

#[test]
fn equal_cpus_are_big() {
    for tree in [plain(4), desktop(), numbers("cpu_capacity", &[512, 512])] {
        let topology = tree.read();
        assert!(types(&topology).iter().all(|&core_type| core_type == BIG));
        assert!(capacities(&topology)
            .iter()
            .all(|&capacity| capacity == MAX_CAPACITY));
        assert!(!topology.has_little_cores());
    }
}

#[test]
fn arm_goes_by_capacity() {
    let topology = big_little().read();
    let want = [LITTLE, LITTLE, LITTLE, LITTLE, BIG, BIG, BIG, TURBO];
    assert_eq!(types(&topology), want);
    assert_eq!(
        capacities(&topology),
        [290, 290, 290, 290, 830, 830, 830, 1024]
    );
    assert!(topology.has_little_cores());
    // Core ids repeat across the three clusters.
    assert_eq!(topology.cores().len(), 8);
}

#[test]
fn capacity_is_of_the_strongest_online() {
    let mut tree = big_little();
    tree.put("sys/devices/system/cpu/online", "0-6");
    assert_eq!(
        capacities(&tree.read()),
        [357, 357, 357, 357, 1024, 1024, 1024]
    );
}

#[test]
fn p_and_e_cores() {
    let topology = hybrid(5_000_000, 3_800_000).read();
    assert_eq!(
        types(&topology),
        [vec![TURBO; 16], vec![LITTLE; 8]].concat()
    );
    assert_eq!(capacities(&topology)[15..17], [1024, 778]);
    assert_eq!(topology.cores().len(), 16);
    assert_eq!(topology.llcs().len(), 1);
    let cluster: Vec<_> = topology.cpus()[16..]
        .iter()
        .map(|cpu| cpu.l2_leader)
        .collect();
    let want = [[Some(16); 4], [Some(20); 4]].concat();
    assert_eq!(cluster, want);
}

#[test]
fn p_and_e_cores_of_one_frequency() {
    let topology = hybrid(4_000_000, 4_000_000).read();
    assert_eq!(types(&topology), [vec![BIG; 16], vec![LITTLE; 8]].concat());
    assert_eq!(capacities(&topology), [MAX_CAPACITY; 24]);
}

#[test]
fn lists_hold_before_numbers() {
    let topology = hybrid(3_000_000, 4_000_000).read();
    assert_eq!(types(&topology), [vec![BIG; 16], vec![LITTLE; 8]].concat());
    assert_eq!(capacities(&topology), [MAX_CAPACITY; 24]);
    // CPPC contradicts the lists and is skipped: the capacities are from the frequencies.
    let mut tree = hybrid(5_000_000, 2_500_000);
    for cpu in 0..24 {
        tree.put_cpu(
            cpu,
            "acpi_cppc/highest_perf",
            if cpu < 16 { 40 } else { 60 },
        );
    }
    assert_eq!(capacities(&tree.read())[15..17], [1024, 512]);
}

#[test]
fn favoured_p_cores() {
    let mut tree = hybrid(5_000_000, 3_800_000);
    for cpu in 4..8 {
        tree.freq(cpu, 800_000, 5_200_000);
    }
    let types = types(&tree.read());
    assert_eq!(
        types[..9],
        [BIG, BIG, BIG, BIG, TURBO, TURBO, TURBO, TURBO, BIG]
    );
    assert_eq!(types[16..], [LITTLE; 8]);
}

#[test]
fn without_lists_frequencies_tell() {
    let mut tree = hybrid(5_000_000, 3_800_000);
    tree.remove("cpu_core");
    tree.remove("cpu_atom");
    assert_eq!(
        types(&tree.read()),
        [vec![TURBO; 16], vec![LITTLE; 8]].concat()
    );
    for cpu in 0..24 {
        tree.freq(cpu, 800_000, 4_000_000);
    }
    assert_eq!(types(&tree.read()), [BIG; 24]);
}

#[test]
fn lists_that_contradict_themselves() {
    let mut tree = hybrid(5_000_000, 3_800_000);
    tree.put("sys/devices/cpu_core/cpus", "0-23");
    tree.put("sys/devices/cpu_atom/cpus", "0-15");
    assert_eq!(
        types(&tree.read()),
        [vec![TURBO; 16], vec![LITTLE; 8]].concat()
    );
}

#[test]
fn e_cores_apart_from_others() {
    let mut tree = hybrid(5_000_000, 5_000_000);
    tree.put("sys/devices/cpu_atom/cpus", "16-19");
    tree.put("sys/devices/cpu_lowpower/cpus", "20-23");
    assert_eq!(types(&tree.read())[16..], [LITTLE; 8]);
}

#[test]
fn rankings_within_one_kind() {
    let file = "cpufreq/amd_pstate_prefcore_ranking";
    let topology = numbers(file, &[231, 226, 211, 196]).read();
    assert_eq!(types(&topology), [TURBO, BIG, BIG, BIG]);
    assert_eq!(capacities(&topology), [1024, 1001, 935, 868]);
    // Rankings of a desktop with two chiplets. The cores are of one kind, which only their
    // frequencies show.
    let mut tree = numbers(file, &[236, 231, 171, 166]);
    assert_eq!(types(&tree.read()), [TURBO, BIG, LITTLE, LITTLE]);
    for cpu in 0..4 {
        let khz = if cpu < 2 { 5_880_000 } else { 5_500_000 };
        tree.freq(cpu, 400_000, khz);
    }
    assert_eq!(types(&tree.read()), [TURBO, BIG, BIG, BIG]);
    for cpu in 2..4 {
        tree.freq(cpu, 400_000, 3_300_000);
    }
    assert_eq!(types(&tree.read()), [TURBO, BIG, LITTLE, LITTLE]);
}

#[test]
fn little_begins_at_thirteen_tenths() {
    let topology = numbers("cpu_capacity", &[1024, 788]).read();
    assert_eq!(types(&topology), [TURBO, BIG]);
    let topology = numbers("cpu_capacity", &[1024, 787]).read();
    assert_eq!(types(&topology), [TURBO, LITTLE]);
}

#[test]
fn the_first_source_that_tells_cpus_apart() {
    let mut tree = numbers("cpufreq/amd_pstate_highest_perf", &[200, 100]);
    for (cpu, capacity) in [(0, 1024), (1, 1024)] {
        tree.put_cpu(cpu, "cpu_capacity", capacity);
        tree.put_cpu(cpu, "cpufreq/amd_pstate_prefcore_ranking", 0);
    }
    assert_eq!(capacities(&tree.read()), [1024, 512]);
    tree.put_cpu(1, "cpu_capacity", 400);
    assert_eq!(capacities(&tree.read()), [1024, 400]);
}

#[test]
fn numbers_without_sense() {
    let gigantic = [u32::MAX, 1, 0, 1];
    let topology = numbers("cpu_capacity", &gigantic).read();
    assert_eq!(capacities(&topology), [1024, 1, 1024, 1]);
    let mut tree = numbers("cpufreq/cpuinfo_max_freq", &[0, 0]);
    assert_eq!(capacities(&tree.read()), [1024, 1024]);
    assert_eq!(tree.read().cpus()[0].max_freq_khz, None);
    for garbage in ["", "NaN", "-5", "99999999999999999999", "1e9"] {
        tree.put_cpu(1, "cpu_capacity", garbage);
        assert_eq!(capacities(&tree.read()), [1024, 1024]);
    }
}

#[test]
fn frequencies_fall_back_on_the_governors() {
    let mut tree = plain(1);
    tree.put_cpu(0, "cpufreq/scaling_min_freq", 1_000_000);
    tree.put_cpu(0, "cpufreq/scaling_max_freq", 2_000_000);
    tree.put_cpu(0, "cpufreq/base_frequency", 1_500_000);
    let topology = tree.read();
    let cpu = &topology.cpus()[0];
    let all = (cpu.min_freq_khz, cpu.max_freq_khz, cpu.base_freq_khz);
    assert_eq!(all, (Some(1_000_000), Some(2_000_000), Some(1_500_000)));
}
