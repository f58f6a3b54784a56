// SPDX-License-Identifier: GPL-2.0-only
//! What `scxtop` shows: a [`Snapshot`] of the machine, for one interval. Pure data: the collector
//! fills it, and the views draw it or `scxtop top` prints it.
//!
//! Times and durations are in ns. Unless noted otherwise, rates are per second, percentages are of
//! one CPU, and lists are sorted by id. Tasks are sorted by CPU time, descending.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::histogram::Latency;

/// The state of the machine, and what happened since the last snapshot.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Snapshot {
    /// End of the interval, on the monotonic clock.
    pub time_ns: u64,
    /// Length of the interval; 0 in the first snapshot, which has no rates.
    pub interval_ns: u64,
    /// Percentage of the interval in which wakeups, insertions and migrations between CPUs were
    /// observed: less than 100 if there are many context switches. Latencies, the insertions into
    /// DSQs, and the migrations of CPUs, LLCs and nodes are from this part of the interval only.
    pub observed_pct: f64,
    /// The kernel's release.
    pub kernel: String,
    pub sched: Sched,
    /// All possible CPUs.
    pub cpus: Vec<Cpu>,
    pub llcs: Vec<Group>,
    pub nodes: Vec<Group>,
    /// Latency of the wakeups of all tasks, from runnable to running.
    pub wakeup: Latency,
    /// Tasks that ran or waited in the interval.
    pub tasks: Vec<Task>,
    pub dsqs: Vec<Dsq>,
    /// Events of sched_ext, in the kernel's order. Empty without a scheduler, and before Linux
    /// 6.15.
    pub events: Vec<Event>,
    /// The scheduler's own statistics, flattened: path and value, in the alphabetical order of the
    /// fields. Empty without a scheduler, and if it does not answer.
    pub stats: Vec<(String, Value)>,
    pub own: OwnCost,
    /// What cannot be shown, and why: one line each.
    pub notices: Vec<String>,
}

/// The scheduler.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Sched {
    /// `enabled`, `enabling`, `disabling` or `disabled`. Empty if the kernel lacks sched_ext.
    pub state: String,
    /// The name of the loaded sched_ext scheduler.
    pub name: Option<String>,
    /// Whether it schedules all ordinary tasks, not only those of the policy SCHED_EXT.
    pub is_switch_all: bool,
    /// Number of schedulers enabled since boot.
    pub enable_seq: u64,
    /// How the last scheduler ended, from the kernel's log. `None` if the log does not say.
    pub last_exit: Option<String>,
}

/// A CPU.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Cpu {
    pub id: u32,
    pub is_online: bool,
    /// Indices of its core, LLC and node in the topology; 0 for an offline CPU.
    pub core: u32,
    pub llc: u32,
    pub node: u32,
    /// Relative capacity, 1 to 1024; 0 for an offline CPU.
    pub capacity: u32,
    /// Current frequency; `None` if the kernel does not report it.
    pub freq_khz: Option<u64>,
    /// Time with a task other than the idle task, percent of the interval.
    pub busy_pct: f64,
    /// Part of `busy_pct` with real-time and deadline tasks, estimated from the tasks that still
    /// exist.
    pub rt_pct: f64,
    /// Part of `busy_pct` with tasks of sched_ext, estimated from the tasks that still exist.
    pub ext_pct: f64,
    /// Context switches per second.
    pub switches: f64,
    /// Switches per second from a task that was still runnable, summed over the tasks whose last
    /// CPU is this CPU.
    pub preemptions: f64,
    /// Migrations of tasks to this CPU per second.
    pub migrations: f64,
    /// Tasks in the local DSQ now.
    pub queued: u32,
    pub wakeup: Latency,
    /// Pid and name of the task that runs now. `None` for an idle or offline CPU.
    pub current: Option<(u32, String)>,
}

/// The CPUs that share a last-level cache or a NUMA node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Group {
    pub id: u32,
    /// For an LLC, its node; for a node, its own id.
    pub node: u32,
    /// Online CPUs.
    pub cpus: Vec<u32>,
    /// Mean and range of its CPUs' busy time, percent.
    pub busy_pct: f64,
    pub busy_min_pct: f64,
    pub busy_max_pct: f64,
    /// Tasks that came from a CPU outside of the group, per second.
    pub migrations_in: f64,
    /// Tasks that moved between CPUs of the group, per second.
    pub migrations_within: f64,
    pub switches: f64,
    pub wakeup: Latency,
}

/// A thread.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Task {
    pub pid: u32,
    pub tgid: u32,
    pub comm: String,
    /// The CPU to which the kernel has assigned the task: usually the CPU where it ran last.
    pub cpu: u32,
    /// `running`, `waiting` (runnable), `sleeping`.
    pub state: String,
    /// The scheduling class: `ext`, `fair`, `rt`, `dl`, `idle`.
    pub class: String,
    /// The kernel's priority: -1 deadline, 0 to 99 real-time, 120 for nice 0.
    pub prio: i32,
    /// Its CPU time, percent of one CPU.
    pub run_pct: f64,
    /// The time that it was runnable but did not run, percent of the interval.
    pub wait_pct: f64,
    /// Total CPU time and waiting time since its creation.
    pub run_ns: u64,
    pub wait_ns: u64,
    /// Times per second that it was switched in.
    pub switches: f64,
    /// Times per second that it was switched out while it was still runnable.
    pub preemptions: f64,
    /// Wakeups per second, counted as the times that the task went to sleep.
    pub wakeups: f64,
    pub migrations: f64,
    /// Latency of its wakeups in the interval.
    pub wakeup: Latency,
    /// Fields of sched_ext; 0 for tasks of other classes.
    pub weight: u32,
    pub slice_ns: u64,
    pub dsq_vtime: u64,
    /// The name of the DSQ that it was inserted into last. `None` if no insertion was observed.
    pub dsq: Option<String>,
}

/// A dispatch queue.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Dsq {
    /// The kernel's id. SCX_DSQ_LOCAL stands for all local DSQs.
    pub id: u64,
    /// `local`, `global`, or the id in hexadecimal.
    pub name: String,
    /// Number of tasks in the queue now; `None` if it is unknown.
    pub depth: Option<u32>,
    /// Insertions per second.
    pub inserts: f64,
    /// Latency from the insertion to running.
    pub latency: Latency,
    /// Difference between the highest and the lowest vtime inserted in the interval; `None` if no
    /// task was inserted by vtime.
    pub vtime_spread: Option<u64>,
}

/// A counter of the kernel's sched_ext events.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Event {
    /// As the kernel names it, without the prefix `SCX_EV_`.
    pub name: String,
    pub total: i64,
    /// Change in the interval.
    pub delta: i64,
}

/// What scxtop itself costs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct OwnCost {
    /// CPU time of the process, percent of one CPU.
    pub process_pct: f64,
    /// Events that could not be counted since scxtop was started, because the task has no BPF task
    /// storage, or because a map was full.
    pub lost: u64,
}
