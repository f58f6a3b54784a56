// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's implementation of the runner's traits.

use anyhow::{ensure, Result};
use libbpf_rs::skel::{OpenSkel as _, Skel as _};
use libbpf_rs::{Link, MapHandle, ProgramMut};
use scx_stats::ServerBuilder;
use scx_utils::bpf::{run, Attached, Slot, Words};
use scx_utils::exit_info::ExitInfo;
use scx_utils::manifest::Modes;
use scx_utils::percpu::PerCpu;
use scx_utils::placement::{self, Grouping};
use scx_utils::runner::{
    CommonOpts, Instance, Program, Scheduler, Shutdown, Start, StatsReader, Tick,
};

use crate::bpf_intf::{lavd_config, lavd_counts};
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::mode::ModeSetter;
use crate::opts::Opts;
use crate::orders;
use crate::samples;
use crate::stats::SysStats;

/// The scheduler.
pub(crate) struct Lavd;

/// The attached scheduler, until it ends or is restarted.
pub(crate) struct Running<'obj> {
    bpf: Attached<BpfSkel<'obj>>,
    mode: ModeSetter,
    _futex: Vec<Link>,
}

/// Indices of words of `struct lavd_system`.
const AVG_LAT_CRI: usize = 0;
const MAX_LAT_CRI: usize = 1;
const NR_QUEUED: usize = 4;
const NR_ACTIVE: usize = 7;
const MODE: usize = 8;
const NR_PERFORMANCE: usize = 9;
const NR_BALANCED: usize = 10;
const NR_POWERSAVE: usize = 11;

/// The kernel functions that are traced to detect tasks that hold a lock. The kernel may lack some
/// of them.
const FUTEX_FUNCTIONS: &[&str] = &[
    "__futex_wait",
    "futex_wait_multiple",
    "futex_wait_requeue_pi",
    "futex_lock_pi",
    "futex_wake",
    "futex_wake_op",
    "futex_unlock_pi",
];

impl Scheduler for Lavd {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str =
        "Each task has a latency criticality, by how often it waits for others and wakes others, \
         how briefly it runs, and what has woken it up. On wakeup a task goes directly to an idle \
         CPU if there is one. Otherwise it waits in the queue of its compute domain: CPUs of one \
         NUMA node, last-level cache and kind. The more critical a task, the earlier its deadline; \
         CPU time is shared by weight. Tasks of at least average criticality preempt others. \
         The more tasks wait, the shorter the slices. While the load is low, it is kept on few \
         CPUs, so that the others stay in deep idle states.";
    const MODES: Modes = Modes {
        gaming: &["--performance", "--pinned-slice-us", "500"],
        low_latency: &["--performance", "--pinned-slice-us", "500"],
        power_save: &["--powersave", "--pinned-slice-us", "500"],
        server: &[
            "--performance",
            "--slice-min-us",
            "3000",
            "--slice-max-us",
            "10000",
            "--pinned-slice-us",
            "3000",
        ],
    };
    const POWER_PROFILE_ARGS: Option<&'static [&'static str]> = Some(&["--autopower"]);
    const KFUNCS: &'static [&'static str] = crate::bpf_kfuncs::KFUNCS;

    type Opts = Opts;
    type Config = Opts;
    type Stats = SysStats;
    type Instance<'obj> = Running<'obj>;

    fn config(opts: Opts) -> Result<Opts> {
        opts.check()?;
        Ok(opts)
    }

    fn command(opts: &Opts, common: &CommonOpts, shutdown: &Shutdown) -> Option<Result<()>> {
        let wanted = opts.monitor_sched_samples?;
        Some(samples::monitor(common, shutdown, wanted))
    }

    fn attach<'obj>(start: &Start<'_>, opts: &Opts, slot: &'obj mut Slot) -> Result<Running<'obj>> {
        let topology = start.topology()?;
        let btf = start.kernel_btf()?;
        let mut opened = start.open(BpfSkelBuilder::default(), slot)?;
        opened.set_ops_flag(btf, "SCX_OPS_ENQ_LAST")?;
        opened.reenqueue_on_cpu_release(btf)?;
        opened.enqueue_migration_disabled(btf)?;
        opened.set_section(".rodata.lavd_config", &lavd_config::from(opts))?;
        opened.set_section(".rodata.lavd_orders", &*orders::table(&topology)?)?;
        let scales_frequency = !opts.no_freq_scaling;
        placement::prepare_groups(&mut opened, &topology, Grouping::Domains, scales_frequency)?;
        for mut program in opened.open_object_mut().progs_mut() {
            if let Some(function) = futex_function(program.name().to_str()) {
                program.set_autoload(!opts.no_futex_boost && btf.has_ksym(function));
            }
        }
        let mut loaded = opened.load()?;
        let result = run(&loaded.progs.scx_set_primary, &mut [])?;
        ensure!(
            result == 0,
            "cannot create the set of active CPUs: error {result}"
        );
        let control = Words::map(&loaded.maps.data_lavd_control)?;
        let mode = ModeSetter::new(&opts.mode, start.token().root(), control);
        let futex = attach_futex(loaded.object_mut().progs_mut());
        Ok(Running {
            bpf: start.attach(loaded)?,
            mode,
            _futex: futex,
        })
    }
}

/// The kernel function that a program traces: `lavd_futex_wake` traces `futex_wake`. `None` if the
/// program traces none of [`FUTEX_FUNCTIONS`].
fn futex_function(program: Option<&str>) -> Option<&'static str> {
    let name = program?.strip_prefix("lavd_")?;
    let is_for = |function: &&&str| function.trim_start_matches('_') == name;
    FUTEX_FUNCTIONS.iter().find(is_for).copied()
}

/// Attaches the loaded programs that trace [`FUTEX_FUNCTIONS`]. A failure is only logged, because
/// the scheduler works without these programs.
fn attach_futex<'a>(programs: impl Iterator<Item = ProgramMut<'a>>) -> Vec<Link> {
    let mut links = Vec::new();
    for program in programs {
        let function = futex_function(program.name().to_str());
        let Some(function) = function.filter(|_| program.autoload()) else {
            continue;
        };
        match program.attach() {
            Ok(link) => links.push(link),
            Err(error) => {
                tracing::warn!(
                    "cannot trace {function}(), so some lock holders are not detected: {error}"
                );
            }
        }
    }
    links
}

impl Instance for Running<'_> {
    type Stats = SysStats;

    fn tick(&mut self) -> Result<Tick> {
        Ok(self.mode.tick())
    }

    fn stats_reader(&self) -> Result<StatsReader<SysStats>> {
        let counts =
            PerCpu::<lavd_counts>::new(MapHandle::try_from(&self.bpf.maps.lavd_counters)?)?;
        let system = Words::map(&self.bpf.maps.data_lavd_system)?;
        let mut mseq = 0;
        Ok(Box::new(move || {
            mseq += 1;
            let word = |index| system.get(index).unwrap_or(0);
            let mut stats = SysStats {
                mseq,
                nr_active: word(NR_ACTIVE),
                nr_queued_task: word(NR_QUEUED),
                avg_lat_cri: word(AVG_LAT_CRI),
                max_lat_cri: word(MAX_LAT_CRI),
                ..SysStats::default()
            };
            stats.set_mode(
                word(MODE),
                [NR_PERFORMANCE, NR_BALANCED, NR_POWERSAVE].map(word),
            );
            stats.count(&counts.read(0)?);
            Ok(stats)
        }))
    }

    fn more_stats(&self, server: ServerBuilder) -> Result<ServerBuilder> {
        let ring = MapHandle::try_from(&self.bpf.maps.lavd_samples)?;
        let request = Words::map(&self.bpf.maps.data_lavd_request)?;
        Ok(server.stats(samples::TARGET, samples::source(ring, request)))
    }

    fn exited(&self) -> bool {
        self.bpf.exited()
    }

    fn detach(self) -> ExitInfo {
        self.bpf.detach()
    }
}
