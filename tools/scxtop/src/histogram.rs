// SPDX-License-Identifier: GPL-2.0-only
//! Histograms of latencies, as the BPF side counts them (`bpf/histogram.h`): four buckets for each
//! power of two, from 1 us on.

use serde::{Deserialize, Serialize};

use crate::bpf;

/// Number of buckets.
pub(crate) const BUCKETS: usize = bpf::TOP_BUCKETS as usize;

/// A histogram of latencies, and its percentiles.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Latency {
    /// Number of values.
    pub count: u64,
    /// Upper limits of the buckets in which the percentiles are, ns; 0 without values.
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
    /// Non-empty buckets: index and count, ascending.
    pub buckets: Vec<(u8, u64)>,
}

impl Latency {
    /// The histogram with these counts, one for each bucket.
    pub(crate) fn of(counts: &[u64]) -> Self {
        let buckets: Vec<(u8, u64)> = (0u8..)
            .zip(counts)
            .filter(|(_, &count)| count > 0)
            .map(|(index, &count)| (index, count))
            .collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let mut latency = Self {
            count,
            buckets,
            ..Self::default()
        };
        latency.p50_ns = latency.percentile_ns(50);
        latency.p90_ns = latency.percentile_ns(90);
        latency.p99_ns = latency.percentile_ns(99);
        latency.max_ns = latency.percentile_ns(100);
        latency
    }

    /// The sum of the histograms of several CPUs.
    pub(crate) fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut counts = [0; BUCKETS];
        for (index, count) in parts.flat_map(|part| &part.buckets) {
            counts[usize::from(*index)] += count;
        }
        Self::of(&counts)
    }

    /// The upper limit, ns, of the bucket that contains the percentile `percent`; 0 without values.
    pub(crate) fn percentile_ns(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for &(index, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return upper_ns(index);
            }
        }
        0
    }
}

/// The upper limit of a bucket, ns, exclusive. The last bucket also has all larger values.
pub(crate) fn upper_ns(index: u8) -> u64 {
    let index = u64::from(index) + 1;
    (4 + index % 4) << (index / 4) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_by_quarters() {
        assert_eq!(upper_ns(0), 1280);
        assert_eq!(upper_ns(3), 2048);
        assert_eq!(upper_ns(4), 2560);
        assert!((0..u8::try_from(BUCKETS).unwrap() - 1).all(|i| upper_ns(i) < upper_ns(i + 1)));
    }

    #[test]
    fn percentiles_are_upper_limits() {
        let mut counts = vec![0; BUCKETS];
        counts[3] = 98;
        counts[7] = 1;
        counts[11] = 1;
        let latency = Latency::of(&counts);
        assert_eq!(latency.count, 100);
        assert_eq!((latency.p50_ns, latency.p90_ns), (2048, 2048));
        assert_eq!((latency.p99_ns, latency.max_ns), (4096, 8192));
        assert_eq!(Latency::of(&[]), Latency::default());
    }
}
