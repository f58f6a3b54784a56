//! Locks that threads hold while they compute, to measure how preempting a lock holder delays the
//! waiting threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use rustix::thread::sched_getcpu;

/// Number of workers that share a lock with [`Sharing::Group`].
const GROUP: usize = 4;

/// Which workers share a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sharing {
    /// No workers share a lock, because there are no locks.
    None,
    /// Workers on the same CPU, as with per-CPU allocators and counters. A holder that migrates
    /// keeps the lock of its previous CPU.
    Cpu,
    /// Each group of four workers.
    Group,
}

/// The locks of all workers. They are futexes, so an uncontended lock costs no system call.
#[derive(Debug)]
pub(crate) struct Locks {
    sharing: Sharing,
    locks: Vec<Mutex<()>>,
}

impl Locks {
    /// Locks for `nr_workers` workers on CPUs below `nr_cpu_ids`.
    pub(crate) fn new(sharing: Sharing, nr_workers: usize, nr_cpu_ids: usize) -> Self {
        let count = match sharing {
            Sharing::None => 0,
            Sharing::Cpu => nr_cpu_ids,
            Sharing::Group => nr_workers.div_ceil(GROUP),
        };
        Self {
            sharing,
            locks: (0..count).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Takes the lock of the current CPU or of the group of `worker`; `None` if there are no locks.
    pub(crate) fn hold(&self, worker: usize) -> Option<MutexGuard<'_, ()>> {
        let index = match self.sharing {
            Sharing::None => return None,
            Sharing::Cpu => sched_getcpu(),
            Sharing::Group => worker / GROUP,
        };
        let lock = self.locks.get(index)?;
        Some(lock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_group_share_a_lock() {
        let locks = Locks::new(Sharing::Group, 5, 1);
        let held = locks.hold(0);
        assert!(held.is_some());
        assert!(locks.locks[0].try_lock().is_err());
        // The fifth worker is in another group.
        assert!(locks.hold(4).is_some());
    }

    #[test]
    fn locks_of_cpus_exist_for_each_cpu() {
        let nr_cpu_ids = std::thread::available_parallelism()
            .unwrap()
            .get()
            .max(1024);
        assert!(Locks::new(Sharing::Cpu, 1, nr_cpu_ids).hold(0).is_some());
    }

    #[test]
    fn without_locks_nothing_is_held() {
        assert!(Locks::new(Sharing::None, 3, 4).hold(2).is_none());
    }
}
