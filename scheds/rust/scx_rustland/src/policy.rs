// SPDX-License-Identifier: GPL-2.0-only
//! The policy: which task runs next, where, for how long, and which task it preempts.
//!
//! Tasks are ordered by deadline: their total weighted CPU time, plus their weighted CPU time since
//! they last slept. So tasks that sleep often and compute little run first, unless they use more
//! than their share.

use scx_rustland_core::{Cpus, DispatchedTask, Policy, QueuedTask, Target};

use crate::history::{Clock, History, BRIEF_NS, WEIGHT_MAX};
use crate::queue::{Queue, Waiting};

/// If a task has waited for longer than this, ns, every second decision is for the task that has
/// waited longest, whatever its deadline. Decisions on urgent tasks ([`Waiting::is_urgent`]) do not
/// count. The value is a tenth of `ops.timeout_ms` (10 s), after which the kernel's watchdog ejects
/// the scheduler.
const STARVED_NS: u64 = 1_000_000_000;

/// Minimum number of sleeps of a task before a decision on it may stand for later wakeups
/// ([`DispatchedTask::standing`]).
const SLEEPS_MIN: u64 = 3;

/// Initial virtual time. It is not 0, so that tasks may be behind it, and because a
/// [`DispatchedTask::vtime`] of 0 stands for no vtime.
const VRUNTIME_FIRST_NS: u64 = 1 << 40;

/// The options of the policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// Slice of a task while no other task waits, ns.
    pub(crate) slice_ns: u64,
    /// Minimum slice however many tasks wait, ns. A task preempts another task only if its own
    /// deadline is earlier by more than this.
    pub(crate) slice_min_ns: u64,
    /// Maximum delay that CPU time since the last sleep adds to the deadline of a task, in units of
    /// `slice_ns`. 0: no delay, and no preemption.
    pub(crate) slice_boost: u32,
    /// Whether interactive tasks preempt other tasks.
    pub(crate) preempts: bool,
    /// Whether to use FIFO order while CPUs are idle and hardly any task waits (`Fifo::update`).
    pub(crate) fifo: bool,
    /// Whether each task is assigned to the CPU where it last ran.
    pub(crate) percpu_local: bool,
}

/// The policy and its state.
#[derive(Debug)]
pub(crate) struct Rustland {
    config: Config,
    queue: Queue,
    clock: Clock,
    /// Whether the last decision was for the task that had waited longest, because it had waited
    /// for more than [`STARVED_NS`]. Decisions on urgent tasks or in FIFO mode do not change this.
    was_oldest_last: bool,
    fifo: Fifo,
}

/// The state of FIFO mode, which `update` turns on and off if the option is set.
#[derive(Debug)]
struct Fifo {
    is_on: bool,
    /// Average number of waiting tasks after a dispatch, in units of 1/256.
    waiting: usize,
}

impl Config {
    /// Maximum delay that CPU time since the last sleep adds to the deadline of a task, ns.
    fn max_burst_ns(&self) -> u64 {
        self.slice_ns.saturating_mul(u64::from(self.slice_boost))
    }
}

impl Rustland {
    pub(crate) fn new(config: Config) -> Self {
        let turn_ns = config.slice_ns.saturating_mul(100);
        Self {
            config,
            queue: Queue::default(),
            clock: Clock {
                now_ns: VRUNTIME_FIRST_NS,
                behind_ns: config.slice_ns,
                // At least the virtual time of one slice of a task of weight 1, so that the normal
                // differences due to weights and slices are not cut off.
                ahead_ns: config.max_burst_ns().max(turn_ns),
                // Enough for a new task that has used up to BRIEF_NS to preempt tasks in their
                // first slice. If slice_ns is less than this sum, the task does not wait long
                // anyway.
                first_lag_ns: (BRIEF_NS + 2 * config.slice_min_ns).min(config.slice_ns),
            },
            was_oldest_last: false,
            fifo: Fifo {
                is_on: config.fifo,
                waiting: 0,
            },
        }
    }

    fn may_preempt(&self, task: &QueuedTask, history: &History) -> bool {
        self.config.preempts
            && self.config.slice_boost > 0
            && !self.fifo.is_on
            && !self.config.percpu_local
            // A task that has already run since its last sleep does not preempt.
            && task.exec_ns == 0
            && history.is_interactive
    }

    /// Whether the decision on a task stands for its later wakeups: if the task is interactive, and
    /// has not computed since it last slept. A new task inherits the sleep rate of its parent, and
    /// may count as interactive because of it, so the task must also have slept a few times itself.
    /// No decision stands in FIFO mode or with `percpu_local`, where tasks do not preempt either.
    fn stands(&self, task: &QueuedTask, history: &History) -> bool {
        task.exec_ns == 0
            && task.nvcsw >= SLEEPS_MIN
            && history.is_interactive
            && !self.fifo.is_on
            && !self.config.percpu_local
    }

    /// The slice of the next decision, for any task. It is shorter if more tasks wait, so that no
    /// task waits long.
    fn slice_ns(&self) -> u64 {
        let nr_waiting = u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        let slice_ns = self.config.slice_ns / nr_waiting.saturating_add(1);
        slice_ns.max(self.config.slice_min_ns)
    }

    fn pop(&mut self, now_ns: u64) -> Option<Waiting> {
        if self.fifo.is_on {
            return self.queue.pop_oldest();
        }
        let since_ns = self.queue.oldest_since_ns()?;
        let is_starved = now_ns.saturating_sub(since_ns) > STARVED_NS;
        self.was_oldest_last = is_starved && !self.was_oldest_last;
        if self.was_oldest_last {
            self.queue.pop_oldest()
        } else {
            self.queue.pop_earliest()
        }
    }

    /// Advances the machine's virtual time to the minimum virtual time of the `served` task and all
    /// waiting tasks. It never decreases.
    fn advance(&mut self, served: &History) {
        let least = self.queue.min_vruntime_ns().unwrap_or(u64::MAX);
        let vruntime_ns = served.vruntime_ns.min(least);
        self.clock.now_ns = self.clock.now_ns.max(vruntime_ns);
    }

    /// Sends an urgent task to an idle CPU, or lets it preempt a task with a later deadline. If
    /// there is neither, the urgent task waits like all other tasks.
    fn preempt(&mut self, cpus: &mut Cpus) -> Option<DispatchedTask> {
        let margin_ns = self.config.slice_min_ns;
        while let Some(Waiting {
            task, deadline_ns, ..
        }) = self.queue.first_urgent()
        {
            let target = cpus.pick_idle(task);
            if target != Target::Any {
                let waiting = self.queue.pop_urgent()?;
                return Some(self.decision(&waiting).to(target));
            }
            if let Some(cpu) = cpus.pick_victim(task, *deadline_ns, margin_ns) {
                let waiting = self.queue.pop_urgent()?;
                return Some(self.decision(&waiting).to(Target::Cpu(cpu)).preempt());
            }
            self.queue.demote_urgent();
        }
        None
    }

    fn decision(&mut self, waiting: &Waiting) -> DispatchedTask {
        self.advance(&waiting.history);
        let weight = waiting.task.weight.min(WEIGHT_MAX);
        let decision = DispatchedTask::new(&waiting.task)
            .vtime(waiting.deadline_ns)
            .advance(if self.fifo.is_on { 0 } else { weight })
            .slice_ns(self.slice_ns())
            .ctx(waiting.history.to_ctx());
        if waiting.stands {
            decision.standing()
        } else {
            decision
        }
    }
}

impl Fifo {
    /// Updates the mode. FIFO mode ends when at most one CPU is idle. It begins again when more
    /// CPUs are idle and, on average, less than 1/16 of a task waits.
    fn update(&mut self, cpus: &Cpus, nr_waiting: usize) {
        self.waiting = self.waiting.midpoint(nr_waiting * 256);
        let nr_running = cpus.nr_online().saturating_sub(cpus.nr_idle());
        if nr_running + 1 >= cpus.nr_online() {
            self.is_on = false;
        } else if self.waiting < 16 {
            self.is_on = true;
        }
    }
}

impl Policy for Rustland {
    fn enqueue(&mut self, task: QueuedTask, now_ns: u64) {
        let history = History::of(&task, &self.clock, now_ns);
        let deadline_ns = history.deadline_ns(&task, self.config.max_burst_ns());
        let is_urgent = self.may_preempt(&task, &history);
        let stands = self.stands(&task, &history);
        self.queue.insert(Waiting {
            task,
            history,
            deadline_ns,
            since_ns: now_ns,
            is_urgent,
            stands,
        });
    }

    fn dispatch(&mut self, cpus: &mut Cpus, now_ns: u64) -> Option<DispatchedTask> {
        if let Some(decision) = self.preempt(cpus) {
            return Some(decision);
        }
        let waiting = self.pop(now_ns);
        if self.config.fifo {
            self.fifo.update(cpus, self.queue.len());
        }
        let waiting = waiting?;
        let target = if self.config.percpu_local {
            Target::Cpu(waiting.task.prev_cpu)
        } else {
            cpus.pick_idle(&waiting.task)
        };
        Some(self.decision(&waiting).to(target))
    }

    /// If the decisions on all waiting tasks are to stand, the policy decides at once, as on urgent
    /// tasks, because BPF uses standing decisions only while the policy holds no task.
    fn is_urgent(&self) -> bool {
        self.queue.has_urgent() || self.queue.all_stand()
    }

    fn vtime_floor(&self) -> u64 {
        self.clock.now_ns.saturating_sub(self.clock.behind_ns)
    }

    fn nr_waiting(&self) -> usize {
        self.queue.len()
    }

    /// 1 in FIFO mode, else 0.
    fn mode(&self) -> u64 {
        self.fifo.is_on.into()
    }
}

#[cfg(test)]
mod tests;
