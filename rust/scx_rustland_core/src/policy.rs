// SPDX-License-Identifier: GPL-2.0-only
//! What the author of a scheduler writes.

use crate::{Cpus, DispatchedTask, QueuedTask};

/// A scheduling policy: tasks and the time go in, decisions come out.
///
/// It is plain data. It never asks for the time, makes no system call, and knows of no kernel, so
/// that a test can call it like any other code. The [`Driver`](crate::Driver) calls it whenever
/// something happens, on one thread.
///
/// `now_ns` is when the newest event happened, by the clock `CLOCK_MONOTONIC`: it never goes
/// backward, and is 0 before the first event.
///
/// Three things to keep to:
/// - Each task that comes in by [`enqueue`](Self::enqueue) goes out by
///   [`dispatch`](Self::dispatch) once. A task that is forgotten ends the scheduler after 10 s.
/// - The same task comes in again when it has run, when it was asleep, or when something of it was
///   changed: in that case before it went out. The newer one counts: decisions for the older one
///   are cancelled, so a policy may leave it in.
/// - Nothing of a call may wait. Memory that grows is fine ([`LockedHeap`](crate::LockedHeap)).
pub trait Policy {
    /// `task` wants to run.
    fn enqueue(&mut self, task: QueuedTask, now_ns: u64);

    /// Who is to run next, or `None` for now. It is called as long as a CPU has nothing to do, and
    /// once more than that, so that the next CPU that becomes free has somebody to run at once.
    fn dispatch(&mut self, cpus: &mut Cpus, now_ns: u64) -> Option<DispatchedTask>;

    /// Whether somebody waits who is to interrupt others: then a decision is asked for although all
    /// CPUs are busy. [`Cpus::pick_victim`] says who.
    fn is_urgent(&self) -> bool {
        false
    }

    /// How many tasks wait in it.
    fn nr_waiting(&self) -> usize;

    /// A number that statistics show as `mode`: whatever the policy likes to tell of itself.
    fn mode(&self) -> u64 {
        0
    }

    /// A CPU came.
    fn cpu_online(&mut self, _cpu: u32, _now_ns: u64) {}

    /// A CPU went; decisions for it are changed to any CPU.
    fn cpu_offline(&mut self, _cpu: u32, _now_ns: u64) {}
}
