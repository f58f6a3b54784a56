// SPDX-License-Identifier: GPL-2.0-only
//! The policy: plain data, independent of the kernel.

use std::collections::VecDeque;

use scx_rustland_core::{Cpus, DispatchedTask, Policy, QueuedTask, Target};
use scx_rustland_core::{SLICE_INF_NS, WEIGHT_DFL};

/// The options of the policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// How long a task may run while other tasks wait, ns.
    pub(crate) slice_ns: u64,
    /// Whether tasks of more than the default weight run until they sleep.
    pub(crate) weighted: bool,
    /// Whether each task is assigned to its previous CPU.
    pub(crate) percpu_local: bool,
}

/// The policy: all tasks wait in one FIFO queue.
#[derive(Debug)]
pub(crate) struct Fifo {
    config: Config,
    queue: VecDeque<QueuedTask>,
}

impl Fifo {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            queue: VecDeque::new(),
        }
    }
}

impl Policy for Fifo {
    /// A task is runnable, for example because it woke up or its slice expired.
    fn enqueue(&mut self, task: QueuedTask, _now_ns: u64) {
        self.queue.push_back(task);
    }

    /// A CPU is idle, or will be soon. Dispatch the first task of the queue.
    fn dispatch(&mut self, cpus: &mut Cpus, _now_ns: u64) -> Option<DispatchedTask> {
        let task = self.queue.pop_front()?;
        let target = if self.config.percpu_local {
            Target::Cpu(task.prev_cpu)
        } else {
            cpus.pick_idle(&task)
        };
        let is_favoured = self.config.weighted && task.weight > WEIGHT_DFL;
        let slice_ns = if is_favoured {
            SLICE_INF_NS
        } else {
            self.config.slice_ns
        };
        Some(DispatchedTask::new(&task).to(target).slice_ns(slice_ns))
    }

    fn nr_waiting(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    const SLICE_NS: u64 = 5_000_000;

    fn fifo(weighted: bool, percpu_local: bool) -> Fifo {
        Fifo::new(Config {
            slice_ns: SLICE_NS,
            weighted,
            percpu_local,
        })
    }

    fn task(pid: i32, weight: u32, prev_cpu: u32) -> QueuedTask {
        let mut task = QueuedTask::new(pid);
        task.weight = weight;
        task.prev_cpu = prev_cpu;
        task
    }

    fn next(policy: &mut Fifo) -> Option<DispatchedTask> {
        policy.dispatch(&mut Cpus::of_single_threads(4), 0)
    }

    #[test]
    fn empty_queue_dispatches_nothing() {
        assert!(next(&mut fifo(true, true)).is_none());
    }

    #[test]
    fn favoured_task_has_no_end_of_slice() {
        for (weighted, weight, slice_ns) in [
            (true, WEIGHT_DFL + 1, SLICE_INF_NS),
            (true, WEIGHT_DFL, SLICE_NS),
            (true, 1, SLICE_NS),
            (false, 10_000, SLICE_NS),
        ] {
            let mut policy = fifo(weighted, false);
            policy.enqueue(task(1, weight, 0), 0);
            assert_eq!(next(&mut policy).unwrap().get_slice_ns(), slice_ns);
        }
    }

    #[test]
    fn idle_cpu_is_used_before_any() {
        let mut policy = fifo(false, false);
        let mut cpus = Cpus::of_single_threads(4);
        cpus.set_idle(2, true);
        policy.enqueue(task(1, 100, 0), 0);
        policy.enqueue(task(2, 100, 0), 0);
        let mut target = || policy.dispatch(&mut cpus, 0).unwrap().target();
        assert_eq!([target(), target()], [Target::IdleCpu(2), Target::Any]);
    }

    proptest! {
        /// Whatever the sequence of calls, each task is dispatched once, in FIFO order.
        #[test]
        fn first_come_first_served(
            steps in vec(option::of((1..=10_000_u32, 0..64_u32)), 0..400),
            weighted: bool,
            percpu_local: bool,
        ) {
            let mut policy = fifo(weighted, percpu_local);
            let (mut arrived, mut served) = (Vec::new(), Vec::new());
            for step in steps {
                if let Some((weight, cpu)) = step {
                    let pid = i32::try_from(arrived.len()).unwrap() + 1;
                    policy.enqueue(task(pid, weight, cpu), 0);
                    arrived.push((pid, cpu));
                } else if let Some(task) = next(&mut policy) {
                    let (pid, cpu) = arrived[served.len()];
                    prop_assert_eq!(task.pid(), pid);
                    prop_assert!(!percpu_local || task.target() == Target::Cpu(cpu));
                    served.push(pid);
                }
                prop_assert_eq!(policy.nr_waiting(), arrived.len() - served.len());
            }
        }
    }
}
