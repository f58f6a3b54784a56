// SPDX-License-Identifier: GPL-2.0-only
//! Threads that are temporarily real-time threads.

/// A policy and its parameters, except those of `SCHED_DEADLINE`.
type Scheduling = (libc::c_int, libc::sched_param);

/// The calling thread, in system calls.
const SELF: libc::pid_t = 0;

/// A guard that keeps a thread at the lowest priority of `SCHED_FIFO`.
#[derive(Debug)]
pub(crate) struct RealTime {
    thread: libc::pid_t,
    /// Policy and parameters to restore; `None` if nothing was changed.
    before: Option<Scheduling>,
}

impl RealTime {
    /// Gives the calling thread the lowest priority of `SCHED_FIFO`, unless its policy is
    /// `SCHED_DEADLINE`. The same thread has to drop the guard. Without the permission, nothing
    /// changes.
    pub(crate) fn raise_self() -> Self {
        let restorable = |before: &Scheduling| before.0 != libc::SCHED_DEADLINE;
        Self::raise(SELF, restorable)
    }

    /// Gives another thread the lowest priority of `SCHED_FIFO` if its policy is `SCHED_OTHER`.
    /// Without the permission, nothing changes.
    pub(crate) fn raise_ordinary(thread: libc::pid_t) -> Self {
        Self::raise(thread, |before| before.0 == libc::SCHED_OTHER)
    }

    fn raise(thread: libc::pid_t, may: impl Fn(&Scheduling) -> bool) -> Self {
        let before = current(thread).filter(may);
        Self {
            thread,
            before: before.filter(|_| set(thread, lowest_fifo())),
        }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            if !set(self.thread, before) {
                tracing::warn!("thread {} cannot leave its real-time policy", self.thread);
            }
        }
    }
}

// The system calls are used directly, because the functions of musl always fail: POSIX defines them
// for processes, and Linux implements them for threads.

fn current(thread: libc::pid_t) -> Option<Scheduling> {
    let mut param = libc::sched_param { sched_priority: 0 };
    let param_ptr = std::ptr::from_mut(&mut param);
    // SAFETY: the kernel writes one `sched_param`.
    let (policy, err) = unsafe {
        (
            libc::syscall(libc::SYS_sched_getscheduler, thread),
            libc::syscall(libc::SYS_sched_getparam, thread, param_ptr),
        )
    };
    let policy = libc::c_int::try_from(policy).ok();
    policy
        .filter(|policy| *policy >= 0 && err == 0)
        .map(|policy| (policy, param))
}

/// The lowest priority of `SCHED_FIFO`. Because of `SCHED_RESET_ON_FORK`, threads that are created
/// meanwhile do not inherit the policy.
fn lowest_fifo() -> Scheduling {
    // SAFETY: takes and returns a number.
    let sched_priority = unsafe { libc::sched_get_priority_min(libc::SCHED_FIFO) };
    (
        libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
        libc::sched_param { sched_priority },
    )
}

fn set(thread: libc::pid_t, (policy, param): Scheduling) -> bool {
    let param_ptr = std::ptr::from_ref(&param);
    // SAFETY: the kernel reads one `sched_param`.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, param_ptr) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_is_read_and_set() {
        let before = current(SELF).unwrap();
        assert!(set(SELF, before), "the policy it has needs no permission");
        let raised = RealTime::raise_self();
        let is_root = raised.before.is_some();
        let policy = current(SELF).unwrap().0;
        assert_eq!(policy == lowest_fifo().0, is_root);
        drop(raised);
        assert_eq!(current(SELF).unwrap().0, before.0);
    }
}
