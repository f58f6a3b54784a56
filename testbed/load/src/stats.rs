//! Samples and their statistics.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Maximum of the histogram, ns, which is an hour. Longer latencies are counted as an hour.
const MAX_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// A distribution of latencies. Its size in memory does not depend on the number of samples.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    max: Duration,
}

impl Latencies {
    /// An empty distribution.
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_NS, DIGITS);
        Self {
            histogram: histogram.expect("the bounds are valid constants"),
            max: Duration::ZERO,
        }
    }

    /// Adds a sample.
    pub(crate) fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(ns);
        self.max = self.max.max(latency);
    }

    /// The samples of all `parts` together.
    pub(crate) fn merged<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::new();
        for part in parts {
            all.histogram += &part.histogram;
            all.max = all.max.max(part.max);
        }
        all
    }

    /// The number of samples.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The longest latency, not rounded. `None` without samples.
    pub(crate) fn max(&self) -> Option<Duration> {
        (self.count() > 0).then_some(self.max)
    }

    /// The nearest-rank percentile, for `percent` from 1 to 100. It is rounded up by at most a
    /// thousandth, but not above the longest latency. `None` without samples.
    pub(crate) fn percentile(&self, percent: u64) -> Option<Duration> {
        let max = self.max()?;
        let rank = percent.saturating_mul(self.count()).div_ceil(100);
        // The histogram rounds a quantile up to the next rank. Half a rank less leaves a margin for
        // floating-point errors.
        let quantile = (to_f64(rank) - 0.5) / to_f64(self.count());
        let ns = self.histogram.value_at_quantile(quantile);
        Some(Duration::from_nanos(ns).min(max))
    }
}

/// A count as a floating point number: exact up to 2^53.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// Minimum, mean and maximum of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of `figures`; `None` if there are none.
    pub(crate) fn of(figures: &[f64]) -> Option<Self> {
        let count = u32::try_from(figures.len()).ok().filter(|&n| n > 0)?;
        Some(Self {
            min: figures.iter().copied().fold(f64::INFINITY, f64::min),
            mean: figures.iter().sum::<f64>() / f64::from(count),
            max: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn latencies(samples_ns: &[u64]) -> Latencies {
        let mut latencies = Latencies::new();
        for &ns in samples_ns {
            latencies.record(Duration::from_nanos(ns));
        }
        latencies
    }

    /// The nearest-rank percentile, computed naively.
    fn exact_percentile_ns(samples_ns: &[u64], percent: u64) -> u64 {
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable();
        let percent = usize::try_from(percent).unwrap();
        sorted[(percent * sorted.len()).div_ceil(100) - 1]
    }

    #[test]
    fn empty_distribution_has_no_figures() {
        let none = latencies(&[]);
        assert_eq!(none.count(), 0);
        assert_eq!(none.max(), None);
        assert_eq!(none.percentile(50), None);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn single_sample_is_every_percentile() {
        let one = latencies(&[123_456_789]);
        let same = Some(Duration::from_nanos(123_456_789));
        for percent in [1, 50, 99, 100] {
            assert_eq!(one.percentile(percent), same, "{percent}");
        }
        assert_eq!(one.max(), same);
    }

    #[test]
    fn small_numbers_are_exact() {
        let hundred = latencies(&(1..=100).collect::<Vec<_>>());
        for (percent, want_ns) in [(50, 50), (99, 99), (100, 100)] {
            let want = Some(Duration::from_nanos(want_ns));
            assert_eq!(hundred.percentile(percent), want, "{percent}");
        }
    }

    #[test]
    fn latencies_beyond_the_range_count_as_the_longest() {
        let mut day = Latencies::new();
        day.record(Duration::from_secs(86_400));
        day.record(Duration::MAX);
        assert_eq!(day.count(), 2);
        assert_eq!(day.max(), Some(Duration::MAX));
        assert!(day.percentile(99).unwrap() >= Duration::from_nanos(MAX_NS));
    }

    #[test]
    fn spread_of_figures() {
        let spread = Spread::of(&[2.0, 1.0, 6.0]).unwrap();
        let want = Spread {
            min: 1.0,
            mean: 3.0,
            max: 6.0,
        };
        assert_eq!(spread, want);
    }

    proptest! {
        #[test]
        fn percentiles_are_exact_to_a_thousandth(
            samples_ns in vec(0..MAX_NS, 1..200),
            percent in 1..=100u64,
        ) {
            let exact_ns = exact_percentile_ns(&samples_ns, percent);
            let got = latencies(&samples_ns).percentile(percent).unwrap();
            let got_ns = u64::try_from(got.as_nanos()).unwrap();
            prop_assert!(got_ns >= exact_ns, "{got_ns} < {exact_ns}");
            prop_assert!(got_ns - exact_ns <= exact_ns / 1000, "{got_ns} > {exact_ns}");
        }

        #[test]
        fn percentiles_rise_to_the_longest(samples_ns in vec(0..MAX_NS, 1..200)) {
            let all = latencies(&samples_ns);
            let (p50, p99) = (all.percentile(50).unwrap(), all.percentile(99).unwrap());
            prop_assert!(p50 <= p99 && p99 <= all.max().unwrap());
            let max_ns = *samples_ns.iter().max().unwrap();
            prop_assert_eq!(all.max(), Some(Duration::from_nanos(max_ns)));
        }

        #[test]
        fn merging_is_recording_together(
            a in vec(0..MAX_NS, 0..100),
            b in vec(0..MAX_NS, 0..100),
        ) {
            let merged = Latencies::merged([&latencies(&a), &latencies(&b)]);
            let together = latencies(&[a, b].concat());
            prop_assert_eq!(merged.histogram, together.histogram);
            prop_assert_eq!(merged.max, together.max);
        }

        #[test]
        fn spreads_are_in_order(figures in vec(0.0..1e6, 1..50)) {
            let Spread { min, mean, max } = Spread::of(&figures).unwrap();
            prop_assert!(min <= mean * (1.0 + 1e-9) && mean <= max * (1.0 + 1e-9));
            prop_assert!(figures.contains(&min) && figures.contains(&max));
        }
    }
}
