// SPDX-License-Identifier: GPL-2.0-only
//! CPUs: their time, switches and latencies.

use std::fs;

use anyhow::Result;
use libbpf_rs::MapHandle;
use scx_utils::percpu::PerCpu;
use scx_utils::time::monotonic_ns;
use scx_utils::topology::Topology;

use super::programs::Programs;
use super::rates::{changes, per_second, percent};
use crate::bpf;
use crate::histogram::Latency;
use crate::model::Cpu;

/// A CPU with what groups of CPUs need in addition.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) shown: Cpu,
    /// Tasks per second that came from another LLC, and from another node.
    pub(super) migrations_llc: f64,
    pub(super) migrations_node: f64,
}

/// Reads the counters of CPUs.
pub(super) struct Cpus {
    counters: PerCpu<bpf::top_cpu>,
    before: Vec<bpf::top_cpu>,
    last_ns: Option<u64>,
}

impl Cpus {
    pub(super) fn new(programs: &Programs<'_>) -> Result<Self> {
        Ok(Self {
            counters: PerCpu::new(MapHandle::try_from(&programs.skel.maps.cpus)?)?,
            before: Vec::new(),
            last_ns: None,
        })
    }

    /// All possible CPUs. `local` has the depths of local DSQs by CPU.
    pub(super) fn read(&mut self, topology: &Topology, local: &[u32]) -> Result<Vec<Counted>> {
        let now_ns = monotonic_ns()?;
        let interval_ns = self.last_ns.map_or(0, |last_ns| now_ns - last_ns);
        let mut counters = self.counters.read(0)?;
        for counter in &mut counters {
            add_current(counter, now_ns);
        }
        let cpus = topology.possible().iter().map(|id| {
            let now = counters.get(id).copied().unwrap_or_default();
            let before = self.before.get(id).copied().unwrap_or_default();
            let mut counted = difference(&now, &before, interval_ns);
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

/// Adds the time of the current task.
fn add_current(cpu: &mut bpf::top_cpu, now_ns: u64) {
    // A switch may be later than `now_ns`.
    let ran_ns = now_ns.saturating_sub(cpu.switch_ns);
    if cpu.switch_ns == 0 || cpu.pid == 0 {
        return;
    }
    cpu.busy_ns += ran_ns;
    match cpu.class {
        bpf::TOP_CLASS_EXT => cpu.ext_ns += ran_ns,
        bpf::TOP_CLASS_RT | bpf::TOP_CLASS_DL => cpu.rt_ns += ran_ns,
        _ => {}
    }
}

fn difference(now: &bpf::top_cpu, before: &bpf::top_cpu, interval_ns: u64) -> Counted {
    let time = |now: u64, before: u64| percent(now.saturating_sub(before), interval_ns).min(100.0);
    let rate = |now: u64, before: u64| per_second(now.saturating_sub(before), interval_ns);
    let busy_pct = time(now.busy_ns, before.busy_ns);
    // The kernel may update the counters while they are read.
    let rt_pct = time(now.rt_ns, before.rt_ns).min(busy_pct);
    let is_busy = now.switch_ns != 0 && now.pid != 0;
    let shown = Cpu {
        busy_pct,
        rt_pct,
        ext_pct: time(now.ext_ns, before.ext_ns).min(busy_pct - rt_pct),
        switches: rate(now.nr_switches, before.nr_switches),
        preemptions: rate(now.nr_preemptions, before.nr_preemptions),
        migrations: rate(now.nr_migrations, before.nr_migrations),
        wakeup: Latency::of(&changes(&now.wakeups, Some(&before.wakeups))),
        current: is_busy.then(|| (now.pid, bpf::comm(&now.comm))),
        ..Cpu::default()
    };
    Counted {
        shown,
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
