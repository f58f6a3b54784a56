// SPDX-License-Identifier: GPL-2.0-only
//! Tasks, read by a BPF iterator.

use std::collections::HashMap;

use anyhow::Result;
use scx_utils::time::monotonic_ns;

use super::dsqs;
use super::programs::{control, Programs};
use super::rates::{changes, per_second, percent};
use crate::bpf::{self, top_task};
use crate::histogram::Latency;
use crate::model::Task;

/// Once per this number of snapshots, all tasks are read, to forget tasks that have exited.
const READ_ALL: u64 = 64;

/// Reads the counters of tasks.
#[derive(Default)]
pub(super) struct Tasks {
    /// The counters that were read last, by thread id.
    before: HashMap<u32, top_task>,
    nr_reads: u64,
    last_ns: u64,
}

impl Tasks {
    /// The tasks that are runnable or have run since the last call, by CPU time, descending.
    pub(super) fn read(&mut self, programs: &Programs<'_>) -> Result<Vec<Task>> {
        let reads_all = self.nr_reads.is_multiple_of(READ_ALL);
        programs.control.set(control::IS_COMPLETE, reads_all.into());
        let now_ns = monotonic_ns()?;
        let interval_ns = if self.nr_reads == 0 {
            0
        } else {
            now_ns - self.last_ns
        };
        let records = programs.tasks()?;
        let mut tasks: Vec<Task> = records
            .iter()
            .map(|now| (now, self.before_of(now)))
            .filter(|(now, before)| is_active(now, before))
            .map(|(now, before)| task(now, &before, interval_ns))
            .collect();
        tasks.sort_by(|a, b| b.run_pct.total_cmp(&a.run_pct).then(a.pid.cmp(&b.pid)));
        if reads_all {
            self.before.clear();
        }
        self.before
            .extend(records.into_iter().map(|task| (task.pid, task)));
        self.nr_reads += 1;
        self.last_ns = now_ns;
        Ok(tasks)
    }

    /// The counters of the task at the last call: 0 if it has been created since then, even if its
    /// thread id is that of an earlier task. For a task that is older, but was not read before,
    /// returns `now`, because its counters at the last call are unknown.
    fn before_of(&self, now: &top_task) -> top_task {
        let before = self.before.get(&now.pid);
        match before.filter(|before| before.start_ns == now.start_ns) {
            Some(before) => *before,
            None if now.start_ns >= self.last_ns => top_task::default(),
            None => *now,
        }
    }
}

fn is_active(now: &top_task, before: &top_task) -> bool {
    now.state != bpf::TOP_SLEEPING || now.run_ns != before.run_ns
}

fn task(now: &top_task, old: &top_task, interval_ns: u64) -> Task {
    let time = |now: u64, old: u64| percent(now.saturating_sub(old), interval_ns).min(100.0);
    let rate = |now: u32, old: u32| per_second(now.wrapping_sub(old).into(), interval_ns);
    Task {
        pid: now.pid,
        tgid: now.tgid,
        comm: bpf::comm(&now.comm),
        cpu: now.cpu,
        state: state_name(now.state).to_owned(),
        class: class_name(now.class).to_owned(),
        prio: now.prio,
        run_pct: time(now.run_ns, old.run_ns),
        wait_pct: time(now.wait_ns, old.wait_ns),
        run_ns: now.run_ns,
        wait_ns: now.wait_ns,
        switches: rate(now.nr_switches, old.nr_switches),
        preemptions: rate(now.nr_preemptions, old.nr_preemptions),
        wakeups: rate(now.nr_sleeps, old.nr_sleeps),
        migrations: rate(now.nr_migrations, old.nr_migrations),
        wakeup: Latency::of(&changes(&now.wakeups, Some(&old.wakeups))),
        weight: now.weight,
        slice_ns: now.slice_ns,
        dsq_vtime: now.dsq_vtime,
        dsq: (now.has_dsq != 0).then(|| dsqs::name(now.dsq_id)),
    }
}

fn state_name(state: u32) -> &'static str {
    match state {
        bpf::TOP_RUNNING => "running",
        bpf::TOP_WAITING => "waiting",
        _ => "sleeping",
    }
}

fn class_name(class: u32) -> &'static str {
    match class {
        bpf::TOP_CLASS_EXT => "ext",
        bpf::TOP_CLASS_RT => "rt",
        bpf::TOP_CLASS_DL => "dl",
        bpf::TOP_CLASS_IDLE => "idle",
        _ => "fair",
    }
}
