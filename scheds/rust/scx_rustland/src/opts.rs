// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use anyhow::{ensure, Result};
use clap::Args;
use scx_rustland_core::{IdleSelection, Options};

/// As they are typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task may run while nobody waits, 100 to 1000000. Divided by the number of those
    /// who wait: longer slices cost fewer switches, shorter ones less waiting
    #[arg(
        short,
        long,
        value_name = "US",
        default_value = "5000",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub(crate) slice_us: u32,

    /// The least that a slice is shortened to, 50 to 1000000; the kernel looks at slices at each
    /// of its ticks only
    #[arg(
        short = 'S',
        long,
        value_name = "US",
        default_value = "250",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(50..=1_000_000))]
    pub(crate) slice_us_min: u32,

    /// By how many slices of computing a task is put back, at most: more makes the machine more
    /// responsive, less makes it fairer over short times. 0: by weights alone, and nobody is
    /// interrupted
    #[arg(
        short = 'b',
        long,
        value_name = "N",
        default_value = "20",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) slice_boost: u32,

    /// Let the kernel place tasks that wake up on idle CPUs, if nobody waits: less work for the
    /// scheduler, and cores and caches are minded; who wakes up is then not ordered among others
    #[arg(short = 'i', long, conflicts_with = "full_user")]
    pub(crate) builtin_idle: bool,

    /// Decide on each wake-up in user space. By default a task whose CPU is idle runs there at
    /// once, if nobody waits, and one that is woken by somebody who is about to sleep gets the rest
    /// of his slice: quicker, and less work for the scheduler
    #[arg(short = 'u', long)]
    pub(crate) full_user: bool,

    /// While there are CPUs enough, serve tasks in order of arrival and interrupt nobody: fewer
    /// switches, less fair. In the statistics, mode=1 is order of arrival and mode=0 is not
    #[arg(short, long)]
    pub(crate) fifo: bool,

    /// Leave idle CPUs asleep as long as another one runs: saves power, and tasks wait longer
    #[arg(long)]
    pub(crate) low_power: bool,

    /// Interrupt nobody when an interactive task wakes up: fewer switches, and it waits for the
    /// end of a slice
    #[arg(short, long)]
    pub(crate) disable_preemption: bool,

    /// Tasks stay on the CPU they are on: no migration, so some CPUs may be idle while others
    /// have much to do
    #[arg(short = 'l', long)]
    pub(crate) percpu_local: bool,
}

/// As they are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// For the BPF side.
    pub(crate) core: Options,
    pub(crate) policy: crate::policy::Config,
}

impl TryFrom<Opts> for Config {
    type Error = anyhow::Error;

    fn try_from(opts: Opts) -> Result<Self> {
        ensure!(
            opts.slice_us_min <= opts.slice_us,
            "--slice-us-min {} is more than --slice-us {}",
            opts.slice_us_min,
            opts.slice_us
        );
        let slice_ns = u64::from(opts.slice_us) * 1000;
        let idle = match opts {
            Opts {
                full_user: true, ..
            } => IdleSelection::FullUser,
            Opts {
                builtin_idle: true, ..
            } => IdleSelection::Builtin,
            _ => IdleSelection::PrevCpu,
        };
        Ok(Self {
            core: Options {
                slice_ns,
                idle,
                low_power: opts.low_power,
                heap: Some(&crate::HEAP),
                ..Options::new("rustland")
            },
            policy: crate::policy::Config {
                slice_ns,
                slice_min_ns: u64::from(opts.slice_us_min) * 1000,
                slice_boost: opts.slice_boost,
                preempts: !opts.disable_preemption,
                fifo: opts.fifo,
                percpu_local: opts.percpu_local,
            },
        })
    }
}
