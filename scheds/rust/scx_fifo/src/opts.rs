// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use clap::Args;
use scx_utils::cli::slice_us;

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task may run before it goes back to the end of the queue, 100 to 1000000;
    /// less if many tasks wait
    #[arg(
        short,
        long,
        value_name = "US",
        default_value = "20000",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = slice_us())]
    pub(crate) slice_us: u32,
}

/// The options as used.
#[derive(Debug)]
pub(crate) struct Config {
    /// `--slice-us` in nanoseconds.
    pub(crate) slice_ns: u64,
}

impl From<Opts> for Config {
    fn from(opts: Opts) -> Self {
        Self {
            slice_ns: u64::from(opts.slice_us) * 1000,
        }
    }
}
