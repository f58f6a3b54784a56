// SPDX-License-Identifier: GPL-2.0-only
//! Running averages of BPF programs (`<scx/ravg.h>`), read in user space: averages with exponential
//! decay, in which the weight of the past halves in each half-life.

/// Fractional bits of the fixed-point averages, as in the header.
const FRAC_BITS: i32 = 32;

/// `struct scx_ravg` as read from BPF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunningAverage {
    /// The average when the value was set, fixed point.
    pub avg: u64,
    /// The value since then.
    pub val: u64,
    /// When the value was set, ns.
    pub val_at_ns: u64,
}

impl RunningAverage {
    /// The average at `now_ns`, by the clock of the BPF side. A `now_ns` before the last change
    /// counts as the time of that change, which may have happened after the reader took `now_ns`.
    /// With a half-life of 0, the average is the value.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // A relative error of at most 2^-52.
    pub fn read(&self, now_ns: u64, half_life_ns: u64) -> f64 {
        let elapsed_ns = now_ns.saturating_sub(self.val_at_ns);
        let (avg, val) = (self.avg as f64 * 2_f64.powi(-FRAC_BITS), self.val as f64);
        if half_life_ns == 0 {
            return val;
        }
        let nr_half_lives = elapsed_ns as f64 / half_life_ns as f64;
        val + (avg - val) * (-nr_half_lives).exp2()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEC: u64 = 1_000_000_000;

    fn average(avg: u32, val: u64) -> RunningAverage {
        RunningAverage {
            avg: u64::from(avg) << FRAC_BITS,
            val,
            val_at_ns: 5 * SEC,
        }
    }

    #[test]
    fn half_is_left_after_a_half_life() {
        let average = average(8, 0);
        for (now_s, left) in [(5, 8.0), (6, 4.0), (8, 1.0)] {
            assert!((average.read(now_s * SEC, SEC) - left).abs() < 1e-9);
        }
    }

    #[test]
    fn overtaken_reader_sees_the_last_change() {
        assert!((average(3, 7).read(4 * SEC, SEC) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_half_life_there_is_no_past() {
        assert!((average(3, 7).read(5 * SEC, 0) - 7.0).abs() < 1e-9);
    }

    proptest! {
        /// Equal to a sum over many short steps, each with a slightly lower weight than the next.
        #[test]
        fn it_is_the_sum_of_its_moments(
            avg in 0_u32..100,
            val in 0_u64..100,
            elapsed_ms in 1_u64..5000,
            half_life_ms in 50_u64..5000,
        ) {
            let average = average(avg, val);
            let nr_moments = 20_000_u32;
            let moment_ms = elapsed_ms as f64 / f64::from(nr_moments);
            let kept = (-moment_ms / half_life_ms as f64).exp2();
            let step = |sum: f64, _| sum * kept + val as f64 * (1.0 - kept);
            let slow = (0..nr_moments).fold(f64::from(avg), step);
            let now_ns = 5 * SEC + elapsed_ms * 1_000_000;
            let read = average.read(now_ns, half_life_ms * 1_000_000);
            prop_assert!((read - slow).abs() < 1e-6, "{read} {slow}");
        }
    }
}
