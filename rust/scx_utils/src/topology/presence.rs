//! Possible, present and online CPUs.

use std::path::{Path, PathBuf};

use super::{sysfs, TopologyError};
use crate::cpumask::{Cpumask, MAX_NR_CPU_IDS};

/// The three masks, all as wide as the number of CPU ids. `online` is not empty and a
/// subset of `present`, which is a subset of `possible`.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    pub(super) possible: Cpumask,
    pub(super) present: Cpumask,
    pub(super) online: Cpumask,
}

impl Presence {
    /// Reads the lists below `dir`, the directory `cpu` of sysfs.
    ///
    /// Without the list `possible`, the CPUs with a directory and the online CPUs are possible.
    /// Without the list `online`, the possible CPUs that report being online are online. If one of
    /// these two lists is empty, it counts as missing, because at least the CPU that reads it is
    /// online. Without the list `present`, all possible CPUs are present.
    pub(super) fn read(dir: &Path) -> Result<Self, TopologyError> {
        let online_path = dir.join("online");
        let possible_path = dir.join("possible");
        let (possible, online) = match (listed(&possible_path), listed(&online_path)) {
            (Ok(possible), Ok(online)) => (possible, online),
            (Err(_), Ok(online)) => (with_directory(dir), online),
            (Ok(possible), Err(_)) => {
                let online = awake(dir, &possible);
                (possible, online)
            }
            (Err(_), Err(reason)) => {
                return Err(TopologyError::NoCpus {
                    online: online_path,
                    possible: possible_path,
                    reason,
                })
            }
        };
        if online.is_empty() {
            return Err(TopologyError::NoneOnline { path: online_path });
        }
        let possible = possible.or(&online);
        let nr_cpu_ids = possible.last().map_or(0, |last| last + 1);
        let (possible, online) = (possible.resized(nr_cpu_ids), online.resized(nr_cpu_ids));
        let present = sysfs::list_within(&dir.join("present"), &possible);
        let present = present.map_or_else(|| possible.clone(), |present| present.or(&online));
        Ok(Self {
            possible,
            present,
            online,
        })
    }
}

/// The CPUs of a list, or why it is unusable.
fn listed(path: &Path) -> Result<Cpumask, String> {
    let list = sysfs::list(path).map_err(|error| error.to_string())?;
    let usable = (!list.is_empty()).then_some(list);
    usable.ok_or_else(|| "the list is empty".to_owned())
}

/// The CPUs that have a directory.
fn with_directory(dir: &Path) -> Cpumask {
    let mut mask = Cpumask::new(MAX_NR_CPU_IDS);
    for cpu in sysfs::numbered(dir, "cpu", MAX_NR_CPU_IDS) {
        mask.set_range(cpu, cpu);
    }
    mask
}

/// The CPUs of `possible` that report being online. A CPU that cannot go offline has no file
/// `online`, but has a directory `topology`, unlike an offline CPU.
fn awake(dir: &Path, possible: &Cpumask) -> Cpumask {
    let mut mask = Cpumask::new(MAX_NR_CPU_IDS);
    let is_awake = |cpu: &PathBuf| match sysfs::number::<u32>(&cpu.join("online")) {
        Some(online) => online == 1,
        None => cpu.join("topology").is_dir(),
    };
    for cpu in possible {
        if is_awake(&dir.join(format!("cpu{cpu}"))) {
            mask.set_range(cpu, cpu);
        }
    }
    mask
}
