// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's implementation of the runner's traits.

use anyhow::Result;
use libbpf_rs::MapHandle;
use scx_utils::bpf::{Attached, Slot};
use scx_utils::cgroups::Control;
use scx_utils::exit_info::ExitInfo;
use scx_utils::manifest::Modes;
use scx_utils::percpu::PerCpu;
use scx_utils::placement::{self, Placement};
use scx_utils::power::Profile;
use scx_utils::runner::{Instance, Program, Scheduler, Start, StatsReader, Tick};

use crate::bpf_intf::{flash_config, flash_counts};
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::opts::Opts;
use crate::stats::Metrics;

/// The scheduler.
pub(crate) struct Flash;

/// The attached scheduler, until it ends or is restarted.
pub(crate) struct Running<'obj> {
    bpf: Attached<BpfSkel<'obj>>,
    placement: Placement,
    nr_cpus: u64,
}

/// Power profiles in which `--primary-domain auto` prefers the efficient CPUs.
const SAVING: &[Profile] = &[Profile::PowerSave, Profile::BalancedPower];

impl Scheduler for Flash {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str =
        "On wakeup a task goes directly to an idle CPU if there is one. Otherwise it waits in the \
         queue of its NUMA node, ordered by virtual time, which advances by CPU time divided by \
         weight. The weight of a task is that of its nice value times cpu.weight of its own cgroup \
         / 100: a cgroup with many tasks gets more than one of the same weight with a single task. \
         While a task sleeps, its virtual time falls behind, and further if it wakes up often, so \
         that it runs first after the wakeup.";
    const MACHINE_SETTINGS: &'static [&'static str] = &[placement::SETTING];
    const MODES: Modes = Modes {
        gaming: &["--primary-domain", "all"],
        low_latency: &["--primary-domain", "performance"],
        power_save: &["--primary-domain", "powersave", "--slice-us", "5000"],
        server: &["--slice-us", "10000"],
    };
    const POWER_PROFILE_ARGS: Option<&'static [&'static str]> = Some(&["--primary-domain", "auto"]);
    const KFUNCS: &'static [&'static str] = crate::bpf_kfuncs::KFUNCS;

    type Opts = Opts;
    type Config = Opts;
    type Stats = Metrics;
    type Instance<'obj> = Running<'obj>;

    fn config(opts: Opts) -> Result<Opts> {
        Ok(opts)
    }

    fn cgroup_controls(_config: &Opts) -> &'static [Control] {
        &[Control::Weight, Control::Idle]
    }

    fn attach<'obj>(start: &Start<'_>, opts: &Opts, slot: &'obj mut Slot) -> Result<Running<'obj>> {
        let topology = start.topology()?;
        let btf = start.kernel_btf()?;
        let mut opened = start.open(BpfSkelBuilder::default(), slot)?;
        opened.set_ops_flag(btf, "SCX_OPS_ENQ_LAST")?;
        opened.reenqueue_on_cpu_release(btf)?;
        opened.enqueue_migration_disabled(btf)?;
        opened.fit_cgroups(btf, true)?;
        opened.set_section(".rodata.config", &flash_config::from(opts))?;
        placement::prepare(&mut opened, &topology, &opts.placement, opts.slice_us)?;
        let nr_cpus = topology.nr_cpus_online().try_into()?;
        let loaded = opened.load()?;
        let words = &loaded.maps.data_scx_primary;
        let mut placement = Placement::new(start, topology, &opts.placement, SAVING, words)?;
        placement.update(&loaded.progs.scx_set_primary)?;
        Ok(Running {
            bpf: start.attach(loaded)?,
            placement,
            nr_cpus,
        })
    }
}

impl Instance for Running<'_> {
    type Stats = Metrics;

    fn tick(&mut self) -> Result<Tick> {
        self.placement.tick(&self.bpf.progs.scx_set_primary)
    }

    fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        let map = MapHandle::try_from(&self.bpf.maps.flash_counters)?;
        let nr_cpus = self.nr_cpus;
        let counts = PerCpu::<flash_counts>::new(map)?;
        Ok(Box::new(counts.into_reader(move |of_cpus| {
            Metrics::new(nr_cpus, of_cpus)
        })))
    }

    fn exited(&self) -> bool {
        self.bpf.exited()
    }

    fn detach(self) -> ExitInfo {
        self.bpf.detach()
    }
}
