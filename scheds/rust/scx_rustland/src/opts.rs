// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use anyhow::{ensure, Result};
use clap::Args;
use scx_rustland_core::{IdleSelection, Options};
use scx_utils::cli::slice_us;

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task may run while no other waits, 100 to 1000000. Divided by the number of
    /// waiting tasks: longer slices cost fewer context switches, shorter ones reduce latency
    #[arg(
        short,
        long,
        value_name = "US",
        default_value = "5000",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = slice_us())]
    pub(crate) slice_us: u32,

    /// Minimum slice when many tasks wait, 50 to 1000000; the kernel checks slices only at ticks
    #[arg(
        short = 'S',
        long,
        value_name = "US",
        default_value = "250",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(50..=1_000_000))]
    pub(crate) slice_us_min: u32,

    /// Maximum delay of a task for the CPU time that it has used since it last slept, in slices:
    /// more makes the machine more responsive, less makes it fairer over short times. 0: order by
    /// weighted CPU time alone, and no preemption
    #[arg(
        short = 'b',
        long,
        value_name = "N",
        default_value = "20",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) slice_boost: u32,

    /// Let the kernel select idle CPUs on wakeup, if no task waits: less work for the scheduler,
    /// and cores and caches are considered; but the policy does not see these wakeups
    #[arg(short = 'i', long, conflicts_with = "full_user")]
    pub(crate) builtin_idle: bool,

    /// Decide on each wakeup in user space. By default a wakee runs at once if its CPU is idle and
    /// no task waits, and on a sync wakeup it inherits the waker's remaining slice: faster, and
    /// less work for the scheduler
    #[arg(short = 'u', long)]
    pub(crate) full_user: bool,

    /// While CPUs are idle and hardly any task waits, run tasks in FIFO order without preemption:
    /// fewer context switches, less fair. The statistics show it as mode=1, otherwise mode=0
    #[arg(short, long)]
    pub(crate) fifo: bool,

    /// Let tasks wait for a busy CPU rather than wake an idle one: saves power, increases latency
    #[arg(long)]
    pub(crate) low_power: bool,

    /// Do not preempt tasks when an interactive one wakes up: fewer context switches, but the wakee
    /// waits for the end of a slice
    #[arg(short, long)]
    pub(crate) disable_preemption: bool,

    /// Assign each task to the CPU where it last ran: some CPUs may be idle while others are
    /// overloaded. To prevent all migration, add --full-user: otherwise a wakee may still inherit
    /// the slice of its waker, on the waker's CPU
    #[arg(short = 'l', long)]
    pub(crate) percpu_local: bool,
}

/// The options as used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// Options of the BPF side.
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
