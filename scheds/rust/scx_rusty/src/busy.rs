// SPDX-License-Identifier: GPL-2.0-only
//! Utilization of each domain's CPUs, computed from the idle times that BPF records (`bpf/busy.h`).
//! Reading them takes no system calls. A CPU that runs tasks of another scheduling class counts as
//! busy.

use crate::domains::Domains;

/// Returns the word of `bpf/busy.h` for a CPU, or `None` if there is none.
pub(crate) type IdleWord<'a> = &'a dyn Fn(usize) -> Option<u64>;

/// Measures the utilization over consecutive intervals.
#[derive(Debug)]
pub(crate) struct Busy {
    /// The CPUs of each domain.
    cpus: Vec<Vec<usize>>,
    /// Total idle time of each domain's CPUs at `at_ns`, ns.
    idle_ns: Vec<u64>,
    at_ns: u64,
}

impl Busy {
    pub(crate) fn new(domains: &Domains, idle: IdleWord<'_>, now_ns: u64) -> Self {
        let cpus = domains
            .domains
            .iter()
            .map(|domain| domain.cpus.iter().collect());
        let mut busy = Self {
            cpus: cpus.collect(),
            idle_ns: Vec::new(),
            at_ns: now_ns,
        };
        busy.idle_ns = busy.read(idle, now_ns);
        busy
    }

    fn read(&self, idle: IdleWord<'_>, now_ns: u64) -> Vec<u64> {
        let of_cpu = |cpu: &usize| idle(*cpu).map_or(0, |word| idle_ns(word, now_ns));
        let of_domain = |cpus: &Vec<usize>| cpus.iter().map(of_cpu).sum();
        self.cpus.iter().map(of_domain).collect()
    }

    /// Returns, for each domain, the utilization of its CPUs since the last call, 0 to 1, and the
    /// number of its CPUs. The utilization is 0 if no time has passed.
    #[allow(clippy::cast_precision_loss)] // Exact below 2^53 ns, which are 104 days.
    pub(crate) fn sample(&mut self, idle: IdleWord<'_>, now_ns: u64) -> Vec<(f64, u32)> {
        let read = self.read(idle, now_ns);
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        let before = std::mem::replace(&mut self.idle_ns, read);
        self.at_ns = now_ns;
        let domains = self.cpus.iter().zip(self.idle_ns.iter().zip(before));
        domains
            .map(|(cpus, (now, before))| {
                let nr_cpus = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
                let of = elapsed_ns as f64 * f64::from(nr_cpus);
                let idle = now.saturating_sub(before) as f64;
                let busy = if of > 0.0 { 1.0 - idle / of } else { 0.0 };
                (busy.clamp(0.0, 1.0), nr_cpus)
            })
            .collect()
    }
}

/// Returns the total idle time of a CPU, ns, given its word.
fn idle_ns(word: u64, now_ns: u64) -> u64 {
    let word = word.cast_signed();
    let idle = if word < 0 {
        word.saturating_add_unsigned(now_ns)
    } else {
        word
    };
    idle.max(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scx_utils::cpumask::Cpumask;

    use super::*;
    use crate::domains::Domain;

    fn two_domains() -> Domains {
        let domain = |list| Domain {
            node: 0,
            cpus: Cpumask::from_list(list, 4).unwrap(),
        };
        Domains {
            domains: vec![domain("0,1"), domain("3")],
            nodes: vec![0],
        }
    }

    /// The word of a CPU with finished idle periods of `idle_ns` in total. Unless `since_ns` is 0,
    /// the CPU has been idle again since then.
    fn cpu(since_ns: i64, idle_ns: i64) -> i64 {
        idle_ns - since_ns
    }

    fn of(words: &[i64]) -> impl Fn(usize) -> Option<u64> + use<'_> {
        |cpu| words.get(cpu).map(|word| word.cast_unsigned())
    }

    #[test]
    fn idle_time_is_what_was_noted_and_what_goes_on() {
        let before = [cpu(0, 10), cpu(0, 0), cpu(5, 0), cpu(100, 7)];
        let mut busy = Busy::new(&two_domains(), &of(&before), 100);
        // CPU 0 was idle for half of the interval, CPU 1 never, CPU 3 all the time.
        let after = [cpu(0, 60), cpu(0, 0), cpu(5, 0), cpu(100, 7)];
        assert_eq!(busy.sample(&of(&after), 200), [(0.75, 2), (0.0, 1)]);
        // CPU 0 is idle for the last quarter of the next interval, CPU 3 not at all.
        let later = [cpu(275, 60), cpu(0, 0), cpu(5, 0), cpu(0, 107)];
        assert_eq!(busy.sample(&of(&later), 300), [(0.875, 2), (1.0, 1)]);
    }

    #[test]
    fn no_elapsed_time_is_no_utilization_and_clock_skew_is_harmless() {
        let idle = [cpu(50, 10), cpu(0, 0), cpu(0, 0), cpu(400, 0)];
        let mut busy = Busy::new(&two_domains(), &of(&idle), 100);
        assert_eq!(busy.sample(&of(&idle), 100), [(0.0, 2), (0.0, 1)]);
        assert_eq!(busy.sample(&of(&idle), 90), [(0.0, 2), (0.0, 1)]);
        let less = [0; 4];
        assert_eq!(busy.sample(&of(&less), 190), [(1.0, 2), (1.0, 1)]);
    }

    #[test]
    fn cpus_without_an_idle_word_count_as_busy() {
        let mut busy = Busy::new(&two_domains(), &of(&[]), 0);
        assert_eq!(busy.sample(&of(&[]), 10), [(1.0, 2), (1.0, 1)]);
    }

    proptest! {
        /// An idle period counts once, whether it is read before or after any of BPF's writes.
        #[test]
        fn each_idle_stretch_counts_once(
            stretches in prop::collection::vec((1_i64..1000, 1_i64..1000), 1..20),
        ) {
            let (mut now, mut word, mut idle) = (1, 0, 0);
            let told = |word: i64, now: i64| idle_ns(word.cast_unsigned(), now.cast_unsigned());
            for (busy_ns, idle_ns) in stretches {
                now += busy_ns;
                prop_assert_eq!(told(word, now), idle);
                // As rusty_idle_begin() and rusty_idle_end() do.
                word -= now;
                prop_assert_eq!(told(word, now), idle);
                now += idle_ns;
                idle += idle_ns.cast_unsigned();
                prop_assert_eq!(told(word, now), idle);
                word += now;
                prop_assert_eq!(told(word, now), idle);
            }
        }
    }
}
