// SPDX-License-Identifier: GPL-2.0-only
//! Per-task history. Between decisions, it is kept in the task context ([`TaskCtx`]), which is
//! freed with the task.

use scx_rustland_core::{QueuedTask, TaskCtx, WEIGHT_DFL};

/// Upper bound of weights. Without it, interactive tasks of nice 0 would not get the little CPU
/// time that they need while a task of nice -20 computes.
pub(crate) const WEIGHT_MAX: u32 = 1000;

/// Minimum length of a sample of the sleep rate, ns. A sample ends at the first enqueue after this
/// time.
const SAMPLE_NS: u64 = 250_000_000;

/// Minimum number of sleeps per second of an interactive task. Video and audio players sleep at
/// least 60 times per second. A compiler that sometimes waits for the disk stays below the minimum.
const INTERACTIVE_PER_S: u32 = 10;

/// Maximum average CPU time per sleep, ns, of a new task that counts as interactive. A new task is
/// judged by this average, because its sleep rate is unknown until its first sample with a sleep
/// ends. The value is an eighth of a frame at 60 Hz; starting a thread takes less.
pub(crate) const BRIEF_NS: u64 = 2_000_000;

/// The value of [`History::sleeps`] for one sleep per second. It is above 1, so that averages of
/// small numbers are not rounded to 0.
const RATE_UNIT: u32 = 256;

/// [`INTERACTIVE_PER_S`] in the unit of [`History::sleeps`].
const INTERACTIVE: u32 = INTERACTIVE_PER_S * RATE_UNIT;

const NS_PER_S: u64 = 1_000_000_000;

/// The machine's virtual time, and how far the virtual time of a task may deviate from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Virtual time, ns: the CPU time of a task of weight 100 that always got its share.
    pub(crate) now_ns: u64,
    /// Maximum lag of a task after a sleep, ns: the credit that a task may accumulate by sleeping.
    pub(crate) behind_ns: u64,
    /// Maximum lead of a task, ns, so that a task that was alone on a CPU need not wait for long
    /// when other tasks come. It is also the maximum lag of a task that has not slept.
    pub(crate) ahead_ns: u64,
    /// Minimum lag of a new task at its first wakeup, ns, if it has computed only briefly; at most
    /// `behind_ns`. Without it, a task that starts together with hogs would wait for the slices of
    /// those hogs that have not run yet, because it has used more CPU time than these.
    pub(crate) first_lag_ns: u64,
}

/// The history of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct History {
    /// Virtual time, ns: CPU time scaled by 100 / weight, kept within the limits of [`Clock`].
    pub(crate) vruntime_ns: u64,
    /// The CPU time that has been charged to `vruntime_ns`, ns.
    charged_ns: u64,
    /// Start of the current sample, ns.
    sampled_ns: u64,
    /// The low half of the task's `nvcsw` at `sampled_ns`. This half may wrap around.
    nvcsw: u32,
    /// Average of sleeps per second, in units of 1/[`RATE_UNIT`].
    sleeps: u32,
    /// Whether the task sleeps often, by the average or in the current sample, or is new and has
    /// computed only briefly, on average, before its sleeps.
    pub(crate) is_interactive: bool,
}

impl History {
    /// The history of a task that is enqueued at `now_ns`. Charges the CPU time that the history in
    /// the task context does not include yet.
    pub(crate) fn of(task: &QueuedTask, clock: &Clock, now_ns: u64) -> Self {
        let mut history = Self::from_ctx(task.ctx);
        // A task without a decision has its parent's context, of which only the sleep rate is kept.
        // The context is empty if the parent has got no decision either, or if the task is older
        // than the scheduler. The task may already have run without a decision. That CPU time is
        // not charged.
        let is_empty = history.sampled_ns == 0;
        if is_empty || task.vtime == 0 {
            history.vruntime_ns = clock.now_ns;
            history.charged_ns = task.sum_exec_ns;
            history.begin_sample(task, now_ns);
            if !is_empty {
                // The task was forked under this scheduler: all of its sleeps are in its first
                // sample.
                history.nvcsw = 0;
            }
        }
        history.charge(task, clock);
        if task.nvcsw == 1 && is_brief(task) {
            let least_lagging = clock.now_ns.saturating_sub(clock.first_lag_ns);
            history.vruntime_ns = history.vruntime_ns.min(least_lagging);
        }
        history.sample(task, now_ns);
        history
    }

    fn charge(&mut self, task: &QueuedTask, clock: &Clock) {
        let used_ns = task.sum_exec_ns.saturating_sub(self.charged_ns);
        self.charged_ns = task.sum_exec_ns;
        // A task that has not slept keeps its lag up to `ahead_ns`, because it has lagged by
        // waiting. A task that has slept keeps at most `behind_ns`.
        let has_slept = task.exec_ns == 0;
        let lag_max_ns = if has_slept {
            clock.behind_ns
        } else {
            clock.ahead_ns
        };
        let least = clock.now_ns.saturating_sub(lag_max_ns);
        let most = clock.now_ns.saturating_add(clock.ahead_ns);
        // The CPU time was used before the sleep, so it is charged before the lag is limited.
        self.vruntime_ns = self
            .vruntime_ns
            .saturating_add(scale(used_ns, task.weight))
            .max(least)
            .min(most);
    }

    fn begin_sample(&mut self, task: &QueuedTask, now_ns: u64) {
        self.sampled_ns = now_ns;
        self.nvcsw = low_half(task.nvcsw);
    }

    /// Updates the average of sleeps and `is_interactive`. A finished sample counts as much as all
    /// earlier samples together. If the current sample already has enough sleeps for an interactive
    /// task, the sample counts before its end, so that the task and its children are recognized
    /// early. The first sleeps of a new task are too few for that, so the task counts as
    /// interactive if it has computed only briefly. Its children do not inherit this.
    fn sample(&mut self, task: &QueuedTask, now_ns: u64) {
        let is_new = self.nvcsw == 0 && task.nvcsw > 0;
        let passed_ns = now_ns.saturating_sub(self.sampled_ns);
        let slept = u64::from(low_half(task.nvcsw).wrapping_sub(self.nvcsw));
        if passed_ns >= SAMPLE_NS {
            let per_s = u128::from(slept * u64::from(RATE_UNIT)) * u128::from(NS_PER_S);
            let rate = u32::try_from(per_s / u128::from(passed_ns)).unwrap_or(u32::MAX);
            self.sleeps = self.sleeps.midpoint(rate);
            self.begin_sample(task, now_ns);
        } else if slept * NS_PER_S >= u64::from(INTERACTIVE_PER_S) * SAMPLE_NS {
            self.sleeps = self.sleeps.max(INTERACTIVE);
        }
        self.is_interactive = self.sleeps >= INTERACTIVE || (is_new && is_brief(task));
    }

    /// The deadline, in virtual time: the virtual time of the task plus its weighted CPU time since
    /// the last sleep, of which at most `max_ns` count.
    pub(crate) fn deadline_ns(&self, task: &QueuedTask, max_ns: u64) -> u64 {
        let burst_ns = scale(task.exec_ns, task.weight).min(max_ns);
        self.vruntime_ns.saturating_add(burst_ns)
    }

    fn from_ctx(ctx: TaskCtx) -> Self {
        let [vruntime_ns, charged_ns, sampled_ns, habit] = ctx;
        Self {
            vruntime_ns,
            charged_ns,
            sampled_ns,
            nvcsw: low_half(habit),
            sleeps: low_half(habit >> 32),
            is_interactive: false,
        }
    }

    pub(crate) fn to_ctx(self) -> TaskCtx {
        let habit = u64::from(self.sleeps) << 32 | u64::from(self.nvcsw);
        [self.vruntime_ns, self.charged_ns, self.sampled_ns, habit]
    }
}

/// Whether a task has computed only briefly, on average, before its sleeps.
fn is_brief(task: &QueuedTask) -> bool {
    task.sum_exec_ns <= task.nvcsw.saturating_mul(BRIEF_NS)
}

/// Converts CPU time to virtual time.
fn scale(ns: u64, weight: u32) -> u64 {
    let weight = u64::from(weight.clamp(1, WEIGHT_MAX));
    ns.saturating_mul(u64::from(WEIGHT_DFL)) / weight
}

fn low_half(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const CLOCK: Clock = Clock {
        now_ns: 1000 * MS,
        behind_ns: 5 * MS,
        ahead_ns: 500 * MS,
        first_lag_ns: 3 * MS,
    };

    /// A task that was enqueued before, so that it is not treated as new.
    fn known(weight: u32) -> QueuedTask {
        let mut task = QueuedTask::new(1);
        task.weight = weight;
        task.ctx = History::of(&task, &CLOCK, NS_PER_S).to_ctx();
        task.vtime = CLOCK.now_ns;
        task
    }

    #[test]
    fn time_before_a_sleep_is_charged_before_the_lag_is_cut() {
        let mut task = known(100);
        let vruntime_ns = History::from_ctx(task.ctx).vruntime_ns;
        task.sum_exec_ns = 40 * MS;
        let later = Clock {
            now_ns: CLOCK.now_ns + 40 * MS,
            ..CLOCK
        };
        // A task that used its share in many short runs is neither behind nor ahead.
        let history = History::of(&task, &later, 2 * NS_PER_S);
        assert_eq!(history.vruntime_ns, vruntime_ns + 40 * MS);
        // A task that used nothing is behind by the limit.
        task.sum_exec_ns = 0;
        let history = History::of(&task, &later, 2 * NS_PER_S);
        assert_eq!(history.vruntime_ns, later.now_ns - later.behind_ns);
    }

    #[test]
    fn ctx_is_the_history() {
        let history = History {
            vruntime_ns: 1,
            charged_ns: 2,
            sampled_ns: 3,
            nvcsw: u32::MAX,
            sleeps: 5,
            is_interactive: false,
        };
        assert_eq!(History::from_ctx(history.to_ctx()), history);
    }

    #[test]
    fn time_is_charged_once_and_by_weight() {
        for (weight, ms) in [(100, 10), (50, 20), (1000, 1), (10_000, 1), (1, 500)] {
            let mut task = known(weight);
            task.sum_exec_ns = 10 * MS;
            let history = History::of(&task, &CLOCK, NS_PER_S);
            assert_eq!(history.vruntime_ns - CLOCK.now_ns, ms * MS, "{weight}");
            task.ctx = history.to_ctx();
            assert_eq!(History::of(&task, &CLOCK, NS_PER_S), history);
        }
    }

    #[test]
    fn sleep_is_not_saved_up() {
        let task = known(100);
        let later = Clock {
            now_ns: 5000 * MS,
            ..CLOCK
        };
        let history = History::of(&task, &later, 9 * NS_PER_S);
        assert_eq!(history.vruntime_ns, later.now_ns - later.behind_ns);
    }

    #[test]
    fn lag_of_a_task_that_waited_is_kept() {
        let mut task = known(100);
        task.exec_ns = 2 * MS;
        let later = Clock {
            now_ns: 1100 * MS,
            ..CLOCK
        };
        let history = History::of(&task, &later, 9 * NS_PER_S);
        assert_eq!(history.vruntime_ns, CLOCK.now_ns);
        // The lag is bounded, though.
        let much_later = Clock {
            now_ns: 5000 * MS,
            ..CLOCK
        };
        let history = History::of(&task, &much_later, 9 * NS_PER_S);
        assert_eq!(history.vruntime_ns, much_later.now_ns - CLOCK.ahead_ns);
    }

    #[test]
    fn new_thread_has_the_habit_of_its_parent_and_nothing_else() {
        let mut parent = known(100);
        parent.sum_exec_ns = 300 * MS;
        parent.nvcsw = 100;
        let ctx = History::of(&parent, &CLOCK, 2 * NS_PER_S).to_ctx();
        let mut child = QueuedTask::new(2);
        child.ctx = ctx;
        let history = History::of(&child, &CLOCK, 3 * NS_PER_S);
        assert_eq!(history.vruntime_ns, CLOCK.now_ns);
        assert_eq!((history.charged_ns, history.nvcsw), (0, 0));
        assert!(history.is_interactive);
    }

    #[test]
    fn new_thread_may_run_before_its_first_decision() {
        let mut parent = known(100);
        parent.sum_exec_ns = 300 * MS;
        parent.nvcsw = 7;
        let mut child = QueuedTask::new(2);
        child.ctx = History::of(&parent, &CLOCK, 9 * NS_PER_S).to_ctx();
        child.start_ns = 9 * NS_PER_S;
        child.sum_exec_ns = 30 * MS;
        let history = History::of(&child, &CLOCK, 10 * NS_PER_S);
        assert_eq!(history.vruntime_ns, CLOCK.now_ns);
        assert!(!history.is_interactive);
        // At its first wakeup, the child still counts as a new task.
        child.nvcsw = 1;
        child.sum_exec_ns = BRIEF_NS;
        assert!(History::of(&child, &CLOCK, 10 * NS_PER_S).is_interactive);
    }

    #[test]
    fn habit_of_a_young_parent_is_inherited_too() {
        let mut parent = known(100);
        parent.nvcsw = 3;
        let mut child = QueuedTask::new(2);
        child.ctx = History::of(&parent, &CLOCK, NS_PER_S + 1).to_ctx();
        assert!(History::of(&child, &CLOCK, NS_PER_S + 2).is_interactive);
    }

    #[test]
    fn few_sleeps_in_a_long_time_are_not_interactive() {
        let mut task = known(100);
        task.nvcsw = 3;
        task.sum_exec_ns = 10 * MS;
        assert!(!History::of(&task, &CLOCK, 2 * NS_PER_S).is_interactive);
    }

    #[test]
    fn habit_is_learned_within_a_sample_and_forgotten_over_some() {
        let mut task = known(100);
        task.sum_exec_ns = 10 * MS;
        task.nvcsw = 2;
        assert!(!History::of(&task, &CLOCK, NS_PER_S + 1).is_interactive);
        task.nvcsw = 3;
        assert!(History::of(&task, &CLOCK, NS_PER_S + 1).is_interactive);
        let mut now_ns = NS_PER_S + SAMPLE_NS;
        for expected in [10, 10, 10, 10] {
            let history = History::of(&task, &CLOCK, now_ns);
            task.ctx = history.to_ctx();
            task.nvcsw += expected;
            now_ns += SAMPLE_NS;
        }
        let mut samples = 0;
        while History::of(&task, &CLOCK, now_ns).is_interactive {
            task.ctx = History::of(&task, &CLOCK, now_ns).to_ctx();
            now_ns += SAMPLE_NS;
            samples += 1;
        }
        assert!((1..5).contains(&samples), "{samples}");
    }

    #[test]
    fn new_task_is_interactive_as_long_as_it_computes_briefly() {
        let mut task = known(100);
        let is_interactive = |task: &QueuedTask, now_ns| {
            let history = History::of(task, &CLOCK, now_ns);
            (history.is_interactive, history.to_ctx())
        };
        // It has not slept yet.
        assert!(!is_interactive(&task, NS_PER_S + 1).0);
        task.nvcsw = 1;
        task.sum_exec_ns = BRIEF_NS;
        assert!(is_interactive(&task, NS_PER_S + 1).0);
        // The task is also interactive if its first sleep was long.
        let (first, ctx) = is_interactive(&task, 9 * NS_PER_S);
        assert!(first);
        // Afterwards, the rate of its sleeps counts.
        task.ctx = ctx;
        task.nvcsw = 2;
        assert!(!is_interactive(&task, 10 * NS_PER_S).0);
        task.ctx = known(100).ctx;
        task.sum_exec_ns = 2 * BRIEF_NS + 1;
        assert!(!is_interactive(&task, NS_PER_S + 1).0);
    }

    #[test]
    fn new_task_gets_a_lag_at_its_first_wakeup_only() {
        let mut task = known(100);
        task.nvcsw = 1;
        task.sum_exec_ns = MS;
        let history = History::of(&task, &CLOCK, NS_PER_S + 1);
        assert_eq!(history.vruntime_ns, CLOCK.now_ns - CLOCK.first_lag_ns);
        task.ctx = history.to_ctx();
        task.nvcsw = 2;
        task.sum_exec_ns = 4 * MS;
        let history = History::of(&task, &CLOCK, NS_PER_S + 2);
        assert_eq!(history.vruntime_ns, CLOCK.now_ns);
    }

    #[test]
    fn computing_delays_the_deadline_up_to_a_bound() {
        let mut task = known(100);
        let history = History::of(&task, &CLOCK, NS_PER_S);
        let mut late = |exec_ms| {
            task.exec_ns = exec_ms * MS;
            (history.deadline_ns(&task, 500 * MS) - history.vruntime_ns) / MS
        };
        assert_eq!([late(0), late(7), late(700)], [0, 7, 500]);
        assert_eq!(history.deadline_ns(&task, 0), history.vruntime_ns);
    }
}
