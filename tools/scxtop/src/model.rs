// SPDX-License-Identifier: GPL-2.0-only
//! What `scxtop` shows: a [`Snapshot`] of the machine, for one interval. Pure data: the collector
//! fills it, the views draw it, `scxtop top --json` prints it.
//!
//! Times and durations are ns. Rates are per second, percentages of one CPU, over the interval.
//! Lists are sorted by id, tasks by CPU time, descending.

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
    /// The part of the interval in which wakeups, insertions and migrations between CPUs were
    /// observed, percent: less than 100 if there are many. Latencies are from this part only, and
    /// rates are extrapolated from it.
    pub observed_pct: f64,
    /// The kernel's release.
    pub kernel: String,
    pub sched: Sched,
    /// All possible CPUs.
    pub cpus: Vec<Cpu>,
    pub llcs: Vec<Group>,
    pub nodes: Vec<Group>,
    /// Latency of wakeups: from runnable to running, all tasks.
    pub wakeup: Latency,
    /// Tasks that ran or waited in the interval.
    pub tasks: Vec<Task>,
    pub dsqs: Vec<Dsq>,
    /// Events of sched_ext, in the kernel's order; empty if the kernel does not count them.
    pub events: Vec<Event>,
    /// The scheduler's own statistics, flattened: name and value, in the scheduler's order; empty
    /// if it has none.
    pub stats: Vec<(String, Value)>,
    pub own: OwnCost,
    /// What cannot be shown, and why: one line each.
    pub notices: Vec<String>,
}

/// The scheduler.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Sched {
    /// `enabled`, `enabling`, `disabling`, `disabled`; empty: the kernel lacks sched_ext.
    pub state: String,
    /// The name of the loaded sched_ext scheduler.
    pub name: Option<String>,
    /// Whether it schedules all ordinary tasks, not only those of the policy SCHED_EXT.
    pub is_switch_all: bool,
    /// Number of schedulers enabled since boot.
    pub enable_seq: u64,
    /// How the last scheduler ended: its line of the kernel's log.
    pub last_exit: Option<String>,
}

/// A CPU.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Cpu {
    pub id: u32,
    pub is_online: bool,
    /// Dense ids of the topology; 0 for an offline CPU.
    pub core: u32,
    pub llc: u32,
    pub node: u32,
    /// Relative capacity, 1 to 1024.
    pub capacity: u32,
    /// Current frequency; `None` if the kernel does not tell it.
    pub freq_khz: Option<u64>,
    /// Time with a task, percent of the interval.
    pub busy_pct: f64,
    /// Part of `busy_pct` with real-time and deadline tasks, estimated from the tasks that still
    /// exist.
    pub rt_pct: f64,
    /// Part of `busy_pct` with tasks of sched_ext, estimated from the tasks that still exist.
    pub ext_pct: f64,
    /// Context switches per second.
    pub switches: f64,
    /// Switches per second from a task that was still runnable, summed over the tasks that ran here
    /// last.
    pub preemptions: f64,
    /// Tasks that ran on another CPU before, per second.
    pub migrations: f64,
    /// Tasks in the local DSQ now.
    pub queued: u32,
    pub wakeup: Latency,
    /// The task that runs now; `None`: idle.
    pub current: Option<(u32, String)>,
}

/// The CPUs that share a last-level cache or a NUMA node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Group {
    pub id: u32,
    /// The node of an LLC; the id of a node.
    pub node: u32,
    /// Online CPUs.
    pub cpus: Vec<u32>,
    /// Mean and range of its CPUs' busy time, percent.
    pub busy_pct: f64,
    pub busy_min_pct: f64,
    pub busy_max_pct: f64,
    /// Tasks that came from a CPU outside, per second.
    pub migrations_in: f64,
    /// Tasks that moved between its CPUs, per second.
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
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// `running`, `waiting` (runnable), `sleeping`.
    pub state: String,
    /// The scheduling class: `ext`, `fair`, `rt`, `dl`, `idle`.
    pub class: String,
    /// The kernel's priority: 0 to 99 real-time, 120 for nice 0.
    pub prio: i32,
    /// Its CPU time, percent of one CPU.
    pub run_pct: f64,
    /// The time that it was runnable but did not run, percent.
    pub wait_pct: f64,
    /// Totals since its creation.
    pub run_ns: u64,
    pub wait_ns: u64,
    /// Per second.
    pub switches: f64,
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
    /// The DSQ that it was inserted into last.
    pub dsq: Option<String>,
}

/// A dispatch queue.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Dsq {
    /// The kernel's id. SCX_DSQ_LOCAL stands for all local DSQs.
    pub id: u64,
    /// `local`, `global`, or the id in hexadecimal.
    pub name: String,
    /// Tasks in it now; `None` if the kernel does not tell it.
    pub depth: Option<u32>,
    /// Insertions per second.
    pub inserts: f64,
    /// Latency from the insertion to running.
    pub latency: Latency,
    /// Difference between the highest and the lowest vtime inserted in the interval; `None`: no
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
    /// Events that could not be counted: the memory for a new task or DSQ was missing.
    pub lost: u64,
}
