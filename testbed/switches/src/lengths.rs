// SPDX-License-Identifier: GPL-2.0-only
//! Distributions of run lengths.

use std::collections::BTreeMap;

/// Number of high bits of a length that are kept. With 8, the rounding error is below one percent.
const KEPT_BITS: u32 = 8;

/// A distribution of run lengths. It takes little memory for a thread with few runs, which is the
/// usual case, and bounded memory for any number of runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    /// The number of runs for each rounded length in ns.
    counts: BTreeMap<u64, u64>,
    count: u64,
    max_ns: u64,
}

impl Lengths {
    /// Adds a length.
    pub(crate) fn record(&mut self, ns: u64) {
        *self.counts.entry(rounded_up(ns)).or_default() += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// The longest length, ns, not rounded. `None` without lengths.
    pub(crate) fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The nearest-rank percentile, ns, for `percent` from 1 to 100. It is rounded up by less than
    /// one percent, but not above the longest length. `None` without lengths.
    pub(crate) fn percentile_ns(&self, percent: u64) -> Option<u64> {
        let rank = percent.saturating_mul(self.count).div_ceil(100);
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, &count)| {
            seen += count;
            seen >= rank
        });
        found.map(|(&ns, _)| ns.min(self.max_ns))
    }
}

/// The largest number that has as many bits as `ns`, and the same [`KEPT_BITS`] highest bits.
fn rounded_up(ns: u64) -> u64 {
    let bits = u64::BITS - ns.leading_zeros();
    let dropped = bits.saturating_sub(KEPT_BITS);
    ns | ((1 << dropped) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn lengths(samples_ns: &[u64]) -> Lengths {
        let mut lengths = Lengths::default();
        for &ns in samples_ns {
            lengths.record(ns);
        }
        lengths
    }

    /// The nearest-rank percentile, computed naively.
    fn exact_ns(samples_ns: &[u64], percent: u64) -> u64 {
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable();
        let percent = usize::try_from(percent).unwrap();
        sorted[(percent * sorted.len()).div_ceil(100) - 1]
    }

    #[test]
    fn empty_distribution_has_no_figures() {
        assert_eq!(lengths(&[]).max_ns(), None);
        assert_eq!(lengths(&[]).percentile_ns(50), None);
    }

    #[test]
    fn single_length_is_every_figure() {
        for ns in [0, 1, 123_456_789, u64::MAX] {
            let one = lengths(&[ns]);
            assert_eq!(one.max_ns(), Some(ns));
            assert_eq!(one.percentile_ns(1), Some(ns));
            assert_eq!(one.percentile_ns(100), Some(ns));
        }
    }

    #[test]
    fn small_numbers_are_exact() {
        let hundred = lengths(&(1..=100).collect::<Vec<_>>());
        for percent in [1, 50, 90, 100] {
            assert_eq!(hundred.percentile_ns(percent), Some(percent));
        }
    }

    proptest! {
        #[test]
        fn percentiles_are_exact_to_one_percent(
            samples_ns in vec(0..1u64 << 50, 1..200),
            percent in 1..=100u64,
        ) {
            let exact = exact_ns(&samples_ns, percent);
            let got = lengths(&samples_ns).percentile_ns(percent).unwrap();
            prop_assert!(got >= exact, "{got} < {exact}");
            prop_assert!(got - exact <= exact / 100, "{got} > {exact}");
        }

        #[test]
        fn figures_are_in_order(samples_ns in vec(any::<u64>(), 1..200)) {
            let all = lengths(&samples_ns);
            let figures = [50, 90, 100].map(|percent| all.percentile_ns(percent));
            prop_assert!(figures.is_sorted());
            prop_assert_eq!(figures[2], all.max_ns());
            prop_assert_eq!(all.max_ns(), samples_ns.iter().max().copied());
        }

        #[test]
        fn distribution_stays_small(samples_ns in vec(1000..10_000_000u64, 5000)) {
            // 128 steps in each of the 13 octaves from 2^10 to 2^23, and a few below and above.
            prop_assert!(lengths(&samples_ns).counts.len() <= 14 * 128);
        }
    }
}
