// SPDX-License-Identifier: GPL-2.0-only
//! The tuner decides, depending on the utilization, how long slices are, and whether tasks of other
//! domains may use the idle CPUs of a domain. Pure functions.

use crate::balancer::DomainMask;

/// Minimum utilization at which all CPUs count as busy. The distance to 1 allows for measurement
/// errors.
const SATURATED: f64 = 0.99999;

/// Slice of tasks that sleep after a short runtime on average, whatever the utilization. If the
/// slices of both options are shorter than this, the longer of these two is used instead. 3 ms is
/// less than the tick period at 250 Hz, so a slice that starts at a tick ends at the next tick.
const SHORT_SLICE_NS: u64 = 3_000_000;

/// The options of the tuner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// Slice while not all CPUs are busy.
    pub(crate) slice_underutil_ns: u64,
    /// Slice while all CPUs are busy.
    pub(crate) slice_overutil_ns: u64,
    /// Utilization below which the idle CPUs of a domain may be used by wakees of other domains; 0:
    /// never, 1: always.
    pub(crate) direct_under: f64,
    /// Utilization below which the idle CPUs of a domain are kicked to steal tasks of other
    /// domains; 0: never, 1: always.
    pub(crate) kick_under: f64,
}

impl Config {
    /// The slice of tasks that sleep after a short runtime on average, ns.
    pub(crate) fn short_slice_ns(&self) -> u64 {
        SHORT_SLICE_NS.min(self.slice_underutil_ns.max(self.slice_overutil_ns))
    }
}

/// The tuner's decisions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tuned {
    pub(crate) slice_ns: u64,
    pub(crate) direct: DomainMask,
    pub(crate) kick: DomainMask,
    /// Whether all CPUs are busy, so that weights determine CPU time.
    pub(crate) is_saturated: bool,
    /// Utilization of the machine, 0 to 1.
    pub(crate) busy: f64,
}

/// Returns the decisions. `domains`: the utilization, 0 to 1, and the number of CPUs of each
/// domain.
pub(crate) fn tune(config: &Config, domains: &[(f64, u32)]) -> Tuned {
    let nr_cpus: f64 = domains.iter().map(|(_, nr_cpus)| f64::from(*nr_cpus)).sum();
    let used: f64 = domains
        .iter()
        .map(|(busy, nr_cpus)| busy * f64::from(*nr_cpus))
        .sum();
    let busy = if nr_cpus > 0.0 { used / nr_cpus } else { 0.0 };
    let is_saturated = busy >= SATURATED;
    let under = |limit: f64| {
        let mut mask = DomainMask::default();
        for (domain, (busy, _)) in domains.iter().enumerate() {
            if limit >= 1.0 || *busy < limit {
                mask.insert(domain);
            }
        }
        mask
    };
    Tuned {
        slice_ns: if is_saturated {
            config.slice_overutil_ns
        } else {
            config.slice_underutil_ns
        },
        direct: under(config.direct_under),
        kick: under(config.kick_under),
        is_saturated,
        busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config {
        slice_underutil_ns: 20,
        slice_overutil_ns: 1,
        direct_under: 0.9,
        kick_under: 1.0,
    };

    fn mask(domains: &[usize]) -> DomainMask {
        let mut mask = DomainMask::default();
        for domain in domains {
            mask.insert(*domain);
        }
        mask
    }

    #[test]
    fn busy_domains_do_not_help() {
        let tuned = tune(&CONFIG, &[(0.95, 4), (0.5, 4), (1.0, 4)]);
        assert_eq!(tuned.direct, mask(&[1]));
        // A limit of 1 means always, a limit of 0 never.
        assert_eq!(tuned.kick, mask(&[0, 1, 2]));
        let never = Config {
            direct_under: 0.0,
            kick_under: 0.0,
            ..CONFIG
        };
        let tuned = tune(&never, &[(0.0, 4)]);
        assert_eq!((tuned.direct, tuned.kick), (mask(&[]), mask(&[])));
    }

    #[test]
    fn slices_are_short_while_all_cpus_are_busy() {
        assert_eq!(tune(&CONFIG, &[(1.0, 2), (0.99, 6)]).slice_ns, 20);
        let tuned = tune(&CONFIG, &[(1.0, 2), (1.0, 6)]);
        assert_eq!((tuned.slice_ns, tuned.is_saturated), (1, true));
    }

    #[test]
    fn short_slice_is_no_longer_than_both_options() {
        let with = |under_ns, over_ns| Config {
            slice_underutil_ns: under_ns,
            slice_overutil_ns: over_ns,
            ..CONFIG
        };
        assert_eq!(with(20_000_000, 1_000_000).short_slice_ns(), 3_000_000);
        assert_eq!(with(100_000, 5_000_000).short_slice_ns(), 3_000_000);
        assert_eq!(with(500_000, 100_000).short_slice_ns(), 500_000);
    }

    #[test]
    fn machine_without_cpus_is_no_reason_to_panic() {
        assert!(!tune(&CONFIG, &[]).is_saturated);
        assert!(tune(&CONFIG, &[(0.0, 0)]).busy.abs() < f64::EPSILON);
    }
}
