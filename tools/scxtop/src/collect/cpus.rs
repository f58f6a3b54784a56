// SPDX-License-Identifier: GPL-2.0-only
//! CPUs: their time, switches and latencies.

use std::fs;

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use scx_utils::cpumask::Cpumask;
use scx_utils::percpu::PerCpu;
use scx_utils::time::monotonic_ns;
use scx_utils::topology::Topology;
use scx_utils::zerocopy::FromBytes as _;

use super::programs::Programs;
use super::rates::{changes, per_second, percent};
use crate::bpf::{self, top_cpu, top_observed_cpu};
use crate::histogram::Latency;
use crate::model::{Cpu, Task};

/// Maximum number of map elements that one system call reads.
const BATCH: u32 = 256;

/// A CPU, and rates that are shown only as sums over groups of CPUs.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) shown: Cpu,
    /// Migrations to this CPU from another LLC, and from another node, per second.
    pub(super) migrations_llc: f64,
    pub(super) migrations_node: f64,
}

/// Reads the counters of CPUs.
pub(super) struct Cpus {
    observed: PerCpu<top_observed_cpu>,
    /// The counters of the last call, by CPU.
    before: Vec<(top_cpu, top_observed_cpu)>,
    last_ns: Option<u64>,
}

impl Cpus {
    pub(super) fn new(programs: &Programs<'_>) -> Result<Self> {
        Ok(Self {
            observed: PerCpu::new(MapHandle::try_from(&programs.skel.maps.observed_cpus)?)?,
            before: Vec::new(),
            last_ns: None,
        })
    }

    /// Reads all possible CPUs. `local` has the depths of local DSQs by CPU. `tasks` has the tasks
    /// of the interval. Wakeups and migrations were observed for `observed_ns`.
    pub(super) fn read(
        &mut self,
        programs: &Programs<'_>,
        topology: &Topology,
        local: &[u32],
        tasks: &[Task],
        observed_ns: u64,
    ) -> Result<Vec<Counted>> {
        let now_ns = monotonic_ns()?;
        let interval_ns = self.last_ns.map_or(0, |last_ns| now_ns - last_ns);
        let counters = counters(programs)?;
        let seen = by_id(self.observed.read(0)?, topology.possible(), counters.len());
        let counters: Vec<_> = counters.into_iter().zip(seen).collect();
        let shares = shares(tasks, counters.len());
        let cpus = topology.possible().iter().map(|id| {
            let now = counters.get(id).copied().unwrap_or_default();
            let before = self.before.get(id).copied().unwrap_or_default();
            let share = shares.get(id).copied().unwrap_or_default();
            let mut counted = observed(&now.1, &before.1, observed_ns);
            add_counters(&mut counted.shown, &now.0, &before.0, interval_ns);
            add_tasks(&mut counted.shown, &share);
            describe(&mut counted.shown, topology, id);
            counted.shown.queued = local.get(id).copied().unwrap_or_default();
            counted
        });
        let cpus = cpus.collect();
        self.before = counters;
        self.last_ns = Some(now_ns);
        Ok(cpus)
    }
}

/// The values of per-CPU data by the ids of the CPUs, which are less than `nr_cpu_ids`. There may
/// be gaps in the ids of possible CPUs, but not in `values`.
fn by_id<T: Clone + Default>(values: Vec<T>, possible: &Cpumask, nr_cpu_ids: usize) -> Vec<T> {
    let mut all = vec![T::default(); nr_cpu_ids];
    for (id, value) in possible.iter().zip(values) {
        if let Some(place) = all.get_mut(id) {
            *place = value;
        }
    }
    all
}

/// The kernel's counters of all CPUs, by CPU id.
fn counters(programs: &Programs<'_>) -> Result<Vec<top_cpu>> {
    scx_utils::bpf::run(&programs.skel.progs.read_cpus, &mut [])
        .context("cannot read the counters of CPUs")?;
    let map = &programs.skel.maps.cpus;
    let values = map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)?;
    // The values come in the order of their keys, which are the CPUs.
    let read = |(_, value): (_, Vec<u8>)| top_cpu::read_from_bytes(&value).ok();
    values
        .map(read)
        .collect::<Option<_>>()
        .context("a counter of a CPU has an unexpected size")
}

/// Context switches of all CPUs since boot.
pub(super) fn nr_switches(programs: &Programs<'_>) -> Result<u64> {
    Ok(counters(programs)?.iter().map(|cpu| cpu.nr_switches).sum())
}

/// Sums over the tasks with the same last CPU. Tasks that have exited are missing.
#[derive(Clone, Copy, Default)]
struct Share {
    run_pct: f64,
    rt_pct: f64,
    ext_pct: f64,
    preemptions: f64,
}

fn shares(tasks: &[Task], nr_cpus: usize) -> Vec<Share> {
    let mut shares = vec![Share::default(); nr_cpus];
    for task in tasks {
        let Some(share) = shares.get_mut(task.cpu as usize) else {
            continue;
        };
        share.run_pct += task.run_pct;
        share.preemptions += task.preemptions;
        match task.class.as_str() {
            "ext" => share.ext_pct += task.run_pct,
            "rt" | "dl" => share.rt_pct += task.run_pct,
            _ => {}
        }
    }
    shares
}

/// Splits the busy time of a CPU between the classes, in proportion to the CPU time of their tasks.
fn add_tasks(cpu: &mut Cpu, tasks: &Share) {
    if tasks.run_pct > 0.0 {
        cpu.rt_pct = cpu.busy_pct * tasks.rt_pct / tasks.run_pct;
        cpu.ext_pct = (cpu.busy_pct * tasks.ext_pct / tasks.run_pct).min(cpu.busy_pct - cpu.rt_pct);
    }
    cpu.preemptions = tasks.preemptions;
}

fn add_counters(cpu: &mut Cpu, now: &top_cpu, before: &top_cpu, interval_ns: u64) {
    // The kernel may update the counters while they are read.
    let busy_ns = now.busy_ns.saturating_sub(before.busy_ns);
    cpu.busy_pct = percent(busy_ns, interval_ns).min(100.0);
    let switches = now.nr_switches.saturating_sub(before.nr_switches);
    cpu.switches = per_second(switches, interval_ns);
    cpu.current = (now.pid != 0).then(|| (now.pid, bpf::comm(&now.comm)));
}

/// What was observed within a window of `window_ns`.
fn observed(now: &top_observed_cpu, before: &top_observed_cpu, window_ns: u64) -> Counted {
    let rate = |now: u64, before: u64| per_second(now.saturating_sub(before), window_ns);
    Counted {
        shown: Cpu {
            migrations: rate(now.nr_migrations, before.nr_migrations),
            wakeup: Latency::of(&changes(&now.wakeups, Some(&before.wakeups))),
            ..Cpu::default()
        },
        migrations_llc: rate(now.nr_migrations_llc, before.nr_migrations_llc),
        migrations_node: rate(now.nr_migrations_node, before.nr_migrations_node),
    }
}

fn describe(shown: &mut Cpu, topology: &Topology, id: usize) {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    shown.id = number(id);
    let Some(cpu) = topology.cpu(id) else {
        shown.current = None;
        return;
    };
    shown.is_online = true;
    shown.core = number(cpu.core);
    shown.llc = number(cpu.llc);
    shown.node = number(cpu.node);
    shown.capacity = cpu.capacity;
    let path = format!("/sys/devices/system/cpu/cpu{id}/cpufreq/scaling_cur_freq");
    let freq = fs::read_to_string(path).ok();
    shown.freq_khz = freq.and_then(|text| text.trim().parse().ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cpu_values_belong_to_ids_with_gaps() {
        let possible = Cpumask::from_cpus([0, 1, 4, 5], 6).unwrap();
        assert_eq!(by_id(vec![1, 2, 3, 4], &possible, 6), [1, 2, 0, 0, 3, 4]);
        assert_eq!(by_id(vec![1, 2, 3, 4], &possible, 5), [1, 2, 0, 0, 3]);
    }
}
