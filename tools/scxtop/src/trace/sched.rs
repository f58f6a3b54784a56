// SPDX-License-Identifier: GPL-2.0-only
//! Scheduling events as ftrace records them. From these events, Perfetto derives what each CPU
//! runs, the states of threads, and which threads woke them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::bpf::{top_event, top_event_task};

use super::event::{comm, int, kind, Kind};
use super::machine::Machine;
use super::proto::{
    Data, FtraceEvent, FtraceEventBundle, Sched, SchedMigrateTask, SchedProcessExec,
    SchedProcessExit, SchedProcessFork, SchedSwitch, SchedWakeup, TracePacket, FTRACE_CLOCK_GLOBAL,
};
use super::tracks::timeless;

/// Maximum number of events in a packet.
const BUNDLE: usize = 512;

/// States of prev as ftrace reports them: still runnable ("R+", TASK_REPORT_MAX), exited ("X"), an
/// idle kernel thread ("I"), and uninterruptible ("D").
const PREEMPTED: i64 = 0x100;
const EXITED: i64 = 0x10;
const IDLE: i64 = 0x80;
const UNINTERRUPTIBLE: i64 = 0x02;

/// linux/sched.h: the state of an exited task, the flag that an idle kernel thread has besides
/// `TASK_UNINTERRUPTIBLE`, and the mask of the states that ftrace reports.
const TASK_DEAD: u32 = 0x80;
const TASK_NOLOAD: u32 = 0x400;
const TASK_REPORT: u32 = 0x7f;
/// States that ftrace reports as uninterruptible.
const TASK_RTLOCK_WAIT: u32 = 0x1000;
const TASK_FROZEN: u32 = 0x8000;

/// Writes the events of each CPU in packets of their own.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    monotonic_ns: i64,
    boottime_ns: i64,
    cpus: BTreeMap<u32, Vec<FtraceEvent>>,
    /// The running task of each CPU.
    current: HashMap<u32, u32>,
    /// The last CPU of each task.
    cpu_of: HashMap<u32, u32>,
    /// CPUs whose packets have reported the lost events; `None` if nothing was lost.
    told: Option<HashSet<u32>>,
}

impl Bundles {
    pub(super) fn new(machine: &Machine) -> Self {
        Self {
            monotonic_ns: i64::try_from(machine.monotonic_ns).unwrap_or(0),
            boottime_ns: i64::try_from(machine.boottime_ns).unwrap_or(0),
            ..Self::default()
        }
    }

    pub(super) fn take(&mut self, event: &top_event, out: &mut Vec<TracePacket>) {
        let Some(kind) = kind(event) else { return };
        let sched = match kind {
            Kind::Switch => self.switch(event),
            Kind::Waking => Sched::Waking(self.wakeup(event, None)),
            Kind::WakeupNew => Sched::WakeupNew(self.wakeup(event, Some(event.target_cpu))),
            Kind::Migrate => self.migrate(event),
            Kind::Fork => fork(event),
            Kind::Exec => exec(&event.task),
            Kind::Exit => exit(&event.task),
            Kind::Insert => return,
        };
        let event_ = FtraceEvent {
            timestamp: event.time_ns,
            pid: self.running(kind, event),
            event: Some(sched),
        };
        let bundle = self.cpus.entry(event.cpu).or_default();
        bundle.push(event_);
        if bundle.len() >= BUNDLE {
            let events = std::mem::take(bundle);
            out.push(self.packet(event.cpu, events));
        }
    }

    /// The pid of the task that was running on the CPU (for a switch, prev); 0 if it is unknown.
    /// Updates `current`.
    fn running(&mut self, kind: Kind, event: &top_event) -> u32 {
        let pid = match kind {
            Kind::Switch => {
                self.current.insert(event.cpu, event.other.pid);
                return event.task.pid;
            }
            Kind::Waking | Kind::Fork => event.other.pid,
            Kind::Exec | Kind::Exit => event.task.pid,
            Kind::WakeupNew | Kind::Migrate | Kind::Insert => {
                return self.current.get(&event.cpu).copied().unwrap_or(0);
            }
        };
        self.current.insert(event.cpu, pid);
        pid
    }

    fn switch(&mut self, event: &top_event) -> Sched {
        let (prev, next) = (&event.task, &event.other);
        self.cpu_of.insert(prev.pid, event.cpu);
        self.cpu_of.insert(next.pid, event.cpu);
        Sched::Switch(SchedSwitch {
            prev_comm: comm(prev),
            prev_pid: int(prev.pid),
            prev_prio: prev.prio,
            prev_state: match event.state {
                // The idle task is never preempted.
                0 if prev.pid != 0 => PREEMPTED,
                state if state & TASK_DEAD != 0 => EXITED,
                state if state & TASK_NOLOAD != 0 => IDLE,
                state if state & (TASK_RTLOCK_WAIT | TASK_FROZEN) != 0 => UNINTERRUPTIBLE,
                state => i64::from(state & TASK_REPORT),
            },
            next_comm: comm(next),
            next_pid: int(next.pid),
            next_prio: next.prio,
        })
    }

    fn wakeup(&mut self, event: &top_event, cpu: Option<u32>) -> SchedWakeup {
        let task = &event.task;
        if let Some(cpu) = cpu {
            self.cpu_of.insert(task.pid, cpu);
        }
        SchedWakeup {
            comm: comm(task),
            pid: int(task.pid),
            prio: task.prio,
            success: 1,
            target_cpu: self.cpu_of.get(&task.pid).copied().map(int),
        }
    }

    fn migrate(&mut self, event: &top_event) -> Sched {
        let task = &event.task;
        let from = self.cpu_of.insert(task.pid, event.target_cpu);
        Sched::Migrate(SchedMigrateTask {
            comm: comm(task),
            pid: int(task.pid),
            prio: task.prio,
            orig_cpu: from.map(int),
            dest_cpu: int(event.target_cpu),
        })
    }

    fn packet(&mut self, cpu: u32, event: Vec<FtraceEvent>) -> TracePacket {
        let lost = self.told.as_mut().is_some_and(|told| told.insert(cpu));
        timeless(Data::FtraceEvents(FtraceEventBundle {
            cpu,
            event,
            lost_events: lost.then_some(true),
            ftrace_clock: FTRACE_CLOCK_GLOBAL,
            ftrace_timestamp: self.monotonic_ns,
            boot_timestamp: self.boottime_ns,
        }))
    }

    /// Events were lost here. The next packet of each CPU reports the loss.
    pub(super) fn gap(&mut self, out: &mut Vec<TracePacket>) {
        self.finish(out);
        self.told = Some(HashSet::new());
    }

    /// Writes the events that have not been written yet.
    pub(super) fn finish(&mut self, out: &mut Vec<TracePacket>) {
        for (cpu, events) in std::mem::take(&mut self.cpus) {
            if !events.is_empty() {
                out.push(self.packet(cpu, events));
            }
        }
    }
}

fn fork(event: &top_event) -> Sched {
    Sched::Fork(SchedProcessFork {
        parent_comm: comm(&event.other),
        parent_pid: int(event.other.pid),
        child_comm: comm(&event.task),
        child_pid: int(event.task.pid),
    })
}

fn exec(task: &top_event_task) -> Sched {
    Sched::Exec(SchedProcessExec {
        // The records lack the path of the program. The task's new name takes its place.
        filename: comm(task),
        pid: int(task.pid),
        old_pid: int(task.pid),
    })
}

fn exit(task: &top_event_task) -> Sched {
    Sched::Exit(SchedProcessExit {
        comm: comm(task),
        pid: int(task.pid),
        tgid: int(task.tgid),
        prio: task.prio,
    })
}
