// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use clap::Args;
use scx_utils::placement::PlacementOpts;

use crate::bpf_intf::bpfland_config;

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task of weight 100 may run while no other one waits, 100 to 1000000; others in
    /// proportion to their weight. While tasks wait, the slice is divided by their number
    #[arg(short, long, value_name = "US", default_value = "1000")]
    #[arg(allow_negative_numbers = true, value_parser = scx_utils::cli::slice_us())]
    pub(crate) slice_us: u32,

    /// The shortest slice, 0 to 1000000; slices below 100 are not used
    #[arg(short = 'L', long, value_name = "US", default_value = "0")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) slice_min_us: u32,

    /// Maximum credit of a sleeping task of weight 100 that wakes up once per 100 ms, 0 to 1000000.
    /// A task that wakes up more often may get up to 64 times as much. With more credit, a task
    /// runs sooner when it wakes up; 0: no credit, tasks are ordered by CPU time alone
    #[arg(short = 'l', long, value_name = "US", default_value = "40000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) slice_us_lag: u32,

    /// Run tasks that are pinned to one CPU before all others: lower latency, but others may starve
    #[arg(long)]
    pub(crate) local_pcpu: bool,

    /// Run kernel threads that are bound to one CPU before all others
    #[arg(short = 'k', long)]
    pub(crate) local_kthreads: bool,

    /// Do not prefer the waker's CPU when the waker is about to sleep
    #[arg(short = 'w', long)]
    pub(crate) no_wake_sync: bool,

    /// A task that runs for less than 10 us on average moves to an idle CPU only when it wakes up,
    /// and a task whose slice has ended is not sent to an idle CPU: fewer migrations, but tasks may
    /// wait while other CPUs are idle
    #[arg(short = 'S', long)]
    pub(crate) sticky_tasks: bool,

    /// Take the previous CPU if it is idle, else the fastest idle one, instead of the nearest one:
    /// for machines with CPUs of different speeds
    #[arg(short = 'P', long)]
    pub(crate) preferred_idle_scan: bool,

    #[command(flatten)]
    pub(crate) placement: PlacementOpts,
}

impl From<&Opts> for bpfland_config {
    fn from(opts: &Opts) -> Self {
        let ns = |us: u32| u64::from(us) * 1000;
        Self {
            slice_max_ns: ns(opts.slice_us),
            slice_min_ns: ns(opts.slice_min_us),
            lag_ns: ns(opts.slice_us_lag),
            local_pcpu: opts.local_pcpu.into(),
            local_kthreads: (opts.local_kthreads || opts.placement.throttle_us > 0).into(),
            ignores_sync: opts.no_wake_sync.into(),
            sticky: opts.sticky_tasks.into(),
            prefers_fastest: opts.preferred_idle_scan.into(),
            ..Self::default()
        }
    }
}
