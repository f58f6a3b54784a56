// SPDX-License-Identifier: GPL-2.0-only
//! The part of each interval in which events are observed. Each observation costs CPU time of the
//! observed tasks, so the window ends after a number of context switches.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::cpus::nr_switches;
use super::programs::Programs;

/// Maximum number of context switches that are observed per second of an interval. A wakeup, an
/// insertion and a switch together cost about 1 us on a fast CPU, so this takes 0.5 % of a CPU.
const SWITCHES_PER_S: f64 = 5000.0;

/// Maximum time between two readings of the number of context switches, because their rate may
/// change.
const CHECK: Duration = Duration::from_millis(50);
/// Minimum time between two readings, because each takes CPU time.
const CHECK_MIN: Duration = Duration::from_millis(2);

/// The window of an interval.
#[derive(Default)]
pub(super) struct Window {
    /// Start of the observed time that is not in `observed` yet; `None` if no events are observed
    /// now.
    since: Option<Instant>,
    /// Time in this interval in which events were observed, without the time after `since`.
    observed: Duration,
    budget: Budget,
}

/// The number of context switches that ends the window, and when that number is read next.
#[derive(Default)]
struct Budget {
    /// The number of context switches since boot at which the window ends.
    end: u64,
    /// The number of context switches at the last reading.
    switches: u64,
    read_at: Option<Instant>,
    /// Time of the next reading; `None` after the window has ended.
    next: Option<Instant>,
}

impl Budget {
    fn new(interval: Duration, switches: u64) -> Self {
        let now = Instant::now();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive"
        )]
        let allowed = (SWITCHES_PER_S * interval.as_secs_f64()) as u64;
        Self {
            end: switches.saturating_add(allowed),
            switches,
            read_at: Some(now),
            next: Some(now + CHECK_MIN),
        }
    }

    /// Takes a reading of the number of context switches. Returns whether the window is over.
    fn is_spent(&mut self, switches: u64) -> bool {
        let now = Instant::now();
        let time = self.read_at.map_or(Duration::ZERO, |at| now - at);
        let wait = wait(self.end, self.switches, switches, time);
        self.next = wait.map(|wait| now + wait);
        self.switches = switches;
        self.read_at = Some(now);
        wait.is_none()
    }
}

/// How long to wait before the number of switches is read again, if it grew from `before` to `now`
/// within `time`. `None` if `end` is reached.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn wait(end: u64, before: u64, now: u64, time: Duration) -> Option<Duration> {
    let left = end.checked_sub(now).filter(|&left| left > 0)?;
    let grown = now.saturating_sub(before).max(1);
    let estimate = time.as_secs_f64() * left as f64 / grown as f64;
    Some(Duration::try_from_secs_f64(estimate).map_or(CHECK, |time| time.clamp(CHECK_MIN, CHECK)))
}

impl Window {
    /// The time until [`Window::step`] has something to do.
    pub(super) fn step_in(&self) -> Duration {
        self.budget.next.map_or(Duration::MAX, |at| {
            at.saturating_duration_since(Instant::now())
        })
    }

    /// Ends the window if its budget is spent.
    pub(super) fn step(&mut self, programs: &mut Programs<'_>) -> Result<()> {
        if !self.step_in().is_zero() || !self.budget.is_spent(nr_switches(programs)?) {
            return Ok(());
        }
        programs.set_observing(false)?;
        self.observed += self
            .since
            .take()
            .map_or(Duration::ZERO, |since| since.elapsed());
        Ok(())
    }

    /// Ends the interval. Returns how long events were observed in it, ns.
    pub(super) fn end_interval(&mut self) -> u64 {
        let now = Instant::now();
        let present = self.since.map_or(Duration::ZERO, |since| now - since);
        self.since = self.since.and(Some(now));
        let observed = std::mem::take(&mut self.observed) + present;
        u64::try_from(observed.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Begins the window of the next interval. A window that has not ended continues.
    pub(super) fn begin(&mut self, programs: &mut Programs<'_>, interval: Duration) -> Result<()> {
        if self.since.is_none() {
            programs.set_observing(true)?;
            self.since = Some(Instant::now());
        }
        self.budget = Budget::new(interval, nr_switches(programs)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn is_read_again_when_the_budget_is_likely_spent() {
        assert_eq!(wait(1000, 0, 100, MS), Some(9 * MS));
        assert_eq!(wait(1000, 100, 900, 8 * MS), Some(CHECK_MIN));
        assert_eq!(wait(1000, 0, 1, MS), Some(CHECK));
        assert_eq!(wait(1000, 0, 0, Duration::MAX), Some(CHECK));
        assert_eq!(wait(1000, 0, 1000, MS), None);
        assert_eq!(wait(1000, 0, 2000, MS), None);
    }

    #[test]
    fn the_budget_grows_with_the_interval() {
        let mut budget = Budget::new(500 * MS, 7);
        assert!(!budget.is_spent(2506));
        assert!(budget.is_spent(2507));
        assert_eq!(budget.next, None);
    }
}
