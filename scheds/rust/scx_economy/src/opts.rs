// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own options.

use std::fmt;

use clap::{Args, ValueEnum};

use crate::bpf_intf::economy_config;

/// Whether tasks trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Economy {
    On,
    Off,
}

impl fmt::Display for Economy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

/// The options as typed.
#[derive(Debug, Args)]
pub(crate) struct Opts {
    /// Whether the senders of messages pay their receivers; off: a plain fair scheduler
    #[arg(short, long, value_name = "ON|OFF", default_value_t = Economy::On)]
    pub(crate) economy: Economy,

    /// Price of a message, 1 to 1000000
    #[arg(long, value_name = "US", default_value = "100")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    price_us: u32,

    /// Maximum balance of an account, 1 to 1000000; beyond it, senders do not pay
    #[arg(short, long, value_name = "US", default_value = "30000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit_us: u32,

    /// What a sender keeps of its means, which are the CPU time that it is owed and three slices, 0
    /// to 1000000. With less, servers get more, but clients that pay wait longer for a CPU
    #[arg(short, long, value_name = "US", default_value = "3000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    reserve_us: u32,

    /// A sender that cannot pay the whole price pays what it can; by default, it pays nothing
    #[arg(long)]
    partial_pay: bool,

    /// Replies pay too, and so do messages over socket pairs; by default, only the clients of
    /// listening sockets pay
    #[arg(long)]
    two_way: bool,

    /// Writers of pipes pay the readers
    #[arg(long)]
    pub(crate) pipes: bool,

    /// Tasks that wait for a PI futex lend its owner CPU time until they get the futex
    #[arg(long)]
    pub(crate) futex: bool,

    /// Maximum loan to the owner of a PI futex, 1 to 1000000
    #[arg(long, value_name = "US", default_value = "100")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    futex_price_us: u32,

    /// The most CPU time that a sleeping task may be owed, or may owe, 1000 to 1000000
    #[arg(long, value_name = "US", default_value = "30000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    lag_max_us: u32,

    /// How long a task may run while others wait, 500 to 1000000; less if very many wait
    #[arg(short, long, value_name = "US", default_value = "3000")]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(500..=1_000_000))]
    slice_us: u32,

    /// Load no scheduler, but print who pays for a task or process of the running one
    #[arg(long, value_name = "PID", conflicts_with_all = ["stats", "monitor"])]
    #[arg(allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) explain: Option<u32>,
}

impl From<&Opts> for economy_config {
    fn from(opts: &Opts) -> Self {
        let ns = |us: u32| u64::from(us) * 1000;
        Self {
            slice_ns: ns(opts.slice_us),
            lag_max_ns: ns(opts.lag_max_us),
            price_ns: ns(opts.price_us),
            futex_price_ns: ns(opts.futex_price_us),
            limit_ns: ns(opts.limit_us),
            reserve_ns: ns(opts.reserve_us),
            is_partial: opts.partial_pay.into(),
            both_ways: opts.two_way.into(),
        }
    }
}
