//! Trees of sysfs as data: a map from paths to contents, which is written to a temporary
//! directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use scx_utils::hotplug::HotplugToken;
use scx_utils::topology::{Topology, TopologyError};
use tempfile::TempDir;

use crate::invariants;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Files below a root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// Where a CPU is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) package: i64,
    pub(crate) core: i64,
    pub(crate) siblings: &'a str,
}

impl Tree {
    /// A machine that lists CPUs, without any other information.
    pub(crate) fn new(possible: &str, online: &str) -> Self {
        let mut tree = Self::default();
        tree.put("sys/kernel/sched_ext/hotplug_seq", "0");
        tree.put(&format!("{CPU}/possible"), possible);
        tree.put(&format!("{CPU}/present"), possible);
        tree.put(&format!("{CPU}/online"), online);
        tree
    }

    /// Sets the content of a file, with the kernel's trailing newline.
    pub(crate) fn put(&mut self, path: &str, content: &str) {
        let content = format!("{content}\n").into_bytes();
        self.files.insert(path.to_owned(), content);
    }

    /// Sets the content of a file of a CPU.
    pub(crate) fn put_cpu(&mut self, cpu: usize, file: &str, content: impl ToString) {
        self.put(&format!("{CPU}/cpu{cpu}/{file}"), &content.to_string());
    }

    /// Removes every file whose path contains `part`. There must be at least one.
    pub(crate) fn remove(&mut self, part: &str) {
        let before = self.files.len();
        self.files.retain(|path, _| !path.contains(part));
        assert!(self.files.len() < before, "no file has {part} in its path");
    }

    pub(crate) fn place(&mut self, cpu: usize, place: Place<'_>) {
        self.put_cpu(cpu, "topology/physical_package_id", place.package);
        self.put_cpu(cpu, "topology/core_id", place.core);
        self.put_cpu(cpu, "topology/core_cpus_list", place.siblings);
        self.put_cpu(cpu, "topology/thread_siblings_list", place.siblings);
    }

    /// A unified cache in the directory `indexN` of its level N, as levels 2 and 3 on x86.
    pub(crate) fn cache(&mut self, cpu: usize, level: u32, id: Option<u32>, shared: &str) {
        self.cache_at(cpu, level, level, "Unified", id, shared);
    }

    pub(crate) fn cache_at(
        &mut self,
        cpu: usize,
        index: u32,
        level: u32,
        kind: &str,
        id: Option<u32>,
        shared: &str,
    ) {
        let dir = format!("cache/index{index}");
        self.put_cpu(cpu, &format!("{dir}/level"), level);
        self.put_cpu(cpu, &format!("{dir}/type"), kind);
        self.put_cpu(cpu, &format!("{dir}/shared_cpu_list"), shared);
        if let Some(id) = id {
            self.put_cpu(cpu, &format!("{dir}/id"), id);
        }
    }

    pub(crate) fn freq(&mut self, cpu: usize, min_khz: u32, max_khz: u32) {
        self.put_cpu(cpu, "cpufreq/cpuinfo_min_freq", min_khz);
        self.put_cpu(cpu, "cpufreq/cpuinfo_max_freq", max_khz);
    }

    pub(crate) fn node(&mut self, node: usize, cpus: &str, distances: &str) {
        self.put(&format!("{NODE}/node{node}/cpulist"), cpus);
        self.put(&format!("{NODE}/node{node}/distance"), distances);
    }

    /// Writes the tree below `root`. A path whose parent was written as a file is skipped.
    pub(crate) fn write(&self, root: &Path) {
        for (path, content) in &self.files {
            let path = root.join(path);
            let dir = path.parent().expect("paths are below the root");
            if fs::create_dir_all(dir).is_ok() {
                let _ = fs::write(path, content);
            }
        }
    }

    /// Reads the topology of the tree, and checks all invariants.
    pub(crate) fn try_read(&self) -> Result<Topology, TopologyError> {
        let root = temporary_dir();
        self.write(root.path());
        let token = HotplugToken::read(root.path()).expect("the tree has a hotplug count");
        let topology = Topology::read(&token)?;
        invariants::check(&topology);
        Ok(topology)
    }

    pub(crate) fn read(&self) -> Topology {
        self.try_read().expect("the tree lists CPUs")
    }
}

/// A directory in memory if possible: trees have hundreds of small files.
pub(crate) fn temporary_dir() -> TempDir {
    let in_memory = TempDir::new_in("/dev/shm");
    in_memory
        .or_else(|_| TempDir::new())
        .expect("a temporary directory")
}
