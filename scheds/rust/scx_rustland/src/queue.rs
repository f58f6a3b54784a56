// SPDX-License-Identifier: GPL-2.0-only
//! The queue of waiting tasks, with at most one entry per pid.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use scx_rustland_core::QueuedTask;

use crate::history::History;

/// A task that needs a decision.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) task: QueuedTask,
    pub(crate) history: History,
    /// The deadline of the task, in virtual time.
    pub(crate) deadline_ns: u64,
    /// When the task was enqueued, ns.
    pub(crate) since_ns: u64,
    /// Whether the task may preempt other tasks.
    pub(crate) is_urgent: bool,
    /// Whether the decision on the task stands for later wakeups.
    pub(crate) stands: bool,
}

/// A key of a task in one of the orders, and the pid, which makes the pair unique.
type Entry = (u64, i32);

/// Finds the first task in each of several orders, in O(log n).
#[derive(Debug, Default)]
pub(crate) struct Queue {
    tasks: FxHashMap<i32, Waiting>,
    by_deadline: BTreeSet<Entry>,
    by_vruntime: BTreeSet<Entry>,
    by_arrival: BTreeSet<Entry>,
    urgent: BTreeSet<Entry>,
    /// Number of tasks whose decisions stand for later wakeups.
    nr_standing: usize,
}

impl Queue {
    /// Inserts a task. An older entry with the same pid is removed, because a decision on the older
    /// enqueue would have no effect.
    pub(crate) fn insert(&mut self, waiting: Waiting) {
        let pid = waiting.task.pid;
        self.remove(pid);
        self.by_deadline.insert((waiting.deadline_ns, pid));
        self.by_vruntime.insert((waiting.history.vruntime_ns, pid));
        self.by_arrival.insert((waiting.since_ns, pid));
        if waiting.is_urgent {
            self.urgent.insert((waiting.deadline_ns, pid));
        }
        self.nr_standing += usize::from(waiting.stands);
        self.tasks.insert(pid, waiting);
    }

    fn remove(&mut self, pid: i32) -> Option<Waiting> {
        let waiting = self.tasks.remove(&pid)?;
        self.by_deadline.remove(&(waiting.deadline_ns, pid));
        self.by_vruntime.remove(&(waiting.history.vruntime_ns, pid));
        self.by_arrival.remove(&(waiting.since_ns, pid));
        if waiting.is_urgent {
            self.urgent.remove(&(waiting.deadline_ns, pid));
        }
        self.nr_standing -= usize::from(waiting.stands);
        Some(waiting)
    }

    /// Removes and returns the task with the earliest deadline.
    pub(crate) fn pop_earliest(&mut self) -> Option<Waiting> {
        let (_, pid) = *self.by_deadline.first()?;
        self.remove(pid)
    }

    /// Removes and returns the task that has waited longest.
    pub(crate) fn pop_oldest(&mut self) -> Option<Waiting> {
        let (_, pid) = *self.by_arrival.first()?;
        self.remove(pid)
    }

    /// Among the tasks that may preempt other tasks, the task with the earliest deadline.
    pub(crate) fn first_urgent(&self) -> Option<&Waiting> {
        let (_, pid) = self.urgent.first()?;
        self.tasks.get(pid)
    }

    /// Removes and returns [`first_urgent`](Self::first_urgent).
    pub(crate) fn pop_urgent(&mut self) -> Option<Waiting> {
        let (_, pid) = *self.urgent.first()?;
        self.remove(pid)
    }

    /// Removes [`first_urgent`](Self::first_urgent) from the tasks that may preempt other tasks.
    /// The task keeps its place in the other orders.
    pub(crate) fn demote_urgent(&mut self) {
        let first = self.urgent.pop_first();
        if let Some(waiting) = first.and_then(|(_, pid)| self.tasks.get_mut(&pid)) {
            waiting.is_urgent = false;
        }
    }

    /// When the task that has waited longest was enqueued.
    pub(crate) fn oldest_since_ns(&self) -> Option<u64> {
        self.by_arrival.first().map(|(since_ns, _)| *since_ns)
    }

    /// The minimum virtual time of all waiting tasks.
    pub(crate) fn min_vruntime_ns(&self) -> Option<u64> {
        self.by_vruntime
            .first()
            .map(|(vruntime_ns, _)| *vruntime_ns)
    }

    pub(crate) fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Whether the decisions on all waiting tasks stand for later wakeups. False if no task waits.
    pub(crate) fn all_stand(&self) -> bool {
        self.nr_standing > 0 && self.nr_standing == self.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }
}
