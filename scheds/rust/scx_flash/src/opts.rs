// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use clap::Args;
use scx_utils::placement::PlacementOpts;

use crate::bpf_intf::flash_config;

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task of weight 100 may run at a time, 100 to 1000000; others in proportion to
    /// their weight, but at least 100 and at most 1000000
    #[arg(short, long, value_name = "US", default_value = "700")]
    #[arg(allow_negative_numbers = true, value_parser = scx_utils::cli::slice_us())]
    pub(crate) slice_us: u32,

    /// Maximum credit of a sleeping task that wakes up once per 100 ms, 0 to 1000000. A task that
    /// wakes up more often may get up to 100 times as much. With more credit, a task runs sooner
    /// when it wakes up; 0: no credit, tasks are ordered by CPU time alone
    #[arg(short = 'l', long, value_name = "US", default_value = "20000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) slice_us_lag: u32,

    /// Let tasks run until others wait for the CPU, so that the tick can be off on CPUs of
    /// nohz_full=. Others wait for --slice-us, and up to 10 ms more
    #[arg(short = 'T', long)]
    pub(crate) tickless: bool,

    /// Round robin: tasks run in order of arrival, whatever they have used so far
    #[arg(short = 'R', long)]
    pub(crate) rr_sched: bool,

    /// Add --slice-us-lag to the deadlines of tasks with an average runtime below 10 us, to
    /// throttle tasks that wake up all the time
    #[arg(long)]
    pub(crate) wakeup_throttle: bool,

    #[command(flatten)]
    pub(crate) placement: PlacementOpts,
}

impl From<&Opts> for flash_config {
    fn from(opts: &Opts) -> Self {
        Self {
            slice_ns: u64::from(opts.slice_us) * 1000,
            lag_ns: u64::from(opts.slice_us_lag) * 1000,
            rr: opts.rr_sched.into(),
            tickless: opts.tickless.into(),
            wakeup_throttle: opts.wakeup_throttle.into(),
            local_kthreads: (opts.placement.throttle_us > 0).into(),
        }
    }
}
