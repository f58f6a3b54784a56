// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use scx_utils::build_id::full_version;
use scx_utils::cli::{interval, Generate};

/// Shows what the CPU scheduler does: CPUs, tasks, dispatch queues, latencies of wakeups.
///
/// Without a command it shows them in the terminal, until q is pressed; ? lists the keys. It works
/// with any scheduler; views about sched_ext are empty without a sched_ext scheduler. It requires
/// root privileges.
#[derive(Debug, Parser)]
#[command(name = "scxtop", version = full_version(env!("CARGO_PKG_VERSION")))]
#[command(
    after_help = "Exit status: 0 done or interrupted, 1 nothing can be shown or recorded, \
                        2 wrong usage."
)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Opts {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) live: LiveOpts,

    /// Write the manual page, or shell completions
    #[arg(long, hide = true, value_name = "WHAT", value_enum)]
    pub(crate) generate: Option<Generate>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print what the views show, once per interval
    Top(TopOpts),
    /// Record a trace for ui.perfetto.dev
    Trace(TraceOpts),
}

/// Options of the live views.
#[derive(Clone, Debug, Args)]
pub(crate) struct LiveOpts {
    /// Length of an interval, seconds (0.1 to 86400)
    #[arg(short, long, value_name = "SEC", default_value = "1", value_parser = interval)]
    pub(crate) interval: Duration,

    /// The socket of the scheduler's statistics
    #[arg(long, value_name = "PATH", default_value = scx_stats::DEFAULT_PATH)]
    pub(crate) stats_socket: PathBuf,

    /// Where key a saves its traces
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) trace_dir: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TopOpts {
    /// Print JSON: one object per interval, each on a line
    #[arg(short, long)]
    pub(crate) json: bool,

    /// Length of an interval, seconds (0.1 to 86400)
    #[arg(short, long, value_name = "SEC", default_value = "1", value_parser = interval)]
    pub(crate) interval: Duration,

    /// Number of intervals; by default until interrupted
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Print at most N tasks: those with the most CPU time
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    pub(crate) tasks: usize,

    /// The socket of the scheduler's statistics
    #[arg(long, value_name = "PATH", default_value = scx_stats::DEFAULT_PATH)]
    pub(crate) stats_socket: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TraceOpts {
    /// Length of the trace, seconds (0.1 to 86400); with --on-latency, of what is kept
    #[arg(short, long, value_name = "SEC", default_value = "5", value_parser = interval)]
    pub(crate) seconds: Duration,

    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "scxtop.pftrace")]
    pub(crate) output: PathBuf,

    /// Record until a wakeup takes longer than TIME (such as 20ms), then write what led up to it
    #[arg(long, value_name = "TIME", value_parser = latency)]
    pub(crate) on_latency: Option<Duration>,

    /// Size of the buffers between kernel and scxtop, of all CPUs together, MiB, from 1 to 1024
    #[arg(long = "buffer-mib", value_name = "MIB", default_value = "64", value_parser = mib)]
    pub(crate) buffer_bytes: u32,

    /// The socket of the scheduler's statistics
    #[arg(long, value_name = "PATH", default_value = scx_stats::DEFAULT_PATH)]
    pub(crate) stats_socket: PathBuf,
}

/// Parses a latency: a number with its unit, `us`, `ms` or `s`.
fn latency(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_us = match &text[digits.len()..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return Err("not a number with a unit, such as 500us, 20ms or 1s".to_owned()),
    };
    match digits.parse::<u64>() {
        Ok(number @ 1..=1_000_000) => Ok(Duration::from_micros(number * unit_us)),
        _ => Err("not a whole number from 1 to 1000000".to_owned()),
    }
}

/// Parses the size of the rings, in MiB. Returns it in bytes.
fn mib(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(mib @ 1..=1024) => Ok(mib << 20),
        _ => Err("not a whole number from 1 to 1024".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_limited() {
        assert_eq!(mib("1"), Ok(1 << 20));
        assert_eq!(mib("1024"), Ok(1 << 30));
        for wrong in ["0", "1025", "4294967295", "-1", "16M", "1.5", ""] {
            assert!(mib(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn latencies_have_units() {
        assert_eq!(latency("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(latency("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(latency("1s"), Ok(Duration::from_secs(1)));
        for wrong in ["20", "ms", "0ms", "-1ms", "1.5ms", "1h", "9999999s", ""] {
            assert!(latency(wrong).is_err(), "{wrong}");
        }
    }
}
