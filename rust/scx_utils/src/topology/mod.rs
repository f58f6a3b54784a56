//! The CPUs of a machine: node → last-level cache (LLC) → core → CPU.
//!
//! A [`Topology`] is read from sysfs once and never changes. The hotplug count is read before the
//! topology, and passed to the kernel when a scheduler attaches. If CPU hotplug has outdated the
//! topology by then, the kernel ends the scheduler with a restart code:
//!
//! ```no_run
//! use std::path::Path;
//!
//! use scx_utils::hotplug::HotplugToken;
//! use scx_utils::topology::Topology;
//!
//! let token = HotplugToken::read(Path::new("/"))?;
//! let topology = Topology::read(&token)?;
//! for llc in topology.llcs() {
//!     println!("LLC {} of node {}: CPUs {}", llc.index, llc.node, llc.span().to_list());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! CPUs are identified by the kernel's ids. Nodes, LLCs and cores are identified by indexes
//! into [`Topology::nodes`], [`Topology::llcs`] and [`Topology::cores`], from 0 without
//! gaps; their kernel ids may have gaps, repeat in every package, or not exist.
//!
//! Values that sysfs lacks get a default or are `None`. If sysfs lacks all of them, the CPUs are
//! equal, in one node with one LLC. Only a machine without a known online CPU is an error.

use std::path::PathBuf;

use serde::Serialize;

use crate::cpumask::Cpumask;
use crate::hotplug::HotplugToken;

mod cache;
mod core;
mod core_type;
mod node;
mod presence;
mod print;
mod raw;
pub(crate) mod sysfs;

pub use self::core_type::{CoreType, MAX_CAPACITY};
pub use self::node::{LOCAL_DISTANCE, REMOTE_DISTANCE};

use self::core_type::{Hybrid, Strength};
use self::presence::Presence;
use self::raw::RawCpu;

/// Why there is no topology.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TopologyError {
    /// Neither the list of online CPUs nor the list of possible CPUs is usable.
    #[error(
        "neither {} nor {} lists CPUs: {reason}",
        online.display(),
        possible.display()
    )]
    NoCpus {
        /// The list of online CPUs.
        online: PathBuf,
        /// The list of possible CPUs.
        possible: PathBuf,
        /// The error of the list of online CPUs.
        reason: String,
    },
    /// The list of online CPUs is unusable, and no possible CPU reports being online.
    #[error("{} lists no CPU, and no CPU reports being online", path.display())]
    NoneOnline {
        /// The list of online CPUs.
        path: PathBuf,
    },
}

/// The CPUs of a machine and how they are grouped.
///
/// Its text form is for people. Its JSON form has the fields of this type and of [`Node`], [`Llc`],
/// [`Core`] and [`Cpu`] under their names, with masks as strings in list form and null for unknown
/// values.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Topology {
    hotplug_seq: u64,
    nr_cpu_ids: usize,
    smt_width: usize,
    possible: Cpumask,
    present: Cpumask,
    online: Cpumask,
    nodes: Vec<Node>,
    llcs: Vec<Llc>,
    cores: Vec<Core>,
    cpus: Vec<Cpu>,
}

/// A NUMA node. A node without online CPUs has an empty span.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Node {
    /// Index into [`Topology::nodes`], which are sorted by kernel id.
    pub index: usize,
    /// N of `/sys/devices/system/node/nodeN`; 0 without NUMA.
    pub kernel_id: usize,
    /// Distance to each node, by index: 1 to 255. By default, [`LOCAL_DISTANCE`] to itself and
    /// [`REMOTE_DISTANCE`] to other nodes.
    pub distances: Vec<u32>,
    /// Indexes of the node's LLCs, ascending.
    pub llcs: Vec<usize>,
    /// Indexes of the node's cores, ascending.
    pub cores: Vec<usize>,
    pub(crate) span: Cpumask,
}

/// CPUs that share a last-level cache, within one node.
///
/// The LLC of a CPU is its L3 cache, or else its L2 cache. In each node, the CPUs for which neither
/// is known form one LLC. A cache that spans nodes, as in some VMs, is one LLC in each node.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Llc {
    /// Index into [`Topology::llcs`], which are sorted by node, package and kernel id.
    pub index: usize,
    /// The cache's `id`, which may repeat in every package. None if it is unknown, or if the CPUs
    /// that share the cache report different ids.
    pub kernel_id: Option<u32>,
    /// The level of the cache: 3 or 2. None if the caches are unknown.
    pub level: Option<u32>,
    /// Index of the node.
    pub node: usize,
    /// The package of the LLC's first CPU. None if unknown.
    pub package_id: Option<u32>,
    /// Indexes of the LLC's cores, ascending.
    pub cores: Vec<usize>,
    pub(crate) span: Cpumask,
}

/// CPUs that are threads of one core.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Core {
    /// Index into [`Topology::cores`], which are sorted by node, package and kernel id. If a kernel
    /// id repeats within a package, die and cluster are compared before the kernel id.
    pub index: usize,
    /// `topology/core_id`, which may repeat in every package or cluster.
    pub kernel_id: Option<u32>,
    /// Index of the node.
    pub node: usize,
    /// Index of the LLC.
    pub llc: usize,
    /// The package of the core's CPUs. None if unknown.
    pub package_id: Option<u32>,
    /// The kind of the core.
    pub core_type: CoreType,
    pub(crate) span: Cpumask,
}

/// An online CPU.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Cpu {
    /// The kernel's number of the CPU, below [`Topology::nr_cpu_ids`].
    pub id: usize,
    /// Index of the core.
    pub core: usize,
    /// Index of the LLC.
    pub llc: usize,
    /// Index of the node.
    pub node: usize,
    /// `topology/physical_package_id`.
    pub package_id: Option<u32>,
    /// `topology/cluster_id`; None if the kernel knows no clusters.
    pub cluster_id: Option<u32>,
    /// `id` of the level 2 cache. Unlike [`l2_leader`](Self::l2_leader) it is unknown
    /// on many machines.
    pub l2_id: Option<u32>,
    /// `id` of the level 3 cache.
    pub l3_id: Option<u32>,
    /// The lowest online CPU that shares this CPU's level 2 cache: CPUs share it if their leaders
    /// are equal. None if the cache is unknown.
    pub l2_leader: Option<usize>,
    /// Index among the online threads of its core; see [`Topology::siblings`].
    pub sibling_index: usize,
    /// Lowest frequency, kHz: the hardware's, or else the limit of the cpufreq policy.
    pub min_freq_khz: Option<u32>,
    /// Highest frequency, kHz: the hardware's, or else the limit of the cpufreq policy.
    pub max_freq_khz: Option<u32>,
    /// Guaranteed frequency, kHz, if the driver reports it (intel_pstate).
    pub base_freq_khz: Option<u32>,
    /// Computing power relative to the most powerful online CPU, which has [`MAX_CAPACITY`]. At
    /// least 1. A CPU of unknown power has [`MAX_CAPACITY`], too.
    pub capacity: u32,
    /// The kind of its core.
    pub core_type: CoreType,
}

impl Topology {
    /// Reads `sys/devices` below the token's root.
    ///
    /// A CPU may go offline meanwhile. Properties that can no longer be read are then unknown, and
    /// the kernel detects the changed hotplug count when the scheduler attaches.
    ///
    /// # Errors
    ///
    /// If no online CPU is found; see [`TopologyError`].
    pub fn read(token: &HotplugToken) -> Result<Self, TopologyError> {
        let devices = token.root().join("sys/devices");
        let cpu_dir = devices.join("system/cpu");
        let presence = Presence::read(&cpu_dir)?;
        let online = &presence.online;
        let raw: Vec<_> = online
            .iter()
            .map(|id| RawCpu::read(&cpu_dir, id, online))
            .collect();
        let nodes = node::nodes(&devices.join("system/node"), online);
        let hybrid = Hybrid::read(&devices, online);
        let strengths = core_type::strengths(&raw, hybrid.as_ref());
        Ok(Self::build(token.seq(), presence, &raw, nodes, &strengths))
    }

    /// Builds the topology. `raw` and `strengths` have an element for each online CPU, in ascending
    /// order of the ids.
    fn build(
        hotplug_seq: u64,
        presence: Presence,
        raw: &[RawCpu],
        mut nodes: Vec<Node>,
        strengths: &[Strength],
    ) -> Self {
        let nr_cpu_ids = presence.online.nr_cpu_ids();
        let node_of = by_cpu(raw, nr_cpu_ids, nodes.iter().map(|node| &node.span));
        let packages = packages(raw, &node_of);
        let mut llcs = cache::llcs(raw, &node_of, &packages, nr_cpu_ids);
        let llc_of = by_cpu(raw, nr_cpu_ids, llcs.iter().map(|llc| &llc.span));
        let mut cores = core::cores(raw, &llc_of, &packages, &mut llcs, nr_cpu_ids);
        let core_of = by_cpu(raw, nr_cpu_ids, cores.iter().map(|core| &core.span));
        for llc in &llcs {
            nodes[llc.node].llcs.push(llc.index);
        }
        for core in &cores {
            nodes[core.node].cores.push(core.index);
        }
        set_core_types(&mut cores, &core_of, strengths);
        let leaders = cache::l2_leaders(raw, &packages);
        let sibling_index_of = places_in_core(&cores, nr_cpu_ids);
        let cpu = |(at, raw): (usize, &RawCpu)| Cpu {
            sibling_index: sibling_index_of[raw.id],
            l2_leader: leaders[at],
            capacity: strengths[at].capacity,
            ..Cpu::new(raw, &cores[core_of[at]])
        };
        let cpus = raw.iter().enumerate().map(cpu).collect();
        Self {
            hotplug_seq,
            nr_cpu_ids,
            smt_width: cores
                .iter()
                .map(|core| core.span.weight())
                .max()
                .unwrap_or(1),
            possible: presence.possible,
            present: presence.present,
            online: presence.online,
            nodes,
            llcs,
            cores,
            cpus,
        }
    }

    /// The hotplug count that was read before the topology.
    #[must_use]
    pub fn hotplug_seq(&self) -> u64 {
        self.hotplug_seq
    }

    /// The highest possible CPU id plus one: the width of all masks of the topology, and the length
    /// of a table indexed by CPU id.
    #[must_use]
    pub fn nr_cpu_ids(&self) -> usize {
        self.nr_cpu_ids
    }

    /// Number of possible CPUs. Less than [`nr_cpu_ids`](Self::nr_cpu_ids) if the ids have
    /// gaps.
    #[must_use]
    pub fn nr_cpus_possible(&self) -> usize {
        self.possible.weight()
    }

    /// Number of online CPUs.
    #[must_use]
    pub fn nr_cpus_online(&self) -> usize {
        self.cpus.len()
    }

    /// The possible CPUs.
    #[must_use]
    pub fn possible(&self) -> &Cpumask {
        &self.possible
    }

    /// The CPUs that firmware reports as plugged in; some may never come online.
    #[must_use]
    pub fn present(&self) -> &Cpumask {
        &self.present
    }

    /// The online CPUs: those in nodes, LLCs and cores.
    #[must_use]
    pub fn online(&self) -> &Cpumask {
        &self.online
    }

    /// The same as [`online`](Self::online).
    #[must_use]
    pub fn span(&self) -> &Cpumask {
        &self.online
    }

    /// The nodes, sorted by kernel id. There is at least one.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The LLCs of all nodes.
    #[must_use]
    pub fn llcs(&self) -> &[Llc] {
        &self.llcs
    }

    /// The cores of all LLCs.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// The online CPUs, sorted by id. The index of a CPU here differs from its id if a CPU with a
    /// lower id is offline or does not exist.
    #[must_use]
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The CPU with this id, if it is online.
    #[must_use]
    pub fn cpu(&self, id: usize) -> Option<&Cpu> {
        let at = self.cpus.binary_search_by_key(&id, |cpu| cpu.id);
        at.ok().map(|at| &self.cpus[at])
    }

    /// The online threads of the core of `cpu`, including `cpu`. None if `cpu` is offline.
    #[must_use]
    pub fn siblings(&self, cpu: usize) -> Option<&Cpumask> {
        let core = self.cores.get(self.cpu(cpu)?.core)?;
        Some(&core.span)
    }

    /// The maximum number of online threads of a core.
    #[must_use]
    pub fn smt_width(&self) -> usize {
        self.smt_width
    }

    /// Whether any core has several online threads.
    #[must_use]
    pub fn smt_enabled(&self) -> bool {
        self.smt_width > 1
    }

    /// Whether any core is little.
    #[must_use]
    pub fn has_little_cores(&self) -> bool {
        let mut cores = self.cores.iter();
        cores.any(|core| core.core_type == CoreType::Little)
    }
}

impl Node {
    /// The node's online CPUs.
    #[must_use]
    pub fn span(&self) -> &Cpumask {
        &self.span
    }
}

impl Llc {
    /// The online CPUs of the LLC.
    #[must_use]
    pub fn span(&self) -> &Cpumask {
        &self.span
    }
}

impl Core {
    /// The core's online threads.
    #[must_use]
    pub fn span(&self) -> &Cpumask {
        &self.span
    }
}

impl Cpu {
    /// Copies the values of `raw` and `core`. The other fields get defaults, which the caller
    /// replaces.
    fn new(raw: &RawCpu, core: &Core) -> Self {
        Self {
            id: raw.id,
            core: core.index,
            llc: core.llc,
            node: core.node,
            package_id: raw.package_id,
            cluster_id: raw.cluster_id,
            l2_id: raw.l2.id,
            l3_id: raw.l3.id,
            l2_leader: None,
            sibling_index: 0,
            min_freq_khz: raw.min_freq_khz,
            max_freq_khz: raw.max_freq_khz,
            base_freq_khz: raw.base_freq_khz,
            capacity: MAX_CAPACITY,
            core_type: core.core_type,
        }
    }
}

/// For each CPU id, the index of the CPU among the threads of its core.
fn places_in_core(cores: &[Core], nr_cpu_ids: usize) -> Vec<usize> {
    let mut places = vec![0; nr_cpu_ids];
    for core in cores {
        for (place, cpu) in core.span.iter().enumerate() {
            places[cpu] = place;
        }
    }
    places
}

/// For each of `cpus`, the index of the span that contains it. Each CPU is in exactly one span.
fn by_cpu<'a>(
    cpus: &[RawCpu],
    nr_cpu_ids: usize,
    spans: impl Iterator<Item = &'a Cpumask>,
) -> Vec<usize> {
    let mut index_of = vec![0; nr_cpu_ids];
    for (index, span) in spans.enumerate() {
        for cpu in span {
            index_of[cpu] = index;
        }
    }
    cpus.iter().map(|cpu| index_of[cpu.id]).collect()
}

/// The package of each of `cpus`. A CPU whose package is unknown gets the lowest package of its
/// node, if there is one.
fn packages(cpus: &[RawCpu], node_of: &[usize]) -> Vec<Option<u32>> {
    let nr_nodes = node_of.iter().max().map_or(0, |last| last + 1);
    let mut lowest = vec![None; nr_nodes];
    for (cpu, &node) in cpus.iter().zip(node_of) {
        let known = lowest[node].into_iter().chain(cpu.package_id);
        lowest[node] = known.min();
    }
    let package = |(cpu, &node): (&RawCpu, &usize)| cpu.package_id.or(lowest[node]);
    cpus.iter().zip(node_of).map(package).collect()
}

/// Gives each core the type of its thread with the highest capacity. All threads of a core have the
/// same type, but sysfs may have less information on some of them.
fn set_core_types(cores: &mut [Core], core_of: &[usize], strengths: &[Strength]) {
    let mut strongest = vec![0; cores.len()];
    for (&core, strength) in core_of.iter().zip(strengths) {
        if strength.capacity > strongest[core] {
            strongest[core] = strength.capacity;
            cores[core].core_type = strength.core_type;
        }
    }
}
