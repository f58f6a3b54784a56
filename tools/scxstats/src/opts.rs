// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use scx_utils::build_id::full_version;
use scx_utils::cli::{interval, Generate};

/// Shows the statistics of the running sched_ext scheduler.
///
/// Without options it prints them once, as totals since the scheduler's start: a line for each
/// number, with its name and labels. Texts and lists are included in JSON only. --openmetrics
/// includes a description of each number.
///
/// Statistics are accessible to root, and to the group of the scheduler's --stats-group.
#[derive(Debug, Parser)]
#[command(name = "scxstats", version = full_version(env!("CARGO_PKG_VERSION")))]
#[command(after_help = "Exit status: 0 done or interrupted, 1 no statistics, 2 wrong usage.")]
pub(crate) struct Opts {
    /// Print the changes every SEC seconds (0.1 to 86400) until interrupted; waits for a scheduler
    /// if none is running
    #[arg(short, long, value_name = "SEC", value_parser = interval, allow_negative_numbers = true)]
    #[arg(conflicts_with = "openmetrics")]
    pub(crate) watch: Option<Duration>,

    /// Print JSON, one line each time
    #[arg(short, long, conflicts_with = "openmetrics")]
    pub(crate) json: bool,

    /// Print the text format of Prometheus (OpenMetrics)
    #[arg(short, long)]
    pub(crate) openmetrics: bool,

    /// With --openmetrics: serve Prometheus over HTTP, at /metrics, until interrupted; by default
    /// on 127.0.0.1:9988, for local clients only
    #[arg(short, long, value_name = "ADDRESS:PORT", requires = "openmetrics")]
    #[arg(num_args = 0..=1, default_missing_value = "127.0.0.1:9988")]
    pub(crate) listen: Option<SocketAddr>,

    /// The scheduler's socket
    #[arg(short, long, value_name = "PATH", default_value = scx_stats::DEFAULT_PATH)]
    pub(crate) path: PathBuf,

    /// Write the manual page, or shell completions
    #[arg(long, hide = true, value_name = "WHAT", value_enum)]
    pub(crate) generate: Option<Generate>,
}
