// SPDX-License-Identifier: GPL-2.0-only
//! Reads facts that rarely change, such as the topology, from files below a root directory.

use std::fs;
use std::path::Path;

use scx_utils::cgroups::{Control, Ignored};
use scx_utils::compat::KernelBtf;
use scx_utils::cpumask::{Cpumask, MAX_NR_CPU_IDS};
use scx_utils::hotplug::HotplugToken;
use scx_utils::kernel::SchedExt;
use scx_utils::power::Supply;
use scx_utils::topology::Topology;

use super::facts::{Cgroups, Machine};

/// Reads everything except the power profile, which `recommend()` reads later: a daemon may have to
/// be asked for it, and replies only after some time.
pub(super) fn read(root: &Path, btf: Option<&KernelBtf>) -> anyhow::Result<Machine> {
    let topology = Topology::read(&HotplugToken::read(root)?)?;
    let sched_ext = SchedExt::new(root);
    let nodes = topology.nodes().iter();
    Ok(Machine {
        obstacle: obstacle(&sched_ext, btf),
        running: Some(sched_ext.ops()).filter(|ops| !ops.is_empty()),
        nr_cpus: topology.nr_cpus_online(),
        nr_llcs: topology.llcs().len(),
        nr_nodes: nodes.filter(|node| node.span().weight() > 0).count(),
        smt: topology.smt_enabled(),
        hybrid: topology.has_little_cores(),
        nr_tickless: nr_tickless(root),
        on_battery: Supply::read(root).map(|supply| supply == Supply::Battery),
        power_profile: None,
        cgroups: cgroups(root),
    })
}

fn obstacle(sched_ext: &SchedExt, btf: Option<&KernelBtf>) -> Option<String> {
    let isolated = sched_ext.isolated_cpus();
    if sched_ext.state().is_empty() {
        Some("this kernel has no sched_ext".into())
    } else if btf.is_none_or(KernelBtf::is_defective) {
        Some("the kernel's BTF is missing or damaged".into())
    } else if !isolated.is_empty() {
        Some(format!(
            "the kernel rejects schedulers while CPUs are isolated ({isolated})"
        ))
    } else {
        None
    }
}

/// The number of CPUs of the boot option `nohz_full=`. Without this option, the file is empty or
/// contains `(null)`.
fn nr_tickless(root: &Path) -> usize {
    let text = fs::read_to_string(root.join("sys/devices/system/cpu/nohz_full"));
    let mask = Cpumask::from_list(text.unwrap_or_default().trim(), MAX_NR_CPU_IDS);
    mask.map_or(0, |mask| mask.weight())
}

/// Counts the cgroups with weights and quotas. None without cgroup v2, because the controls of
/// version 1 have other files, which are not read.
fn cgroups(root: &Path) -> Option<Cgroups> {
    let is_v2 = root.join("sys/fs/cgroup/cgroup.controllers").exists();
    let nr = |controls| Ignored::find(root, controls).map_or(0, |found| found.nr());
    is_v2.then(|| Cgroups {
        weights: nr(&[Control::Weight, Control::Idle]),
        quotas: nr(&[Control::Max]),
    })
}
