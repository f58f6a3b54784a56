// SPDX-License-Identifier: GPL-2.0-only
//! Rates and percentages of an interval.

/// Change per second. 0 for an empty interval.
#[allow(clippy::cast_precision_loss, reason = "for display")]
pub(super) fn per_second(change: u64, interval_ns: u64) -> f64 {
    if interval_ns == 0 {
        return 0.0;
    }
    change as f64 * 1e9 / interval_ns as f64
}

/// A time in percent of the interval. 0 for an empty interval.
#[allow(clippy::cast_precision_loss, reason = "for display")]
pub(super) fn percent(time_ns: u64, interval_ns: u64) -> f64 {
    if interval_ns == 0 {
        return 0.0;
    }
    time_ns as f64 * 100.0 / interval_ns as f64
}

/// Changes of counters that may wrap around. Without `before`, the counters were 0.
pub(super) fn changes(now: &[u32], before: Option<&[u32]>) -> Vec<u64> {
    let before = before.unwrap_or(&[]).iter().chain(std::iter::repeat(&0));
    now.iter()
        .zip(before)
        .map(|(now, before)| now.wrapping_sub(*before).into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_an_interval() {
        assert!((per_second(5, 500_000_000) - 10.0).abs() < 1e-9);
        assert!((percent(250, 1000) - 25.0).abs() < 1e-9);
        assert!(per_second(5, 0) == 0.0 && percent(5, 0) == 0.0);
        assert_eq!(changes(&[5, 1], Some(&[3, u32::MAX])), [2, 2]);
        assert_eq!(changes(&[5, 1], None), [5, 1]);
    }
}
