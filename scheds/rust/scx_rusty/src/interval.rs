// SPDX-License-Identifier: GPL-2.0-only
//! When to balance loads: once per interval, and earlier while the weight of runnable tasks per CPU
//! is far higher in one domain than in another. The code here reads no clock.

use std::time::Duration;

/// The interval is shortened if the demands (weights of runnable tasks) per CPU of two domains
/// differ by more than this, relative to the mean. The value is about three times the balancer's
/// threshold between nodes, because demands are momentary values.
const UNEVEN: f64 = 0.5;

/// Number of consecutive samples that have to exceed `UNEVEN`.
const NR_SAMPLES: u32 = 2;

/// Maximum number of balancing rounds per interval.
const NR_PER_INTERVAL_MAX: u32 = 8;

/// Early balancing uses at most 1/`COST` of a CPU.
const COST: u32 = 50;

/// The state that is kept between samples.
#[derive(Debug, Default)]
pub(crate) struct BalanceInterval {
    nr_uneven: u32,
}

/// The interval, and the timing of the last balancing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) interval: Duration,
    /// Time since the last balancing.
    pub(crate) elapsed: Duration,
    /// Duration of the last balancing.
    pub(crate) took: Duration,
}

impl BalanceInterval {
    /// Whether to balance now. `demands`: for each domain, the weight of its runnable tasks per
    /// CPU.
    pub(crate) fn is_due(&mut self, timing: Timing, demands: impl Iterator<Item = f64>) -> bool {
        self.nr_uneven = if are_uneven(demands) {
            self.nr_uneven.saturating_add(1)
        } else {
            0
        };
        let minimum = (timing.interval / NR_PER_INTERVAL_MAX).max(timing.took.saturating_mul(COST));
        let is_early = self.nr_uneven >= NR_SAMPLES && timing.elapsed >= minimum;
        is_early || timing.elapsed >= timing.interval
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
    nr > 1.0 && most - least > UNEVEN * sum / nr
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(2);

    fn timing(elapsed_ms: u64, took_ms: u64) -> Timing {
        Timing {
            interval: INTERVAL,
            elapsed: Duration::from_millis(elapsed_ms),
            took: Duration::from_millis(took_ms),
        }
    }

    #[test]
    fn even_demands_are_balanced_at_each_interval() {
        let mut interval = BalanceInterval::default();
        for elapsed_ms in 0..2000 {
            let demands = [100.0, 130.0].into_iter();
            assert!(
                !interval.is_due(timing(elapsed_ms, 0), demands),
                "{elapsed_ms}"
            );
        }
        assert!(interval.is_due(timing(2000, 0), [100.0, 130.0].into_iter()));
    }

    #[test]
    fn uneven_demands_shorten_the_interval_but_not_for_a_moment() {
        let mut interval = BalanceInterval::default();
        let uneven = || [300.0, 100.0].into_iter();
        assert!(!interval.is_due(timing(300, 0), uneven()));
        assert!(!interval.is_due(timing(400, 0), [100.0, 100.0].into_iter()));
        assert!(!interval.is_due(timing(500, 0), uneven()));
        assert!(interval.is_due(timing(600, 0), uneven()));
        // The next early balancing has to wait for an eighth of the interval.
        assert!(!interval.is_due(timing(100, 0), uneven()));
        assert!(interval.is_due(timing(250, 0), uneven()));
    }

    #[test]
    fn early_balancing_costs_little_and_the_interval_holds() {
        let mut interval = BalanceInterval::default();
        let uneven = || [300.0, 0.0].into_iter();
        for elapsed_ms in [300, 600, 1400] {
            assert!(!interval.is_due(timing(elapsed_ms, 30), uneven()));
        }
        assert!(interval.is_due(timing(1500, 30), uneven()));
        assert!(interval.is_due(timing(2000, 90), uneven()));
    }

    #[test]
    fn one_domain_and_an_idle_machine_are_even() {
        let mut interval = BalanceInterval::default();
        for demands in [vec![], vec![500.0], vec![0.0, 0.0]] {
            for _ in 0..5 {
                assert!(!interval.is_due(timing(1999, 0), demands.iter().copied()));
            }
        }
    }
}
