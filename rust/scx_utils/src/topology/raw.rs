//! The raw contents of sysfs for each CPU.

use std::path::Path;

use super::sysfs;
use crate::cpumask::Cpumask;

/// A 16-bit -1: x86's marker of a missing id (`BAD_APICID`).
const NO_ID: u32 = 0xffff;

/// Maximum number of cache directories read per CPU. A level has at most two: for data and for
/// instructions.
const MAX_CACHES: usize = 16;

/// An online CPU. Masks contain online CPUs only, including the CPU itself. A mask without the CPU
/// itself is invalid and treated as missing.
#[derive(Clone, Debug)]
pub(super) struct RawCpu {
    pub(super) id: usize,
    pub(super) package_id: Option<u32>,
    pub(super) die_id: Option<u32>,
    pub(super) cluster_id: Option<u32>,
    pub(super) core_id: Option<u32>,
    /// The threads of the CPU's core.
    pub(super) siblings: Option<Cpumask>,
    pub(super) l2: RawCache,
    pub(super) l3: RawCache,
    pub(super) min_freq_khz: Option<u32>,
    pub(super) max_freq_khz: Option<u32>,
    pub(super) base_freq_khz: Option<u32>,
    pub(super) strength: RawStrength,
}

/// A CPU's cache at one level.
#[derive(Clone, Debug, Default)]
pub(super) struct RawCache {
    pub(super) id: Option<u32>,
    /// The CPUs that share the cache.
    pub(super) shared: Option<Cpumask>,
}

/// Measures of computing power, each on its own scale: the larger, the more powerful.
#[derive(Clone, Debug, Default)]
pub(super) struct RawStrength {
    /// The kernel's capacity, 1024 for the most powerful CPU.
    pub(super) cpu_capacity: Option<u32>,
    pub(super) amd_prefcore_ranking: Option<u32>,
    pub(super) amd_highest_perf: Option<u32>,
    pub(super) cppc_highest_perf: Option<u32>,
}

impl RawCpu {
    /// Reads the directory of CPU `id` below `cpus`, the directory `cpu` of sysfs.
    /// All files are optional: the CPU may be going offline.
    pub(super) fn read(cpus: &Path, id: usize, online: &Cpumask) -> Self {
        let dir = cpus.join(format!("cpu{id}"));
        let topology = |name: &str| sysfs::number::<u32>(&dir.join("topology").join(name));
        let narrow = |name: &str| topology(name).filter(|&id| id != NO_ID);
        let [l2, l3] = read_caches(&dir.join("cache"), id, online);
        let freq = |name: &str| sysfs::positive(&dir.join("cpufreq").join(name));
        Self {
            id,
            package_id: topology("physical_package_id"),
            die_id: narrow("die_id"),
            cluster_id: narrow("cluster_id"),
            core_id: topology("core_id"),
            siblings: read_siblings(&dir.join("topology"), id, online),
            l2,
            l3,
            min_freq_khz: freq("cpuinfo_min_freq").or_else(|| freq("scaling_min_freq")),
            max_freq_khz: freq("cpuinfo_max_freq").or_else(|| freq("scaling_max_freq")),
            base_freq_khz: freq("base_frequency"),
            strength: RawStrength::read(&dir),
        }
    }
}

impl RawStrength {
    fn read(dir: &Path) -> Self {
        let number = |name: &str| sysfs::positive(&dir.join(name));
        Self {
            cpu_capacity: number("cpu_capacity"),
            amd_prefcore_ranking: number("cpufreq/amd_pstate_prefcore_ranking"),
            amd_highest_perf: number("cpufreq/amd_pstate_highest_perf"),
            cppc_highest_perf: number("acpi_cppc/highest_perf"),
        }
    }
}

/// The online threads of the core of CPU `id`. `thread_siblings_list` is the name before Linux 5.3.
fn read_siblings(topology: &Path, id: usize, online: &Cpumask) -> Option<Cpumask> {
    let names = ["core_cpus_list", "thread_siblings_list"];
    let mut lists = names
        .iter()
        .map(|name| shared(&topology.join(name), id, online));
    lists.find_map(|list| list)
}

/// The data or unified caches of levels 2 and 3. The number of a cache's directory does not
/// determine the level. Only if the file `level` is missing, the directories `index2` and `index3`
/// are assumed to be of levels 2 and 3, as on machines with separate level 1 caches.
fn read_caches(dir: &Path, id: usize, online: &Cpumask) -> [RawCache; 2] {
    let mut caches = [RawCache::default(), RawCache::default()];
    for index in sysfs::numbered(dir, "index", MAX_CACHES) {
        let cache = dir.join(format!("index{index}"));
        let level = sysfs::number(&cache.join("level")).unwrap_or(index);
        let kind = sysfs::text(&cache.join("type")).unwrap_or_default();
        let slot = match level {
            2 => &mut caches[0],
            3 => &mut caches[1],
            _ => continue,
        };
        if kind.trim() == "Instruction" || slot.id.is_some() || slot.shared.is_some() {
            continue;
        }
        *slot = RawCache {
            id: sysfs::number(&cache.join("id")),
            shared: shared(&cache.join("shared_cpu_list"), id, online),
        };
    }
    caches
}

/// The online CPUs of a list; None if the list does not contain CPU `id`.
fn shared(path: &Path, id: usize, online: &Cpumask) -> Option<Cpumask> {
    sysfs::list_within(path, online).filter(|list| list.test(id))
}
