// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use clap::Args;
use scx_rustland_core::{IdleSelection, Options};
use scx_utils::cli::slice_us;

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// How long a task may run while other tasks wait, 100 to 1000000
    #[arg(
        short,
        long,
        value_name = "US",
        default_value = "20000",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = slice_us())]
    pub(crate) slice_us: u32,

    /// Tasks of nice -1 and below (weight above 100) run until they sleep; they are queued like
    /// others
    #[arg(short, long)]
    pub(crate) weighted: bool,

    /// Keep tasks on their CPU: no migration, except on wakeup with --builtin-idle
    #[arg(short = 'l', long)]
    pub(crate) percpu_local: bool,

    /// Let the kernel select idle CPUs on wakeup; otherwise user space decides on everything
    #[arg(short = 'i', long)]
    pub(crate) builtin_idle: bool,
}

/// The options as used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// Options of the BPF side.
    pub(crate) core: Options,
    pub(crate) policy: crate::policy::Config,
}

impl From<Opts> for Config {
    fn from(opts: Opts) -> Self {
        let slice_ns = u64::from(opts.slice_us) * 1000;
        let idle = if opts.builtin_idle {
            IdleSelection::Builtin
        } else {
            IdleSelection::FullUser
        };
        Self {
            core: Options {
                slice_ns,
                idle,
                heap: Some(&crate::HEAP),
                ..Options::new("rlfifo")
            },
            policy: crate::policy::Config {
                slice_ns,
                weighted: opts.weighted,
                percpu_local: opts.percpu_local,
            },
        }
    }
}
