// SPDX-License-Identifier: GPL-2.0-only
//! The thread that attaches a scheduler runs as a real-time thread meanwhile.
//!
//! Attaching moves all tasks, this thread among them, from the kernel's fair class to the ext
//! class, one after the other. The fair class goes first: on a machine with enough busy tasks
//! that are yet to be moved, whoever has been moved does not run again, and if that is the thread
//! that does the moving, it all stops there, with preempted RCU readers and held locks. Seen on
//! 6.17; 7.2 hands the work to a thread of its own.

/// A policy and its parameters. Those of `SCHED_DEADLINE` do not fit in.
type Scheduling = (libc::c_int, libc::sched_param);

/// Holds the calling thread in `SCHED_FIFO` until it is dropped, on the same thread.
#[derive(Debug)]
pub(super) struct RealTime {
    /// Policy and parameters to go back to; `None` if nothing was changed.
    before: Option<Scheduling>,
}

impl RealTime {
    /// Where it may not, nothing changes: the scheduler still loads on a machine that is not
    /// saturated.
    pub(super) fn raise() -> Self {
        let restorable = |before: &Scheduling| before.0 != libc::SCHED_DEADLINE;
        let before = current().filter(restorable);
        Self {
            before: before.filter(|_| set(lowest_fifo())),
        }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            if !set(before) {
                tracing::warn!("cannot leave the real-time policy that attaching took");
            }
        }
    }
}

fn current() -> Option<Scheduling> {
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the kernel writes one `sched_param`.
    let (policy, err) = unsafe {
        (
            libc::sched_getscheduler(0),
            libc::sched_getparam(0, &mut param),
        )
    };
    (policy >= 0 && err == 0).then_some((policy, param))
}

/// Threads that are made meanwhile do not inherit it.
fn lowest_fifo() -> Scheduling {
    // SAFETY: takes and returns a number.
    let sched_priority = unsafe { libc::sched_get_priority_min(libc::SCHED_FIFO) };
    (
        libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
        libc::sched_param { sched_priority },
    )
}

fn set((policy, param): Scheduling) -> bool {
    // SAFETY: 0 is the calling thread, and the kernel reads one `sched_param`.
    unsafe { libc::sched_setscheduler(0, policy, &param) == 0 }
}
