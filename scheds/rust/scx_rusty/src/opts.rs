// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use std::time::Duration;

use anyhow::{ensure, Context as _, Result};
use clap::Args;
use scx_utils::cli::slice_us;

/// As they are typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task may run while the machine has CPU time to spare, 100 to 1000000; less where
    /// many wait
    #[arg(short = 'u', long, value_name = "US", default_value = "20000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = slice_us())]
    pub(crate) slice_us_underutil: u32,

    /// The same while all CPUs are busy: shorter, so that nobody waits long for his turn
    #[arg(short = 'o', long, value_name = "US", default_value = "1000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = slice_us())]
    pub(crate) slice_us_overutil: u32,

    /// How often loads are balanced, in seconds, 0.1 to 3600; up to eight times as often while far
    /// more tasks wait in one domain than in another
    #[arg(short, long, value_name = "S", default_value = "2.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) interval: f64,

    /// How often slices and greediness follow the load, in seconds, 0.01 to 3600
    #[arg(short = 'I', long, value_name = "S", default_value = "0.1")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) tune_interval: f64,

    /// What a task did so long ago counts half, in seconds, 0.01 to 270
    #[arg(short = 'l', long, value_name = "S", default_value = "1.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) load_half_life: f64,

    /// The cache whose sharers are a domain; 3 is the last-level cache, and the only one that can
    /// be chosen
    #[arg(
        short,
        long,
        value_name = "LEVEL",
        default_value = "3",
        conflicts_with = "cpumasks"
    )]
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(3..=3))]
    pub(crate) cache_level: u32,

    /// Domains by hand instead: the CPUs of each, in hexadecimal, or as a list with a range, such
    /// as 0-3,8; those in none are a domain, too
    #[arg(short = 'C', long, value_name = "MASK", num_args = 1.., value_delimiter = ' ')]
    pub(crate) cpumasks: Vec<String>,

    /// An idle CPU takes tasks of another domain of its node if so many wait there; 0: never
    #[arg(short, long, value_name = "N", default_value = "1")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) greedy_threshold: u32,

    /// The same with domains of other nodes, whose memory is further away; 0: never
    #[arg(long, value_name = "N", default_value = "0")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) greedy_threshold_x_numa: u32,

    /// Do not move tasks between domains: they stay where they began, but for what idle CPUs take
    #[arg(long)]
    pub(crate) no_load_balance: bool,

    /// Run all kernel threads at once where they wake up, and not only those that are bound to a
    /// CPU: shorter input and output, at the cost of whoever computes there
    #[arg(short, long)]
    pub(crate) kthreads_local: bool,

    /// Leave kworkers, which the kernel places itself, out of balancing
    #[arg(short, long)]
    pub(crate) balanced_kworkers: bool,

    /// Serve tasks in order of arrival: weights and interactivity do not count
    #[arg(short, long)]
    pub(crate) fifo_sched: bool,

    /// A task that wakes up may take an idle CPU of another domain of its node that is busy for
    /// less than this, percent; 0: never, 100: always
    #[arg(short = 'D', long, value_name = "PERCENT", default_value = "90.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) direct_greedy_under: f64,

    /// Idle CPUs of domains that are busy for less than this are woken up to take waiting tasks,
    /// percent; 0: never, 100: always
    #[arg(short = 'K', long, value_name = "PERCENT", default_value = "100.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) kick_greedy_under: f64,

    /// The former on other nodes, too: less waiting, more access to far memory
    #[arg(short = 'r', long)]
    pub(crate) direct_greedy_numa: bool,

    /// Prefer to move tasks to the nodes that their memory policy names (set_mempolicy(2))
    #[arg(long)]
    pub(crate) mempolicy_affinity: bool,

    /// Ask the CPUs for this much of their highest performance, 1 to 1024; 0: leave it as it is,
    /// which is 1024 for sched_ext
    #[arg(long, value_name = "LEVEL", default_value = "0")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub(crate) perf: u32,
}

/// As they are used.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) tuner: crate::tuner::Config,
    pub(crate) interval: Duration,
    pub(crate) tune_interval: Duration,
    pub(crate) half_life_ns: u64,
    pub(crate) cpumasks: Vec<String>,
    pub(crate) greedy_threshold: u32,
    pub(crate) greedy_threshold_x_numa: u32,
    pub(crate) balances: bool,
    pub(crate) kthreads_local: bool,
    pub(crate) leaves_kworkers: bool,
    pub(crate) fifo_sched: bool,
    pub(crate) direct_greedy_numa: bool,
    pub(crate) mempolicy_affinity: bool,
    pub(crate) perf: u32,
}

fn seconds(option: &str, value: f64, least: f64, most: f64) -> Result<Duration> {
    ensure!(
        (least..=most).contains(&value),
        "{option} {value} is not from {least} to {most}"
    );
    Duration::try_from_secs_f64(value).with_context(|| format!("{option} {value}"))
}

fn percent(option: &str, value: f64) -> Result<f64> {
    ensure!(
        (0.0..=100.0).contains(&value),
        "{option} {value} is not from 0 to 100"
    );
    Ok(value / 100.0)
}

impl TryFrom<Opts> for Config {
    type Error = anyhow::Error;

    fn try_from(opts: Opts) -> Result<Self> {
        let half_life = seconds("--load-half-life", opts.load_half_life, 0.01, 270.0)?;
        Ok(Self {
            tuner: crate::tuner::Config {
                slice_underutil_ns: u64::from(opts.slice_us_underutil) * 1000,
                slice_overutil_ns: u64::from(opts.slice_us_overutil) * 1000,
                direct_under: percent("--direct-greedy-under", opts.direct_greedy_under)?,
                kick_under: percent("--kick-greedy-under", opts.kick_greedy_under)?,
            },
            interval: seconds("--interval", opts.interval, 0.1, 3600.0)?,
            tune_interval: seconds("--tune-interval", opts.tune_interval, 0.01, 3600.0)?,
            half_life_ns: u64::try_from(half_life.as_nanos())?,
            cpumasks: opts.cpumasks,
            greedy_threshold: opts.greedy_threshold,
            greedy_threshold_x_numa: opts.greedy_threshold_x_numa,
            balances: !opts.no_load_balance,
            kthreads_local: opts.kthreads_local,
            leaves_kworkers: opts.balanced_kworkers,
            fifo_sched: opts.fifo_sched,
            direct_greedy_numa: opts.direct_greedy_numa,
            mempolicy_affinity: opts.mempolicy_affinity,
            perf: opts.perf,
        })
    }
}
