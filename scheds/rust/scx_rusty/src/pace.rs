// SPDX-License-Identifier: GPL-2.0-only
//! When to balance loads: at each interval, and earlier while far more tasks wait in one domain than
//! in another. Pure: times and numbers in, a decision out.

use std::time::Duration;

/// Difference between the demands per CPU of two domains, relative to the mean, that shortens the
/// interval: three times the threshold between nodes, because it is a momentary value.
const CROWDED: f64 = 0.5;

/// How many consecutive samples have to exceed it.
const NR_SAMPLES: u32 = 2;

/// How often loads are balanced in an interval at most.
const NR_PER_INTERVAL: u32 = 8;

/// Balancing early uses at most this fraction of a CPU: one of `COST`.
const COST: u32 = 50;

/// State between samples.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    nr_crowded: u32,
}

/// The interval, and the timing of the last balancing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since {
    pub(crate) interval: Duration,
    /// Time since the last balancing.
    pub(crate) elapsed: Duration,
    /// Duration of the last balancing.
    pub(crate) took: Duration,
}

impl Pace {
    /// `demands`: for each domain, the weight of its runnable tasks per CPU.
    pub(crate) fn is_due(&mut self, since: Since, demands: impl Iterator<Item = f64>) -> bool {
        self.nr_crowded = if are_uneven(demands) {
            self.nr_crowded.saturating_add(1)
        } else {
            0
        };
        let soonest = (since.interval / NR_PER_INTERVAL).max(since.took.saturating_mul(COST));
        let hurries = self.nr_crowded >= NR_SAMPLES && since.elapsed >= soonest;
        hurries || since.elapsed >= since.interval
    }
}

fn are_uneven(demands: impl Iterator<Item = f64>) -> bool {
    let (mut least, mut most, mut sum, mut nr) = (f64::INFINITY, 0.0_f64, 0.0, 0.0);
    for demand in demands {
        least = least.min(demand);
        most = most.max(demand);
        sum += demand;
        nr += 1.0;
    }
    nr > 1.0 && most - least > CROWDED * sum / nr
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(2);

    fn since(elapsed_ms: u64, took_ms: u64) -> Since {
        Since {
            interval: INTERVAL,
            elapsed: Duration::from_millis(elapsed_ms),
            took: Duration::from_millis(took_ms),
        }
    }

    #[test]
    fn even_demands_are_balanced_at_each_interval() {
        let mut pace = Pace::default();
        for elapsed_ms in 0..2000 {
            let demands = [100.0, 130.0].into_iter();
            assert!(!pace.is_due(since(elapsed_ms, 0), demands), "{elapsed_ms}");
        }
        assert!(pace.is_due(since(2000, 0), [100.0, 130.0].into_iter()));
    }

    #[test]
    fn crowds_are_helped_soon_but_not_for_a_moment() {
        let mut pace = Pace::default();
        let crowded = || [300.0, 100.0].into_iter();
        assert!(!pace.is_due(since(300, 0), crowded()));
        assert!(!pace.is_due(since(400, 0), [100.0, 100.0].into_iter()));
        assert!(!pace.is_due(since(500, 0), crowded()));
        assert!(pace.is_due(since(600, 0), crowded()));
        // Not again right away.
        assert!(!pace.is_due(since(100, 0), crowded()));
        assert!(pace.is_due(since(250, 0), crowded()));
    }

    #[test]
    fn hurry_costs_little_and_the_interval_holds() {
        let mut pace = Pace::default();
        let crowded = || [300.0, 0.0].into_iter();
        for elapsed_ms in [300, 600, 1400] {
            assert!(!pace.is_due(since(elapsed_ms, 30), crowded()));
        }
        assert!(pace.is_due(since(1500, 30), crowded()));
        assert!(pace.is_due(since(2000, 90), crowded()));
    }

    #[test]
    fn one_domain_and_an_idle_machine_are_even() {
        let mut pace = Pace::default();
        for demands in [vec![], vec![500.0], vec![0.0, 0.0]] {
            for _ in 0..5 {
                assert!(!pace.is_due(since(1999, 0), demands.iter().copied()));
            }
        }
    }
}
