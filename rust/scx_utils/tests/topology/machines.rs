//! Machines as trees of sysfs.

use crate::sysfs_tree::{Place, Tree};

/// A regular machine: each package is a node. All packages have the same number of LLCs, all LLCs
/// the same number of cores, and all cores the same number of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) packages: usize,
    /// Number of LLCs per package.
    pub(crate) llcs: usize,
    /// Number of cores per LLC.
    pub(crate) cores: usize,
    /// Number of threads per core.
    pub(crate) threads: usize,
    /// Whether the threads of a core have consecutive ids. Otherwise the first threads of all cores
    /// have the lowest ids, then come all second threads, and so on.
    pub(crate) neighbours: bool,
}

impl Grid {
    fn all_cores(self) -> usize {
        self.packages * self.llcs * self.cores
    }

    pub(crate) fn cpus(self) -> usize {
        self.all_cores() * self.threads
    }

    /// The CPUs of `cores` cores from `first` on, in list form.
    fn list(self, first: usize, cores: usize) -> String {
        if self.neighbours {
            let end = (first + cores) * self.threads;
            return format!("{}-{}", first * self.threads, end - 1);
        }
        let run = |thread| {
            let start = thread * self.all_cores() + first;
            format!("{start}-{}", start + cores - 1)
        };
        (0..self.threads).map(run).collect::<Vec<_>>().join(",")
    }

    /// The tree. Core ids are unique within a package, ids of level 3 caches within the
    /// machine.
    pub(crate) fn tree(self) -> Tree {
        let all = format!("0-{}", self.cpus() - 1);
        let mut tree = Tree::new(&all, &all);
        let per_package = self.llcs * self.cores;
        for core in 0..self.all_cores() {
            for thread in 0..self.threads {
                let cpu = match self.neighbours {
                    true => core * self.threads + thread,
                    false => thread * self.all_cores() + core,
                };
                let llc = core / self.cores;
                let siblings = self.list(core, 1);
                let place = Place {
                    package: id(core / per_package),
                    core: id(core % per_package),
                    siblings: &siblings,
                };
                tree.place(cpu, place);
                tree.cache_at(cpu, 0, 1, "Data", None, &siblings);
                tree.cache_at(cpu, 1, 1, "Instruction", None, &siblings);
                tree.cache(cpu, 2, u32::try_from(core).ok(), &siblings);
                let shared = self.list(llc * self.cores, self.cores);
                tree.cache(cpu, 3, u32::try_from(llc).ok(), &shared);
            }
        }
        for package in 0..self.packages {
            let distance = |other| if other == package { "10" } else { "21" };
            let distances: Vec<_> = (0..self.packages).map(distance).collect();
            let cpus = self.list(package * per_package, per_package);
            tree.node(package, &cpus, &distances.join(" "));
        }
        tree
    }
}

fn id(number: usize) -> i64 {
    i64::try_from(number).expect("ids are small")
}

/// A desktop: 8 cores of 2 threads under one level 3 cache.
pub(crate) fn desktop() -> Tree {
    let grid = Grid {
        packages: 1,
        llcs: 1,
        cores: 8,
        threads: 2,
        neighbours: false,
    };
    let mut tree = grid.tree();
    for cpu in 0..16 {
        tree.freq(cpu, 800_000, 4_500_000);
    }
    tree
}

/// Two sockets of 4 cores of 2 threads. Both sockets have the same core ids.
pub(crate) fn xeon() -> Tree {
    let grid = Grid {
        packages: 2,
        llcs: 1,
        cores: 4,
        threads: 2,
        neighbours: false,
    };
    grid.tree()
}

/// 512 CPUs. There are 504 CPUs in 2 packages of 14 LLCs, where each LLC has 9 cores of 2 threads.
/// The other 8 CPUs are also in the last LLC.
pub(crate) fn server() -> Tree {
    let grid = Grid {
        packages: 2,
        llcs: 14,
        cores: 9,
        threads: 2,
        neighbours: true,
    };
    let mut tree = grid.tree();
    for name in ["possible", "present", "online"] {
        tree.put(&format!("sys/devices/system/cpu/{name}"), "0-511");
    }
    for core in 252..256 {
        for cpu in [core * 2, core * 2 + 1] {
            let siblings = format!("{}-{}", core * 2, core * 2 + 1);
            let place = Place {
                package: 1,
                core: id(core - 126),
                siblings: &siblings,
            };
            tree.place(cpu, place);
            tree.cache(cpu, 3, Some(27), "486-511");
        }
    }
    tree.node(1, "252-511", "21 10");
    tree
}

/// CPUs without SMT; only their package, core id and siblings are known.
pub(crate) fn plain(cpus: usize) -> Tree {
    let all = format!("0-{}", cpus - 1);
    let mut tree = Tree::new(&all, &all);
    for cpu in 0..cpus {
        let place = Place {
            package: 0,
            core: id(cpu),
            siblings: &cpu.to_string(),
        };
        tree.place(cpu, place);
    }
    tree
}

/// A 12th generation Intel desktop: 8 P cores of 2 threads, and 8 E cores that share level 2
/// caches in groups of 4; one level 3 cache. `p_khz` and `e_khz` are the highest
/// frequencies.
pub(crate) fn hybrid(p_khz: u32, e_khz: u32) -> Tree {
    let mut tree = Tree::new("0-23", "0-23");
    for cpu in 0..24 {
        let (core, siblings, l2, khz) = match cpu {
            0..16 => {
                let first = cpu / 2 * 2;
                let siblings = format!("{first}-{}", first + 1);
                (cpu / 2 * 4, siblings.clone(), siblings, p_khz)
            }
            _ => {
                let first = cpu / 4 * 4;
                let l2 = format!("{first}-{}", first + 3);
                (cpu + 16, cpu.to_string(), l2, e_khz)
            }
        };
        let place = Place {
            package: 0,
            core: id(core),
            siblings: &siblings,
        };
        tree.place(cpu, place);
        tree.cache(cpu, 2, u32::try_from(core / 4).ok(), &l2);
        tree.cache(cpu, 3, Some(0), "0-23");
        tree.freq(cpu, 800_000, khz);
    }
    tree.put("sys/devices/cpu_core/cpus", "0-15");
    tree.put("sys/devices/cpu_atom/cpus", "16-23");
    tree.node(0, "0-23", "10");
    tree
}

/// An Arm board with a device tree: clusters of 4 little, 3 big and 1 prime core, core ids that are
/// unique only within a cluster, caches without ids and no NUMA.
pub(crate) fn big_little() -> Tree {
    let mut tree = Tree::new("0-7", "0-7");
    for cpu in 0..8 {
        let (cluster, first, capacity, khz) = match cpu {
            0..4 => (0, 0, 290, 1_800_000),
            4..7 => (1, 4, 830, 2_600_000),
            _ => (2, 7, 1024, 3_000_000),
        };
        let place = Place {
            package: 0,
            core: id(cpu - first),
            siblings: &cpu.to_string(),
        };
        tree.place(cpu, place);
        tree.put_cpu(cpu, "topology/cluster_id", cluster);
        tree.put_cpu(cpu, "cpu_capacity", capacity);
        tree.freq(cpu, 500_000, khz);
        tree.cache(cpu, 2, None, &cpu.to_string());
        tree.cache(cpu, 3, None, "0-7");
    }
    tree
}
