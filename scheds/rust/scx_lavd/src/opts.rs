// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use anyhow::{ensure, Result};
use clap::Args;

use crate::bpf_intf::lavd_config;
use crate::mode::ModeOpts;

/// Default of `--pinned-slice-us`, if it is in the range of slices.
const PINNED_SLICE_US: u32 = 5000;

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    #[command(flatten)]
    pub(crate) mode: ModeOpts,

    /// The longest slice, 500 to 1000000. A task that needs longer gets up to 500 ms while no other
    /// one waits, and up to twice the slice while others do if its criticality is above average
    #[arg(long, value_name = "US", default_value = "5000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(500..=1_000_000))]
    slice_max_us: u32,

    /// The shortest slice, when many tasks wait, 100 to 1000000
    #[arg(long, value_name = "US", default_value = "500")]
    #[arg(allow_negative_numbers = true, value_parser = scx_utils::cli::slice_us())]
    slice_min_us: u32,

    /// The longest slice while a task that is pinned to the CPU waits, between --slice-min-us and
    /// --slice-max-us; 0: no such limit [default: 5000, or the nearest value in this range]
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pinned_slice_us: Option<u32>,

    /// Which tasks preempt others on wakeup: the topmost 1 / 2^SHIFT between the average and the
    /// largest criticality, 0 to 10; 0: all of at least average criticality
    #[arg(long, value_name = "SHIFT", default_value = "0")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10))]
    preempt_shift: u32,

    /// Do not preempt a task when another one wakes up
    #[arg(long)]
    no_preemption: bool,

    /// Do not prefer the waker's CPU when the waker is about to sleep
    #[arg(long)]
    no_wake_sync: bool,

    /// Do not extend the slices of tasks that usually run for longer. By default, they are extended
    /// if no other task waits, or if the criticality is above average
    #[arg(long)]
    no_slice_boost: bool,

    /// Do not give one more slice to tasks that probably hold a lock (futex)
    #[arg(long)]
    pub(crate) no_futex_boost: bool,

    /// Request the highest frequencies, instead of those that the utilization needs
    #[arg(long)]
    pub(crate) no_freq_scaling: bool,

    /// Load no scheduler, but each second print N samples, 1 to 512, of tasks that start to run
    /// under the running scheduler
    #[arg(long, value_name = "N", conflicts_with_all = ["stats", "monitor"])]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) monitor_sched_samples: Option<u32>,
}

impl Opts {
    /// Checks the relations between options, which clap cannot check.
    pub(crate) fn check(&self) -> Result<()> {
        let (min, max) = (self.slice_min_us, self.slice_max_us);
        ensure!(
            min <= max,
            "--slice-min-us {min} is more than --slice-max-us {max}"
        );
        let pinned = self.pinned_slice_us();
        ensure!(
            pinned == 0 || (min..=max).contains(&pinned),
            "--pinned-slice-us {pinned} is neither 0 nor between --slice-min-us {min} and \
             --slice-max-us {max}"
        );
        Ok(())
    }

    /// The value of the option, by default the value nearest to [`PINNED_SLICE_US`] in the range of
    /// slices. Requires that `slice_min_us` is at most `slice_max_us`.
    fn pinned_slice_us(&self) -> u32 {
        let default = PINNED_SLICE_US.clamp(self.slice_min_us, self.slice_max_us);
        self.pinned_slice_us.unwrap_or(default)
    }
}

impl From<&Opts> for lavd_config {
    fn from(opts: &Opts) -> Self {
        let ns = |us: u32| u64::from(us) * 1000;
        Self {
            slice_min_ns: ns(opts.slice_min_us),
            slice_max_ns: ns(opts.slice_max_us),
            pinned_slice_ns: ns(opts.pinned_slice_us()),
            preempt_shift: opts.preempt_shift,
            no_preemption: opts.no_preemption.into(),
            no_slice_boost: opts.no_slice_boost.into(),
            ignores_sync: opts.no_wake_sync.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        opts: Opts,
    }

    fn pinned_slice_us(args: &str) -> Option<u32> {
        let opts = Cli::parse_from(["scx_lavd"].into_iter().chain(args.split_whitespace())).opts;
        opts.check().ok().map(|()| opts.pinned_slice_us())
    }

    #[test]
    fn default_of_the_pinned_slice_follows_the_limits() {
        assert_eq!(pinned_slice_us(""), Some(5000));
        assert_eq!(pinned_slice_us("--slice-max-us 3000"), Some(3000));
        assert_eq!(
            pinned_slice_us("--slice-min-us 6000 --slice-max-us 9000"),
            Some(6000)
        );
        assert_eq!(pinned_slice_us("--pinned-slice-us 0"), Some(0));
        assert_eq!(
            pinned_slice_us("--slice-max-us 3000 --pinned-slice-us 4000"),
            None
        );
    }
}
