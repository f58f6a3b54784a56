// SPDX-License-Identifier: GPL-2.0-only
//! Counters, and their consistency check.

use std::fmt;

use anyhow::Result;
use libbpf_rs::MapHandle;
use scx_stats::Stats;
use scx_utils::percpu::PerCpu;
use serde::{Deserialize, Serialize};

use crate::faults::PageFaults;
use crate::intf::rl_counters;
use crate::program::SyscallProgram;
use crate::shared::Shared;

/// Statistics of a scheduler. Existing clients rely on some of the names.
// The attributes document the fields, for clients and readers.
#[allow(missing_docs)]
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(top, desc = "Tasks on the path through the policy", _om_prefix = "rl_")]
pub struct Metrics {
    #[stat(desc = "CPUs that are online")]
    pub nr_cpus: u64,
    #[stat(desc = "Tasks running now")]
    pub nr_running: u64,
    #[stat(desc = "Tasks that wait for a decision, counted by the kernel")]
    pub nr_queued: u64,
    #[stat(desc = "Entries in the queue of the policy, including outdated ones")]
    pub nr_scheduled: u64,
    #[stat(
        counter,
        desc = "Page faults of the policy thread since it started; should be 0"
    )]
    pub nr_page_faults: u64,
    #[stat(counter, desc = "Enqueues that needed a decision")]
    pub nr_asked: u64,
    #[stat(counter, desc = "Of these, tasks dispatched as decided")]
    pub nr_user_dispatches: u64,
    #[stat(counter, desc = "Of these, tasks dispatched by BPF without a decision")]
    pub nr_fallback_dispatches: u64,
    #[stat(
        counter,
        desc = "Of these, tasks enqueued again or continued before the decision"
    )]
    pub nr_cancel_dispatches: u64,
    #[stat(
        counter,
        desc = "Of these, tasks that slept or exited before the decision"
    )]
    pub nr_dequeued: u64,
    #[stat(counter, desc = "Decisions on tasks that were no longer pending")]
    pub nr_late_dispatches: u64,
    #[stat(
        counter,
        desc = "Decisions for a CPU that is offline, not allowed or used by a higher class"
    )]
    pub nr_bounce_dispatches: u64,
    #[stat(
        counter,
        desc = "Attempts to pass on a decision that failed because the ring was full"
    )]
    pub nr_failed_dispatches: u64,
    #[stat(
        counter,
        desc = "Dispatches that bypassed the policy: per-CPU kernel threads, own threads, \
                migration-disabled tasks, and, unless the policy decides on each wakeup, wakees \
                that found an idle CPU, inherited the waker's slice or had a standing decision"
    )]
    pub nr_kernel_dispatches: u64,
    #[stat(counter, desc = "Tasks that got no decision because the ring was full")]
    pub nr_sched_congested: u64,
    #[stat(counter, desc = "Slice expiries after which the task continued")]
    pub nr_kept: u64,
    #[stat(
        counter,
        desc = "Tasks dispatched as decided that preempted another one"
    )]
    pub nr_preempt_dispatches: u64,
    #[stat(counter, desc = "Idle CPUs kicked for a task")]
    pub nr_idle_kicks: u64,
    #[stat(
        counter,
        desc = "Tasks moved off a CPU that is offline or used by a higher class"
    )]
    pub nr_rescued: u64,
    #[stat(counter, desc = "Wakeups of the policy thread by BPF")]
    pub nr_wakeups: u64,
    #[stat(desc = "Mode of the policy; see the scheduler's help")]
    pub mode: u64,
}

impl Metrics {
    /// Number of pending tasks: enqueues that have not ended. It may be negative while the
    /// scheduler runs, because the counters of the CPUs are read one after the other.
    #[must_use]
    pub fn in_flight(&self) -> i64 {
        let ended = self.nr_user_dispatches
            + self.nr_fallback_dispatches
            + self.nr_cancel_dispatches
            + self.nr_dequeued;
        self.nr_asked.wrapping_sub(ended).cast_signed()
    }

    /// What went wrong, as text for a report; empty if nothing went wrong. Call it after the
    /// scheduler has ended, when no enqueue is in flight.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let lost = self.in_flight();
        let counts = [
            (i128::from(lost), "tasks unaccounted for"),
            (self.nr_page_faults.into(), "page faults"),
            (
                self.nr_fallback_dispatches.into(),
                "tasks without a decision",
            ),
            (
                self.nr_sched_congested.into(),
                "of them because the ring was full",
            ),
            (self.nr_failed_dispatches.into(), "decisions delayed"),
        ];
        let troubles = counts.iter().filter(|(count, _)| *count != 0);
        troubles
            .map(|(count, what)| format!("{count} {what}"))
            .collect()
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "running={}/{} waiting={} held={} asked={} user={} kernel={} fallback={} cancel={} \
             dequeued={} late={} bounce={} failed={} congested={} kept={} preempt={} kicks={} \
             rescued={} wakeups={} mode={} faults={}",
            self.nr_running,
            self.nr_cpus,
            self.nr_queued,
            self.nr_scheduled,
            self.nr_asked,
            self.nr_user_dispatches,
            self.nr_kernel_dispatches,
            self.nr_fallback_dispatches,
            self.nr_cancel_dispatches,
            self.nr_dequeued,
            self.nr_late_dispatches,
            self.nr_bounce_dispatches,
            self.nr_failed_dispatches,
            self.nr_sched_congested,
            self.nr_kept,
            self.nr_preempt_dispatches,
            self.nr_idle_kicks,
            self.nr_rescued,
            self.nr_wakeups,
            self.mode,
            self.nr_page_faults
        )
    }
}

/// Reads the statistics. It owns all that it reads from, so any thread can use it.
#[derive(Debug)]
pub(crate) struct Reader {
    counters: PerCpu<rl_counters>,
    shared: Shared,
    nr_pending: SyscallProgram,
    faults: PageFaults,
    nr_cpu_ids: u32,
}

impl Reader {
    pub(crate) fn new(
        counters: MapHandle,
        section: &MapHandle,
        nr_pending: SyscallProgram,
        faults: PageFaults,
        nr_cpu_ids: u32,
    ) -> Result<Self> {
        Ok(Self {
            counters: PerCpu::new(counters)?,
            shared: Shared::map(section)?,
            nr_pending,
            faults,
            nr_cpu_ids,
        })
    }

    pub(crate) fn read(&self) -> Result<Metrics> {
        let online = (0..self.nr_cpu_ids).filter(|cpu| self.shared.is_online(*cpu));
        let mut sum = Metrics {
            nr_cpus: u64::try_from(online.count())?,
            // The number is negative if the scheduler has ended and its queue is gone.
            nr_queued: self.nr_pending.run(&mut [])?.try_into().unwrap_or(0),
            nr_page_faults: self.faults.count()?,
            nr_scheduled: self.shared.waiting(),
            nr_failed_dispatches: self.shared.failed(),
            mode: self.shared.policy_mode(),
            ..Metrics::default()
        };
        let mut nr_running = 0_i64;
        for of_cpu in self.counters.read(0)? {
            nr_running = nr_running.wrapping_add_unsigned(of_cpu.nr_running);
            sum.nr_asked += of_cpu.nr_queued;
            sum.nr_user_dispatches += of_cpu.nr_dispatched;
            sum.nr_fallback_dispatches += of_cpu.nr_fallback;
            sum.nr_cancel_dispatches += of_cpu.nr_cancelled;
            sum.nr_dequeued += of_cpu.nr_dequeued;
            sum.nr_late_dispatches += of_cpu.nr_late;
            sum.nr_bounce_dispatches += of_cpu.nr_bounced;
            sum.nr_kernel_dispatches += of_cpu.nr_kernel;
            sum.nr_sched_congested += of_cpu.nr_congested;
            sum.nr_kept += of_cpu.nr_kept;
            sum.nr_preempt_dispatches += of_cpu.nr_preempting;
            sum.nr_idle_kicks += of_cpu.nr_idle_kicks;
            sum.nr_rescued += of_cpu.nr_rescued;
            sum.nr_wakeups += of_cpu.nr_wakeups;
        }
        // The sum may be negative if a task started or stopped while the counters were read.
        sum.nr_running = nr_running.try_into().unwrap_or(0);
        Ok(sum)
    }
}
