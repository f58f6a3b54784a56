// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's implementation of the runner's traits.

use std::mem::offset_of;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use libbpf_rs::MapHandle;
use scx_utils::bpf::{run, Attached, Loaded, Opened, Slot, Words};
use scx_utils::cgroups::Control;
use scx_utils::exit_info::ExitInfo;
use scx_utils::infeasible::LoadKind;
use scx_utils::manifest::Modes;
use scx_utils::percpu::PerCpu;
use scx_utils::runner::{Instance, Program, Scheduler, Start, StatsReader, Tick};
use scx_utils::zerocopy::IntoBytes as _;

use crate::balancer::{balance, DomainMask, Plan};
use crate::bpf_intf::{rusty_config, rusty_counts, rusty_greedy, rusty_migration, rusty_tune};
use crate::bpf_intf::{RUSTY_CPUS_MAX, RUSTY_DEMAND_NR_SHIFT, RUSTY_NO_DOM};
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel};
use crate::busy::Busy;
use crate::domains::Domains;
use crate::interval::{BalanceInterval, Timing};
use crate::loads::Loads;
use crate::opts::{Config, Opts};
use crate::stats::{ClusterStats, DomainStats, NodeStats};
use crate::tuner::{tune, Tuned};

/// The scheduler.
pub(crate) struct Rusty;

/// The attached scheduler, with the state of its user-space side.
pub(crate) struct Running<'obj> {
    bpf: Attached<BpfSkel<'obj>>,
    shared: Shared,
    config: Config,
    domains: Domains,
    busy: Busy,
    loads: Loads,
    tuned: Option<Tuned>,
    /// A copy of `pending` for the readers of statistics. `publish()` skips the update while a
    /// reader holds the lock.
    report: Arc<Mutex<ClusterStats>>,
    pending: ClusterStats,
    balanced_at: Instant,
    balance_interval: BalanceInterval,
}

/// Memory that user space shares with the BPF programs.
struct Shared {
    /// The word with the idle time of each CPU: see `bpf/busy.h`.
    idle_cpus: Words,
    /// The demand of each domain: see `RUSTY_DEMAND_NR_SHIFT`.
    demands: Words,
    /// `struct rusty_tune`.
    tune: Words,
}

impl Shared {
    fn map(loaded: &Loaded<BpfSkel<'_>>) -> Result<Self> {
        Ok(Self {
            idle_cpus: Words::map(&loaded.maps.data_rusty_idle)?,
            demands: Words::map(&loaded.maps.data_rusty_demands)?,
            tune: Words::map(&loaded.maps.data_rusty_tune)?,
        })
    }

    fn idle_word(&self) -> impl Fn(usize) -> Option<u64> + use<'_> {
        |cpu| self.idle_cpus.get(cpu)
    }

    /// The sum of the weights of the runnable tasks of a domain, except the threads of this
    /// process.
    fn weight(&self, dom: usize) -> u64 {
        let demand = self.demands.get(dom).unwrap_or(0);
        demand & ((1 << RUSTY_DEMAND_NR_SHIFT) - 1)
    }

    fn set_slice_ns(&self, slice_ns: u64) {
        let index = offset_of!(rusty_tune, slice_ns) / size_of::<u64>();
        self.tune.set(index, slice_ns);
    }
}

impl Scheduler for Rusty {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str =
        "CPUs that share a last-level cache are a domain with one queue. On wakeup a task takes an \
         idle CPU of its domain, or waits in the queue in deadline order: CPU time is shared by \
         weight, and tasks that sleep often and compute little have earlier deadlines. Idle CPUs \
         steal tasks of other domains of their node. Every --interval seconds (2 by default), \
         tasks are migrated from the most loaded domains to the least loaded ones, first between \
         nodes, then within them, as far as it is worth the loss of a warm cache.";
    const MODES: Modes = Modes {
        gaming: &["--slice-us-underutil", "5000"],
        low_latency: &[
            "--slice-us-underutil",
            "2000",
            "--slice-us-overutil",
            "500",
            "--direct-greedy-under",
            "100",
        ],
        // Idle CPUs are not kicked to steal tasks, and half of the maximum performance level is
        // requested of each CPU.
        power_save: &["--kick-greedy-under", "0", "--perf", "512"],
        server: &["--slice-us-overutil", "5000", "--mempolicy-affinity"],
    };
    const KFUNCS: &'static [&'static str] = crate::bpf_kfuncs::KFUNCS;

    type Opts = Opts;
    type Config = Config;
    type Stats = ClusterStats;
    type Instance<'obj> = Running<'obj>;

    fn config(opts: Opts) -> Result<Config> {
        opts.try_into()
    }

    fn cgroup_controls(config: &Config) -> &'static [Control] {
        if config.cgroups {
            &[Control::Weight, Control::Idle]
        } else {
            &[]
        }
    }

    fn attach<'obj>(
        start: &Start<'_>,
        config: &Config,
        slot: &'obj mut Slot,
    ) -> Result<Running<'obj>> {
        let domains = Domains::new(&start.topology()?, &config.cpumasks)?;
        let mut opened = start.open(BpfSkelBuilder::default(), slot)?;
        prepare(start, &mut opened, config, &domains)?;
        let loaded = opened.load()?;
        run(&loaded.progs.rusty_register, &mut [])?;
        let shared = Shared::map(&loaded)?;
        let bpf = start.attach(loaded)?;
        let link = bpf.progs.rusty_loads.attach();
        let link = link.context("cannot read loads")?;
        let loads = Loads::new(
            link,
            &domains,
            config.leaves_kworkers,
            config.mempolicy_affinity,
        );
        let busy = Busy::new(&domains, &shared.idle_word(), now_ns()?);
        let none = domains.cpus_of(&DomainMask::default());
        let pending = ClusterStats {
            direct_greedy_cpus: none.clone(),
            kick_greedy_cpus: none,
            ..ClusterStats::default()
        };
        Ok(Running {
            bpf,
            shared,
            config: config.clone(),
            domains,
            busy,
            loads,
            tuned: None,
            report: Arc::new(Mutex::new(pending.clone())),
            pending,
            balanced_at: Instant::now(),
            balance_interval: BalanceInterval::default(),
        })
    }
}

/// Configures the BPF programs before they are loaded.
fn prepare(
    start: &Start<'_>,
    opened: &mut Opened<OpenBpfSkel<'_>>,
    config: &Config,
    domains: &Domains,
) -> Result<()> {
    let btf = start.kernel_btf()?;
    opened.set_ops_flag(btf, "SCX_OPS_KEEP_BUILTIN_IDLE")?;
    opened.set_ops_flag(btf, "SCX_OPS_ENQ_LAST")?;
    opened.reenqueue_on_cpu_release(btf)?;
    opened.enqueue_migration_disabled(btf)?;
    opened.fit_cgroups(btf, config.cgroups)?;
    if !config.cgroups {
        // Without --cgroups the map is not used, but it would take almost 4 MB.
        opened.maps.scx_cgroups.set_max_entries(1)?;
        opened.clear_callback("stopping")?;
    }
    if config.perf == 0 {
        opened.clear_callback("running")?;
    }
    opened.set_section(".rodata.rusty_config", &for_bpf(config, domains)?)?;
    let tune = opened.maps.data_rusty_tune_data.as_deref_mut();
    tune.context("no section for the slice")?.tune.slice_ns = config.tuner.slice_underutil_ns;
    Ok(())
}

fn for_bpf(config: &Config, domains: &Domains) -> Result<rusty_config> {
    let mut to = rusty_config {
        nr_doms: domains.domains.len().try_into()?,
        nr_nodes: domains.nodes.len().try_into()?,
        greedy_threshold: config.greedy_threshold,
        greedy_threshold_x_numa: config.greedy_threshold_x_numa,
        kthreads_local: config.kthreads_local.into(),
        fifo_sched: config.fifo_sched.into(),
        cgroups: config.cgroups.into(),
        direct_greedy_numa: config.direct_greedy_numa.into(),
        perf: config.perf,
        credit_ns: config.tuner.slice_underutil_ns,
        short_slice_ns: config.tuner.short_slice_ns(),
        half_life_ns: config.half_life_ns,
        ..rusty_config::default()
    };
    to.dom_of_cpu.fill(RUSTY_NO_DOM.try_into()?);
    for (id, domain) in domains.domains.iter().enumerate() {
        to.node_of_dom[id] = domain.node.try_into()?;
        for cpu in domain.cpus.iter() {
            let place = to.dom_of_cpu.get_mut(cpu);
            *place.with_context(|| format!("CPU {cpu} is beyond {RUSTY_CPUS_MAX}"))? =
                id.try_into()?;
        }
    }
    for (node, kernel_id) in domains.nodes.iter().enumerate() {
        to.node_id[node] = (*kernel_id).try_into()?;
        to.first_dom[node] = domains.first_of_node(node).try_into()?;
    }
    to.first_dom[domains.nodes.len()] = to.nr_doms;
    Ok(to)
}

/// The current time of `CLOCK_MONOTONIC`, ns, the clock of all times that user space exchanges with
/// the BPF programs.
fn now_ns() -> Result<u64> {
    scx_utils::time::monotonic_ns()
}

impl Running<'_> {
    /// Measures the utilization. Depending on it, sets the slice, and the idle CPUs that tasks of
    /// other domains may use.
    fn tune(&mut self) -> Result<Tuned> {
        let busy = self.busy.sample(&self.shared.idle_word(), now_ns()?);
        let tuned = tune(&self.config.tuner, &busy);
        let before = self.tuned.replace(tuned);
        let same = |of: fn(&Tuned) -> DomainMask| before.as_ref().map(of) == Some(of(&tuned));
        if !same(|tuned| tuned.direct) || !same(|tuned| tuned.kick) {
            let mut greedy = rusty_greedy {
                direct: tuned.direct.words(),
                kick: tuned.kick.words(),
            };
            run(&self.bpf.progs.rusty_set_greedy, greedy.as_mut_bytes())?;
        }
        self.shared.set_slice_ns(tuned.slice_ns);
        Ok(tuned)
    }

    fn is_balancing_due(&mut self) -> bool {
        let timing = Timing {
            interval: self.config.interval,
            elapsed: self.balanced_at.elapsed(),
            took: Duration::from_secs_f64(self.pending.time_used),
        };
        let domains = self.domains.domains.iter().enumerate();
        #[allow(clippy::cast_precision_loss)] // Both are far below 2^53.
        let by_cpu =
            domains.map(|(id, of)| self.shared.weight(id) as f64 / of.cpus.weight() as f64);
        self.balance_interval.is_due(timing, by_cpu)
    }

    /// Runs a balancing round. With --no-load-balance, it only updates the statistics of loads.
    fn balance(&mut self, is_saturated: bool) -> Result<()> {
        let begun = Instant::now();
        let kind = if is_saturated {
            LoadKind::Weighted
        } else {
            LoadKind::DutyCycle
        };
        let plan = balance(&self.loads.read()?, kind);
        if self.config.balances {
            // If a task has not migrated by the next regular round, its migration expires: that
            // round decides anew.
            let until_ns = now_ns()? + u64::try_from(self.config.interval.as_nanos())?;
            for migration in &plan.migrations {
                let mut args = rusty_migration {
                    pid: migration.pid,
                    dom: migration.to.try_into()?,
                    until_ns,
                };
                // The program's return value is ignored, because the task may have exited.
                run(&self.bpf.progs.rusty_migrate, args.as_mut_bytes())?;
            }
        }
        self.update_stats(&plan)?;
        self.pending.time_used = begun.elapsed().as_secs_f64();
        Ok(())
    }

    fn update_stats(&mut self, plan: &Plan) -> Result<()> {
        self.pending.lb_at_us = now_ns()? / 1000;
        self.pending.load = plan.total_load / 100.0;
        self.pending.nodes.clear();
        for (kernel_id, node) in self.domains.nodes.iter().zip(&plan.nodes) {
            let doms = node.domains.iter().map(|id| {
                let of = &plan.domains[*id];
                let stats = DomainStats {
                    load: of.load / 100.0,
                    imbal: of.imbal / 100.0,
                    delta: of.delta / 100.0,
                };
                (*id, stats)
            });
            let stats = NodeStats {
                load: node.load / 100.0,
                imbal: node.imbal / 100.0,
                delta: node.delta / 100.0,
                doms: doms.collect(),
            };
            self.pending.nodes.insert(*kernel_id, stats);
        }
        Ok(())
    }

    fn publish(&mut self, tuned: &Tuned) {
        self.pending.slice_us = tuned.slice_ns / 1000;
        self.pending.cpu_busy = tuned.busy * 100.0;
        self.pending.direct_greedy_cpus = self.domains.cpus_of(&tuned.direct);
        self.pending.kick_greedy_cpus = self.domains.cpus_of(&tuned.kick);
        if let Ok(mut report) = self.report.try_lock() {
            report.clone_from(&self.pending);
        }
    }
}

impl Instance for Running<'_> {
    type Stats = ClusterStats;

    fn tick(&mut self) -> Result<Tick> {
        let tuned = self.tune()?;
        if self.is_balancing_due() || self.pending.lb_at_us == 0 {
            self.balanced_at = Instant::now();
            self.balance(tuned.is_saturated)?;
        }
        self.publish(&tuned);
        Ok(Tick::After(self.config.tune_interval))
    }

    fn stats_reader(&self) -> Result<StatsReader<ClusterStats>> {
        let counts =
            PerCpu::<rusty_counts>::new(MapHandle::try_from(&self.bpf.maps.rusty_counters)?)?;
        let report = Arc::clone(&self.report);
        Ok(Box::new(move || {
            let told = report.lock();
            let mut stats = told.map_or_else(|told| told.into_inner().clone(), |told| told.clone());
            stats.at_us = now_ns()? / 1000;
            stats.count(&counts.read(0)?);
            Ok(stats)
        }))
    }

    fn exited(&self) -> bool {
        self.bpf.exited()
    }

    fn detach(self) -> ExitInfo {
        self.bpf.detach()
    }
}
