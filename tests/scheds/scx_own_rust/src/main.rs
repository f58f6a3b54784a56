// SPDX-License-Identifier: GPL-2.0-only
//! A FIFO in user space with an extended BPF side: see `scx_rustland_core::RustLandBuilder`.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use scx_rustland_core::{Cpus, DispatchedTask, Driver, LockedHeap, Options, Policy, QueuedTask};
use scx_stats::Stats;
use scx_utils::bpf::Slot;
use scx_utils::exit_info::ExitInfo;
use scx_utils::runner::{self, Instance, Program, Scheduler, Start, StatsReader, Tick};
use serde::{Deserialize, Serialize};

use bpf_skel::{BpfSkel, BpfSkelBuilder};

scx_utils::include_bpf!(skel);

#[global_allocator]
static HEAP: LockedHeap = LockedHeap::new();

#[derive(Debug, clap::Args)]
struct Opts {
    /// Tasks of a lower weight bypass the policy
    #[arg(long, value_name = "WEIGHT", default_value = "100")]
    weight_min: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(top)]
struct Metrics {
    #[stat(counter, desc = "Tasks enqueued to the policy")]
    asked: u64,
    #[stat(counter, desc = "Tasks that bypassed the policy")]
    background: u64,
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asked={} background={}", self.asked, self.background)
    }
}

#[derive(Default)]
struct Fifo(VecDeque<QueuedTask>);

impl Policy for Fifo {
    fn enqueue(&mut self, task: QueuedTask, _now_ns: u64) {
        self.0.push_back(task);
    }

    fn dispatch(&mut self, cpus: &mut Cpus, _now_ns: u64) -> Option<DispatchedTask> {
        let task = self.0.pop_front()?;
        Some(DispatchedTask::new(&task).to(cpus.pick_idle(&task)))
    }

    fn nr_waiting(&self) -> usize {
        self.0.len()
    }
}

struct Own;

struct Running<'obj>(Driver<'obj, Fifo, BpfSkel<'obj>>);

impl Scheduler for Own {
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
        rodata.weight_min = opts.weight_min;
        let core = Options {
            heap: Some(&HEAP),
            ..Options::new("own_half")
        };
        let driver = Driver::attach_opened(start, &core, Fifo::default(), opened)?;
        Ok(Running(driver))
    }
}

impl Instance for Running<'_> {
    type Stats = Metrics;

    fn tick(&mut self) -> Result<Tick> {
        self.0.tick()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.wake_fd()
    }

    fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        let mut core = self.0.stats_reader()?;
        let own = MapHandle::try_from(&self.0.skel().maps.data_own)?;
        Ok(Box::new(move || {
            let bytes = own
                .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?
                .context("no data")?;
            let background = bytes.get(..8).context("too little data")?.try_into()?;
            Ok(Metrics {
                asked: core()?.nr_asked,
                background: u64::from_ne_bytes(background),
            })
        }))
    }

    fn exited(&self) -> bool {
        self.0.exited()
    }

    fn detach(self) -> ExitInfo {
        self.0.detach()
    }
}

fn main() -> ExitCode {
    runner::main::<Own>()
}
