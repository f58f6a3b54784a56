//! Threads with a fixed amount of work in each period, to measure deadline misses. Examples are a
//! game that draws frames, and a player that fills an audio buffer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::clock::{be_punctual, monotonic_time, sleep_until, use_cpu};
use crate::control::{Control, Crew};
use crate::stats::Latencies;

/// The work of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// Length of a period.
    pub period: Duration,
    /// CPU time per period.
    pub work: Duration,
}

/// The result of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Time from the start of a period to the end of its work. Skipped periods have none.
    pub done_after: Latencies,
    /// Periods in which no work was completed.
    pub missed: u64,
    /// The longest time between two successive ends of work. Skipped periods may lie in between.
    pub gap_max: Duration,
}

/// Adds `count` threads. Their periods are evenly offset, so that the threads rarely interfere.
///
/// # Errors
/// A thread cannot be created.
pub(crate) fn hire(count: u32, task: Task, control: &Arc<Control>) -> Result<Crew<Outcome>> {
    let mut crew = Crew::new("periodic", control);
    for index in 0..count {
        let offset = task.period * index / count;
        crew.hire(move |control| work(task, offset, control))?;
    }
    Ok(crew)
}

fn work(task: Task, offset: Duration, control: &Control) -> Result<Outcome> {
    be_punctual()?;
    let mut outcome = Outcome {
        done_after: Latencies::new(),
        missed: 0,
        gap_max: Duration::ZERO,
    };
    let mut begin = monotonic_time()? + offset;
    let mut done_before = None;
    while !control.is_stopped() {
        sleep_until(begin)?;
        use_cpu(task.work)?;
        let done = monotonic_time()?;
        outcome.note(task.period, begin, done, done_before);
        done_before = Some(done);
        begin = next_begin(begin, done, task.period);
    }
    Ok(outcome)
}

impl Outcome {
    fn note(
        &mut self,
        period: Duration,
        begin: Duration,
        done: Duration,
        done_before: Option<Duration>,
    ) {
        let took = done.saturating_sub(begin);
        self.done_after.record(took);
        // Each whole period that has passed was missed.
        self.missed += whole(took, period);
        if let Some(before) = done_before {
            self.gap_max = self.gap_max.max(done.saturating_sub(before));
        }
    }
}

/// The start of the next period. Missed periods are skipped.
fn next_begin(begin: Duration, done: Duration, period: Duration) -> Duration {
    let passed = u32::try_from(whole(done.saturating_sub(begin), period)).unwrap_or(u32::MAX);
    begin + period * passed.saturating_add(1)
}

/// The number of whole `period`s in `time`.
fn whole(time: Duration, period: Duration) -> u64 {
    let count = time.as_nanos() / period.as_nanos().max(1);
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(10);

    fn outcome_of(done: &[(u64, u64)]) -> Outcome {
        let mut outcome = Outcome {
            done_after: Latencies::new(),
            missed: 0,
            gap_max: Duration::ZERO,
        };
        let mut before = None;
        for (begin, end) in done {
            let end = Duration::from_millis(*end);
            outcome.note(PERIOD, Duration::from_millis(*begin), end, before);
            before = Some(end);
        }
        outcome
    }

    #[test]
    fn work_within_its_period_is_not_missed() {
        let outcome = outcome_of(&[(0, 1), (10, 19), (20, 21)]);
        assert_eq!(outcome.missed, 0);
        assert_eq!(outcome.done_after.count(), 3);
        assert_eq!(outcome.gap_max, Duration::from_millis(18));
    }

    #[test]
    fn each_period_that_passes_is_missed() {
        assert_eq!(outcome_of(&[(0, 10)]).missed, 1);
        assert_eq!(outcome_of(&[(0, 35)]).missed, 3);
    }

    #[test]
    fn next_period_is_in_the_future() {
        let next = |done| next_begin(PERIOD, Duration::from_millis(done), PERIOD);
        assert_eq!(next(11), PERIOD * 2);
        assert_eq!(next(20), PERIOD * 3);
        assert_eq!(next(35), PERIOD * 4);
    }

    #[test]
    fn threads_work_in_each_period() {
        let control = Arc::new(Control::stopping_after(10));
        let task = Task {
            period: Duration::from_millis(5),
            work: Duration::from_micros(10),
        };
        let start = monotonic_time().unwrap();
        let outcomes = hire(2, task, &control).unwrap().join().unwrap();
        let elapsed = monotonic_time().unwrap() - start;
        for outcome in outcomes {
            assert_eq!(outcome.done_after.count(), 10);
            // The first period begins at once, so there are nine periods before the last.
            let periods = 9 + u32::try_from(outcome.missed).unwrap();
            assert!(elapsed >= task.period * periods, "{outcome:?}");
        }
    }
}
