// SPDX-License-Identifier: GPL-2.0-only
//! The interface that a scheduler's author implements.

use crate::{Cpus, DispatchedTask, QueuedTask};

/// A scheduling policy: it gets tasks and the time, and returns decisions.
///
/// A policy is plain data. It does not read clocks, makes no system calls and does not depend on
/// the kernel, so a test can call it like any other code. The [`Driver`](crate::Driver) calls it
/// for each event, on one thread.
///
/// `now_ns` is the time of the newest event (`CLOCK_MONOTONIC`). It never decreases, and is 0
/// before the first event.
///
/// Rules:
/// - After each [`enqueue`](Self::enqueue) of a task, [`dispatch`](Self::dispatch) returns one
///   decision on this task. A task without a decision ends the scheduler after 10 s, the timeout of
///   the kernel's watchdog.
/// - A task is enqueued again after it has run or slept, or when its attributes are changed, which
///   may happen before the policy has decided on it. Only the newest enqueue of a task counts.
///   Decisions on older enqueues have no effect, so a policy may leave outdated entries in its
///   queue.
/// - No call may block. A policy may allocate memory if [`LockedHeap`](crate::LockedHeap) is the
///   program's global allocator.
pub trait Policy {
    /// `task` is runnable and needs a decision.
    fn enqueue(&mut self, task: QueuedTask, now_ns: u64);

    /// Returns a decision on the next task to run, or `None` if no task should run now. Called
    /// while a CPU is idle, plus once in advance, so that the next CPU that becomes idle need not
    /// wait. After a stall of the policy, and while the policy is slow, it is called until it
    /// returns `None`.
    fn dispatch(&mut self, cpus: &mut Cpus, now_ns: u64) -> Option<DispatchedTask>;

    /// Whether the next decision cannot wait for an idle CPU. If so, [`dispatch`](Self::dispatch)
    /// is called even if all CPUs are busy. For a task that should preempt another task,
    /// [`Cpus::pick_victim`] selects the CPU.
    fn is_urgent(&self) -> bool {
        false
    }

    /// The minimum vtime of a task that wakes up with a standing decision
    /// ([`DispatchedTask::standing`]). It bounds the credit of a task that has slept. 0 means no
    /// bound.
    fn vtime_floor(&self) -> u64 {
        0
    }

    /// Number of tasks that the policy holds.
    fn nr_waiting(&self) -> usize;

    /// A number of the policy's choice, which statistics show as `mode`.
    fn mode(&self) -> u64 {
        0
    }

    /// A CPU came online. Also called for each online CPU when the scheduler starts.
    fn cpu_online(&mut self, _cpu: u32, _now_ns: u64) {}

    /// A CPU went offline. Tasks that were decided for it run on any CPU instead.
    fn cpu_offline(&mut self, _cpu: u32, _now_ns: u64) {}
}
