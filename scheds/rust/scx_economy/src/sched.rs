// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's implementation of the runner's traits.

use std::os::fd::AsFd as _;

use anyhow::Result;
use libbpf_rs::{Link, MapHandle};
use scx_stats::ServerBuilder;
use scx_utils::bpf::{Attached, Slot};
use scx_utils::exit_info::ExitInfo;
use scx_utils::percpu::PerCpu;
use scx_utils::placement::{self, Grouping};
use scx_utils::runner::{CommonOpts, Instance, Program, Scheduler, Shutdown, Start, StatsReader};

use crate::books::Books;
use crate::bpf_intf::{economy_config, economy_counts};
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::explain;
use crate::opts::Opts;
use crate::stats::{self, Metrics};
use crate::trace;

/// The scheduler.
pub(crate) struct Economy;

/// The attached scheduler, until it ends or is restarted.
pub(crate) struct Running<'obj> {
    bpf: Attached<BpfSkel<'obj>>,
    nr_ledgers: u32,
    _traced: Vec<Link>,
}

/// On machines with at most this number of CPUs, all CPUs share a ledger and a queue.
const CPUS_OF_ONE_LEDGER: usize = 16;

impl Scheduler for Economy {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str =
        "A fair scheduler in which tasks trade CPU time: a client that sends a message over a Unix \
         socket pays for it with CPU time that it is owed, and the server that reads the message \
         gets it. So a server that works for many clients gets the CPU time that they give up for \
         it, and other tasks still get their full share.";
    const KFUNCS: &'static [&'static str] = crate::bpf_kfuncs::KFUNCS;

    type Opts = Opts;
    type Config = Opts;
    type Stats = Metrics;
    type Instance<'obj> = Running<'obj>;

    fn config(opts: Opts) -> Result<Opts> {
        Ok(opts)
    }

    fn command(opts: &Opts, common: &CommonOpts, _shutdown: &Shutdown) -> Option<Result<()>> {
        let pid = opts.explain?;
        Some(explain::explain(&common.stats_socket, pid))
    }

    fn attach<'obj>(start: &Start<'_>, opts: &Opts, slot: &'obj mut Slot) -> Result<Running<'obj>> {
        let topology = start.topology()?;
        let btf = start.kernel_btf()?;
        let mut opened = start.open(BpfSkelBuilder::default(), slot)?;
        opened.set_ops_flag(btf, "SCX_OPS_ENQ_LAST")?;
        opened.reenqueue_on_cpu_release(btf)?;
        opened.enqueue_migration_disabled(btf)?;
        opened.set_section(".rodata.config", &economy_config::from(opts))?;
        let grouping = if topology.nr_cpus_online() <= CPUS_OF_ONE_LEDGER {
            Grouping::Machine
        } else {
            Grouping::Domains
        };
        let nr_ledgers = placement::prepare_groups(&mut opened, &topology, grouping, false)?;
        trace::select(&mut opened, btf, opts)?;
        let mut loaded = opened.load()?;
        let traced = trace::attach(&mut *loaded, opts);
        Ok(Running {
            bpf: start.attach(loaded)?,
            nr_ledgers,
            _traced: traced,
        })
    }
}

impl Running<'_> {
    fn books(&self) -> Result<Books> {
        let (maps, programs) = (&self.bpf.maps, &self.bpf.progs);
        let sockets = maps.economy_sockets.as_fd();
        let pipes = maps.economy_pipes.as_fd();
        Ok(Books {
            counts: PerCpu::<economy_counts>::new(MapHandle::try_from(&maps.economy_counters)?)?,
            ledgers: MapHandle::try_from(&maps.economy_ledgers)?,
            nr_ledgers: self.nr_ledgers,
            tasks: programs.economy_read_tasks.attach()?,
            accounts: vec![
                programs.economy_read_sockets.attach_iter(sockets)?,
                programs.economy_read_pipes.attach_iter(pipes)?,
            ],
        })
    }
}

impl Instance for Running<'_> {
    type Stats = Metrics;

    fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        Ok(Box::new(stats::reader(self.books()?)))
    }

    fn more_stats(&self, server: ServerBuilder) -> Result<ServerBuilder> {
        Ok(server
            .stats(stats::ACCOUNTS, stats::accounts(self.books()?))
            .stats(stats::TASKS, stats::tasks(self.books()?)))
    }

    fn exited(&self) -> bool {
        self.bpf.exited()
    }

    fn detach(self) -> ExitInfo {
        self.bpf.detach()
    }
}
