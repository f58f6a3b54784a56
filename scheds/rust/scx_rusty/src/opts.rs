// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use std::time::Duration;

use anyhow::{ensure, Context as _, Result};
use clap::Args;
use scx_utils::cli::slice_us;

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task may run while the machine is not saturated, 100 to 1000000; less if many
    /// tasks wait. Tasks that run for less than 4 ms on average before they sleep may run for 3 ms
    /// whether the machine is saturated or not, unless both slices are shorter
    #[arg(short = 'u', long, value_name = "US", default_value = "20000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = slice_us())]
    pub(crate) slice_us_underutil: u32,

    /// The same while all CPUs are busy: shorter, to bound the time that tasks wait
    #[arg(short = 'o', long, value_name = "US", default_value = "1000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = slice_us())]
    pub(crate) slice_us_overutil: u32,

    /// Interval of load balancing in seconds, 0.1 to 3600; down to an eighth of it while the weight
    /// of runnable tasks per CPU is far higher in one domain than in another
    #[arg(short, long, value_name = "S", default_value = "2.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) interval: f64,

    /// Interval in seconds, 0.01 to 3600, at which the tuner adapts the slices, and the use of
    /// other domains' idle CPUs, to the utilization of the CPUs
    #[arg(short = 'I', long, value_name = "S", default_value = "0.1")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) tune_interval: f64,

    /// Half-life of load averages, in seconds, 0.01 to 270
    #[arg(short = 'l', long, value_name = "S", default_value = "1.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) load_half_life: f64,

    /// The cache level that the CPUs of a domain share; only 3 (last-level cache) is supported
    #[arg(
        short,
        long,
        value_name = "LEVEL",
        default_value = "3",
        conflicts_with = "cpumasks"
    )]
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(3..=3))]
    pub(crate) cache_level: u32,

    /// Set the domains explicitly: each MASK has the CPUs of one domain. A MASK with a '-' is a
    /// list of CPUs, such as 0-3,8 or 8-8; any other is hexadecimal, so that 8 is CPU 3. A MASK
    /// that spans nodes is split. On each node, the CPUs in no MASK form another domain
    #[arg(short = 'C', long, value_name = "MASK", num_args = 1.., value_delimiter = ' ')]
    pub(crate) cpumasks: Vec<String>,

    /// An idle CPU steals tasks of another domain of its node if at least this many wait there; 0:
    /// only if the CPUs of that domain have taken none for 50 ms or more
    #[arg(short, long, value_name = "N", default_value = "1")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) greedy_threshold: u32,

    /// The same for domains of other nodes, whose memory is further away
    #[arg(long, value_name = "N", default_value = "0")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) greedy_threshold_x_numa: u32,

    /// Do not migrate tasks between domains by load. Young tasks still leave crowded domains, and
    /// CPUs still steal
    #[arg(long)]
    pub(crate) no_load_balance: bool,

    /// Run all kernel threads before the tasks that wait for their CPU, not only kernel threads
    /// that are bound to one CPU: faster I/O, at the cost of other tasks
    #[arg(short, long)]
    pub(crate) kthreads_local: bool,

    /// Exclude kworkers, which the kernel places itself, from balancing
    #[arg(short, long)]
    pub(crate) balanced_kworkers: bool,

    /// Run tasks in FIFO order: weights and interactivity do not affect it
    #[arg(short, long)]
    pub(crate) fifo_sched: bool,

    /// Honour cpu.weight and cpu.idle of cgroups at every level of their hierarchy: a cgroup shares
    /// what it gets among its runnable tasks, by their weights
    #[arg(long, conflicts_with = "fifo_sched")]
    pub(crate) cgroups: bool,

    /// On wakeup a task may use an idle CPU of another domain of its node if that domain is less
    /// busy than this, percent; 0: never, 100: always
    #[arg(short = 'D', long, value_name = "PERCENT", default_value = "90.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) direct_greedy_under: f64,

    /// Idle CPUs of domains that are less busy than this are woken to steal waiting tasks, percent;
    /// 0: never, 100: always
    #[arg(short = 'K', long, value_name = "PERCENT", default_value = "100.0")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) kick_greedy_under: f64,

    /// Apply --direct-greedy-under to other nodes too: less waiting, more remote memory accesses
    #[arg(short = 'r', long)]
    pub(crate) direct_greedy_numa: bool,

    /// Prefer to migrate tasks to the nodes of their memory policy (set_mempolicy(2))
    #[arg(long)]
    pub(crate) mempolicy_affinity: bool,

    /// Request this performance level of the CPUs, 1 to 1024; 0: leave the default, which is 1024
    /// for sched_ext
    #[arg(long, value_name = "LEVEL", default_value = "0")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub(crate) perf: u32,
}

/// The options after validation.
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
    pub(crate) cgroups: bool,
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
            cgroups: opts.cgroups,
            direct_greedy_numa: opts.direct_greedy_numa,
            mempolicy_affinity: opts.mempolicy_affinity,
            perf: opts.perf,
        })
    }
}
