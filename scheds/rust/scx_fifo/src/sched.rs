// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's implementation of the runner's traits.

use anyhow::{Context as _, Result};
use libbpf_rs::MapHandle;
use scx_utils::bpf::{Attached, Slot};
use scx_utils::exit_info::ExitInfo;
use scx_utils::manifest::Modes;
use scx_utils::percpu::PerCpu;
use scx_utils::runner::{Instance, Program, Scheduler, Start, StatsReader};

use crate::opts::{Config, Opts};
use crate::stats::Metrics;
use bpf_intf::fifo_counts;
use bpf_skel::{BpfSkel, BpfSkelBuilder};

scx_utils::include_bpf!();

/// The scheduler.
pub(crate) struct Fifo;

/// The attached scheduler, until it ends or is restarted.
pub(crate) struct Running<'obj> {
    bpf: Attached<BpfSkel<'obj>>,
}

impl Scheduler for Fifo {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str =
        "On wakeup a task goes directly to an idle CPU if there is one. All other tasks wait in \
         one queue for the whole machine and run in FIFO order, each for one slice. Nice values \
         have no effect, tasks are not preempted before their slices end, and caches and nodes \
         are ignored: suitable for equal tasks on a machine with one last-level cache.";
    const MODES: Modes = Modes {
        gaming: &["--slice-us", "5000"],
        low_latency: &["--slice-us", "2000"],
        ..Modes::NONE
    };
    const KFUNCS: &'static [&'static str] = bpf_kfuncs::KFUNCS;

    type Opts = Opts;
    type Config = Config;
    type Stats = Metrics;
    type Instance<'obj> = Running<'obj>;

    fn config(opts: Opts) -> Result<Config> {
        Ok(opts.into())
    }

    fn attach<'obj>(
        start: &Start<'_>,
        config: &Config,
        slot: &'obj mut Slot,
    ) -> Result<Running<'obj>> {
        let mut opened = start.open(BpfSkelBuilder::default(), slot)?;
        let rodata = opened
            .maps
            .rodata_data
            .as_deref_mut()
            .context("no rodata")?;
        rodata.slice_ns = config.slice_ns;
        Ok(Running {
            bpf: start.load_and_attach(opened)?,
        })
    }
}

impl Instance for Running<'_> {
    type Stats = Metrics;

    fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        let counts = PerCpu::<fifo_counts>::new(MapHandle::try_from(&self.bpf.maps.counts)?)?;
        // Show the value that the BPF program uses, and not the requested one.
        let slice_us = self.bpf.maps.rodata_data.context("no rodata")?.slice_ns / 1000;
        Ok(Box::new(move || {
            let mut sum = Metrics {
                slice_us,
                ..Metrics::default()
            };
            for of_cpu in counts.read(0)? {
                sum.nr_local += of_cpu.nr_local;
                sum.nr_queued += of_cpu.nr_queued;
                sum.nr_kthreads += of_cpu.nr_kthreads;
            }
            Ok(sum)
        }))
    }

    fn exited(&self) -> bool {
        self.bpf.exited()
    }

    fn detach(self) -> ExitInfo {
        self.bpf.detach()
    }
}
