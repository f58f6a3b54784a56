// SPDX-License-Identifier: GPL-2.0-only
//! `scx_fail` on the Rust runner, which must behave like the C runner.

use std::fmt;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use scx_stats::Stats;
use scx_utils::bpf::{Attached, Slot};
use scx_utils::exit_info::ExitInfo;
use scx_utils::runner::{self, Instance, Program, Scheduler, Start, StatsReader};
use serde::{Deserialize, Serialize};

use bpf_skel::{BpfSkel, BpfSkelBuilder};

scx_utils::include_bpf!(skel);

#[derive(Debug, clap::Args)]
struct Opts {
    /// ops.init() returns -ERRNO
    #[arg(long, value_name = "ERRNO", default_value = "0")]
    #[arg(value_parser = clap::value_parser!(i32).range(0..=4095))]
    init_error: i32,

    /// scx_bpf_error() at the Nth enqueue
    #[arg(long, value_name = "N", default_value = "0")]
    error_after: u64,

    /// From the Nth enqueue on, lose tasks with a positive nice value
    #[arg(long, value_name = "N", default_value = "0")]
    stall_after: u64,

    /// scx_bpf_exit() at the Nth enqueue
    #[arg(long, value_name = "N", default_value = "0")]
    exit_after: u64,

    /// Exit code of --exit-after, decimal or hexadecimal (0x...)
    #[arg(long, value_name = "CODE", default_value = "0", value_parser = number)]
    exit_code: u64,
}

fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.strip_prefix("0x")
        .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
}

/// Values that have reached the BPF side, so that tests detect a lost option.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(top)]
struct Metrics {
    #[stat(counter, desc = "Calls of ops.enqueue()")]
    enqueued: u64,
    #[stat(desc = "Value of --exit-after")]
    exit_after: u64,
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "enqueued={} exit_after={}",
            self.enqueued, self.exit_after
        )
    }
}

struct Fail;

struct Running<'obj> {
    bpf: Attached<BpfSkel<'obj>>,
}

impl Scheduler for Fail {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str = "For tests.";
    const KFUNCS: &'static [&'static str] = bpf_kfuncs::KFUNCS;

    type Opts = Opts;
    type Config = Opts;
    type Stats = Metrics;
    type Instance<'obj> = Running<'obj>;

    fn config(opts: Opts) -> Result<Opts> {
        Ok(opts)
    }

    fn attach<'obj>(start: &Start<'_>, opts: &Opts, slot: &'obj mut Slot) -> Result<Running<'obj>> {
        let mut opened = start.open(BpfSkelBuilder::default(), slot)?;
        let rodata = opened
            .maps
            .rodata_data
            .as_deref_mut()
            .context("no rodata")?;
        rodata.init_error = -opts.init_error;
        rodata.error_after = opts.error_after;
        rodata.stall_after = opts.stall_after;
        rodata.exit_after = opts.exit_after;
        rodata.exit_code = opts.exit_code;
        Ok(Running {
            bpf: start.load_and_attach(opened)?,
        })
    }
}

impl Instance for Running<'_> {
    type Stats = Metrics;

    fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        let bss = MapHandle::try_from(&self.bpf.maps.bss)?;
        let exit_after = self.bpf.maps.rodata_data.context("no rodata")?.exit_after;
        Ok(Box::new(move || {
            let bytes = bss
                .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?
                .context("no bss")?;
            let enqueued = bytes.get(..8).context("a short bss")?.try_into()?;
            Ok(Metrics {
                enqueued: u64::from_ne_bytes(enqueued),
                exit_after,
            })
        }))
    }

    fn exited(&self) -> bool {
        self.bpf.exited()
    }

    fn detach(self) -> ExitInfo {
        self.bpf.detach()
    }
}

fn main() -> ExitCode {
    runner::main::<Fail>()
}
