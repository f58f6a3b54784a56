// SPDX-License-Identifier: GPL-2.0-only
//! Where tasks run, and how fast: the options of schedulers whose BPF side includes
//! `<scx/cpus.bpf.h>`, and their implementation in user space.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};
use clap::Args;
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{MapCore, ProgramMut};

use crate::bpf::{run, Opened, Words};
use crate::cpumask::Cpumask;
use crate::cpus::{Table, Use, CPUS_MAX, SECTION};

pub use crate::cpus::Grouping;
use crate::host::NOTES_DIR;
use crate::power::{Profile, ProfileSource};
use crate::primary::Primary;
use crate::resume_latency::ResumeLatency;
use crate::runner::{Start, Tick};
use crate::topology::Topology;

/// `scx_cpus.perf_level`: by the utilization of each CPU.
const BY_UTIL: i32 = -1;
/// `scx_cpus.perf_level`: `SCX_PERF_MAX`.
const MAX_LEVEL: i32 = 1024;

/// How often the power profile is read.
const INTERVAL: Duration = Duration::from_secs(1);

/// What [`Placement`] changes on the machine, for manual pages.
pub const SETTING: &str =
    "With --idle-resume-us, the limit is written to the PM QoS resume latency of each online CPU \
     (/sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us), and restored at the end. After \
     kill -9, the next scheduler with this option restores it.";

/// Options for where tasks run.
#[derive(Debug, Clone, Args)]
pub struct PlacementOpts {
    /// The CPUs to fill first: auto (the efficient ones while the power profile asks to save power,
    /// else all), all, performance (the fast ones), turbo (the fastest ones), powersave (the
    /// efficient ones), or a hexadecimal mask
    #[arg(short = 'm', long, value_name = "CPUS", default_value_t = Primary::Auto)]
    pub primary_domain: Primary,

    /// Treat SMT siblings as separate cores
    #[arg(long)]
    pub disable_smt: bool,

    /// Treat all CPUs as one NUMA node, with one queue
    #[arg(long)]
    pub disable_numa: bool,

    /// Request frequencies by the utilization of each CPU, instead of the highest ones; no effect
    /// with --primary-domain powersave, which requests the lowest ones
    #[arg(short = 'f', long)]
    pub cpufreq: bool,

    /// Inject idle time: all CPUs alternately run for --slice-us and are idle for this long, except
    /// for per-CPU kernel threads and migration-disabled tasks; to cool down, or to save power. 0
    /// to 1000000, 0: never
    #[arg(short = 't', long, value_name = "US", default_value = "0")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub throttle_us: u32,

    /// Idle states from which a CPU takes longer than this to wake up are not used, 0 to 1000000:
    /// faster wakeups, but more power; 0: no limit; -1: leave the machine's setting
    #[arg(short = 'I', long, value_name = "US", default_value = "-1")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i32).range(-1..=1_000_000))]
    pub idle_resume_us: i32,
}

impl PlacementOpts {
    /// `scx_cpus.perf_level`: the performance level that the BPF side requests for all CPUs.
    fn perf_level(&self) -> i32 {
        match (&self.primary_domain, self.cpufreq) {
            (Primary::Powersave, _) => 0,
            (_, true) => BY_UTIL,
            (_, false) => MAX_LEVEL,
        }
    }
}

/// Configures the BPF side before the load: fills its table of CPUs (`struct scx_cpus`). With
/// `--throttle-us`, CPUs run for `slice_us` microseconds between two idle phases.
///
/// # Errors
///
/// If the machine has more CPU ids or groups of CPUs than fit into the table, or the BPF side has
/// no table of CPUs.
pub fn prepare<'obj, S: OpenSkel<'obj>>(
    opened: &mut Opened<S>,
    topology: &Topology,
    opts: &PlacementOpts,
    slice_us: u32,
) -> Result<()> {
    let used = Use {
        ignore_smt: opts.disable_smt,
        grouping: if opts.disable_numa {
            Grouping::Machine
        } else {
            Grouping::Nodes
        },
    };
    let mut table = Table::new(topology, used)?;
    table.throttle_ns = u64::from(opts.throttle_us) * 1000;
    table.throttle_run_ns = u64::from(slice_us) * 1000;
    table.perf_level = opts.perf_level();
    opened.set_section(SECTION, &*table)
}

/// Like [`prepare`], for a scheduler without [`PlacementOpts`]. With `scales_frequency`, a BPF side
/// that includes `<scx/cpufreq.bpf.h>` requests frequencies by utilization, otherwise always the
/// highest frequencies. Returns the number of groups.
///
/// # Errors
///
/// The errors of [`prepare`].
pub fn prepare_groups<'obj, S: OpenSkel<'obj>>(
    opened: &mut Opened<S>,
    topology: &Topology,
    grouping: Grouping,
    scales_frequency: bool,
) -> Result<u32> {
    let used = Use {
        ignore_smt: false,
        grouping,
    };
    let mut table = Table::new(topology, used)?;
    table.perf_level = if scales_frequency { BY_UTIL } else { MAX_LEVEL };
    opened.set_section(SECTION, &*table)?;
    Ok(table.nr_nodes())
}

/// The primary domain and the resume latency limit of a running scheduler. With
/// `--primary-domain auto`, the domain follows the power profile if the machine has little cores.
#[derive(Debug)]
pub struct Placement {
    primary: Primary,
    saving: &'static [Profile],
    topology: Topology,
    source: ProfileSource,
    profile: Option<Profile>,
    /// `struct scx_primary`.
    words: Words,
    current: Option<Cpumask>,
    _resume: Option<ResumeLatency>,
}

impl Placement {
    /// Sets the limit of `--idle-resume-us`, if it is given. A failure to set it is only logged.
    /// `words` is the section `.data.scx_primary`. `saving` are the profiles in which
    /// `--primary-domain auto` prefers the efficient CPUs.
    ///
    /// # Errors
    ///
    /// If the section cannot be mapped.
    pub fn new(
        start: &Start<'_>,
        topology: Topology,
        opts: &PlacementOpts,
        saving: &'static [Profile],
        words: &impl MapCore,
    ) -> Result<Self> {
        let root = start.token().root();
        let resume = u32::try_from(opts.idle_resume_us).ok().and_then(|us| {
            let held = ResumeLatency::hold(root, topology.online(), us, Path::new(NOTES_DIR));
            held.map_err(|error| tracing::warn!("--idle-resume-us has no effect: {error:#}"))
                .ok()
        });
        Ok(Self {
            primary: opts.primary_domain.clone(),
            saving,
            topology,
            source: ProfileSource::new(root),
            profile: None,
            words: Words::map(words)?,
            current: None,
            _resume: resume,
        })
    }

    /// Whether the primary domain depends on the power profile.
    fn follows_profile(&self) -> bool {
        self.primary == Primary::Auto && self.topology.has_little_cores()
    }

    /// For [`Instance::tick`]: updates the primary domain if it follows the power profile.
    ///
    /// [`Instance::tick`]: crate::runner::Instance::tick
    ///
    /// # Errors
    ///
    /// If the kernel does not run the program, or the program fails.
    pub fn tick(&mut self, scx_set_primary: &ProgramMut<'_>) -> Result<Tick> {
        if !self.follows_profile() {
            return Ok(Tick::Never);
        }
        self.update(scx_set_primary)?;
        Ok(Tick::After(INTERVAL))
    }

    /// Determines the primary domain, and runs the BPF program `scx_set_primary` if it has changed.
    ///
    /// # Errors
    ///
    /// If the kernel does not run the BPF program, or the program fails.
    pub fn update(&mut self, scx_set_primary: &ProgramMut<'_>) -> Result<()> {
        if self.follows_profile() {
            // While the profile cannot be read, the last known profile remains in effect.
            self.profile = self.source.read().or(self.profile);
        }
        let cpus = self.primary.cpus(&self.topology, self.profile, self.saving);
        if cpus == self.current {
            return Ok(());
        }
        if let Some(profile) = self.profile {
            let list = cpus.as_ref().map_or("none".to_owned(), Cpumask::to_list);
            tracing::info!("power profile {profile}: primary domain {list}");
        }
        let words = cpus.as_ref().map_or(&[][..], Cpumask::words);
        for index in 0..CPUS_MAX / 64 {
            self.words
                .set(index, words.get(index).copied().unwrap_or(0));
        }
        self.current = cpus;
        let result = run(scx_set_primary, &mut [])?;
        ensure!(result == 0, "cannot set the primary domain: error {result}");
        Ok(())
    }
}
