// SPDX-License-Identifier: GPL-2.0-only
//! Tasks, read by a BPF iterator.

use std::collections::HashMap;

use anyhow::Result;

use super::dsqs;
use super::programs::Programs;
use super::rates::{changes, per_second, percent};
use super::set;
use crate::bpf::{self, top_task};
use crate::histogram::Latency;
use crate::model::Task;

/// Maximum number of tasks of which the last counters are kept.
const KEPT: usize = 16_384;

/// Reads the counters of tasks.
#[derive(Default)]
pub(super) struct Tasks {
    /// By thread id, of tasks that were active in some interval.
    before: HashMap<u32, top_task>,
}

impl Tasks {
    /// The tasks that were active since `since_ns`, by CPU time, descending.
    pub(super) fn read(
        &mut self,
        programs: &mut Programs<'_>,
        since_ns: u64,
        interval_ns: u64,
    ) -> Result<Vec<Task>> {
        set(programs, |bss| bss.active_since_ns = since_ns)?;
        let records = programs.tasks()?;
        let mut tasks: Vec<Task> = records
            .iter()
            .map(|now| {
                // A thread id may have been reused.
                let before = self.before.get(&now.pid);
                let before = before.filter(|before| before.run_ns <= now.run_ns);
                task(now, before, interval_ns)
            })
            .collect();
        tasks.sort_by(|a, b| b.run_pct.total_cmp(&a.run_pct).then(a.pid.cmp(&b.pid)));
        self.keep(records);
        Ok(tasks)
    }

    /// Keeps the records for the next difference. Those of inactive tasks stay, up to a limit.
    fn keep(&mut self, records: Vec<top_task>) {
        if self.before.len() + records.len() > KEPT {
            self.before.clear();
        }
        self.before
            .extend(records.into_iter().map(|task| (task.pid, task)));
    }
}

fn task(now: &top_task, before: Option<&top_task>, interval_ns: u64) -> Task {
    let none = top_task::default();
    let old = before.unwrap_or(&none);
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
        wakeups: rate(now.nr_wakeups, old.nr_wakeups),
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
