//! Threads that alternate between sleep and work, to measure wakeup latency.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::clock::{be_punctual, monotonic_time, sleep_until, use_cpu};
use crate::control::{Control, Crew};
use crate::stats::Latencies;

/// The work of a sleeper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    /// Duration of each sleep.
    pub sleep: Duration,
    /// CPU time between two sleeps.
    pub work: Duration,
}

/// Adds `count` sleepers, each of which returns the latencies of its wakeups.
///
/// # Errors
/// A thread cannot be created.
pub(crate) fn hire(count: u32, rhythm: Rhythm, control: &Arc<Control>) -> Result<Crew<Latencies>> {
    let mut crew = Crew::new("sleeper", control);
    for _ in 0..count {
        crew.hire(move |control| work(rhythm, control))?;
    }
    Ok(crew)
}

fn work(rhythm: Rhythm, control: &Control) -> Result<Latencies> {
    be_punctual()?;
    let mut lateness = Latencies::new();
    while !control.is_stopped() {
        let wake_at = monotonic_time()? + rhythm.sleep;
        sleep_until(wake_at)?;
        lateness.record(monotonic_time()?.saturating_sub(wake_at));
        use_cpu(rhythm.work)?;
    }
    Ok(lateness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wakeup_is_counted() {
        let control = Arc::new(Control::stopping_after(10));
        let rhythm = Rhythm {
            sleep: Duration::from_millis(1),
            work: Duration::ZERO,
        };
        let start = monotonic_time().unwrap();
        let lateness = hire(2, rhythm, &control).unwrap().join().unwrap();
        let elapsed = monotonic_time().unwrap() - start;
        let wakeups: Vec<_> = lateness.iter().map(Latencies::count).collect();
        assert_eq!(wakeups, [10, 10]);
        assert!(elapsed >= rhythm.sleep * 10, "{elapsed:?}");
    }
}
