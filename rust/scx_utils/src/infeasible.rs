// SPDX-License-Identifier: GPL-2.0-only
//! Loads of domains, with infeasible weights clamped. A domain is a group of CPUs; a load balancer
//! migrates tasks between domains.
//!
//! A task cannot use more than one CPU, whatever its weight. For example, a task of weight 10000
//! that shares four CPUs with nine tasks of weight 100 is entitled to 3.7 CPUs, but can use only
//! one. The nine tasks share the other three CPUs. A balancer that uses the weight sees a domain
//! with over 90 % of the machine's load, which no migration reduces. So each weight counts as at
//! most
//!
//! > λ, with Σ dᵢ · min(wᵢ, λ) = λ · P
//!
//! where dᵢ is the sum of the *duty cycles* of the tasks of weight wᵢ, and P is the number of CPUs.
//! A duty cycle is the fraction of time that a task is runnable, 1 for a task that computes all the
//! time. A task of weight λ that computes all the time gets one CPU and no more. The left side
//! minus the right side is concave in λ, and 0 at 0. So there is exactly one solution above 0 if
//! the tasks need more CPUs than there are (Σ dᵢ > P). If they need fewer, there is no such
//! solution: all tasks get the CPU time that they need, and weights are not clamped.

use std::collections::BTreeMap;

use thiserror::Error;

/// The maximum weight in the kernel (`p->scx.weight`, cgroups' `cpu.weight`).
pub const WEIGHT_MAX: u32 = 10_000;

/// Why [`LoadAggregator::record`] adds nothing.
#[derive(Debug, Error, Clone, Copy, PartialEq)]
pub enum Refused {
    /// A weight outside of 1 to [`WEIGHT_MAX`].
    #[error("a weight must be from 1 to {WEIGHT_MAX}, not {0}")]
    Weight(u32),
    /// A duty cycle that is negative, infinite or NaN.
    #[error("a duty cycle must be 0 or more, not {0}")]
    DutyCycle(f64),
}

/// How loads are calculated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadKind {
    /// Duty cycles times weights, where infeasible weights are clamped.
    Weighted,
    /// Duty cycles only: correct while there are enough CPUs for all tasks.
    DutyCycle,
}

impl LoadKind {
    /// The load of a task is its duty cycle times this factor.
    fn factor(self, weight: u32, weight_max: f64) -> f64 {
        match self {
            Self::Weighted => f64::from(weight).min(weight_max),
            Self::DutyCycle => 1.0,
        }
    }
}

/// Sums duty cycles by domain and weight. Domain numbers are arbitrary.
#[derive(Debug, Clone)]
pub struct LoadAggregator {
    nr_cpus: f64,
    kind: LoadKind,
    /// For each domain and each weight, the sum of the duty cycles of the tasks.
    duties: BTreeMap<usize, BTreeMap<u32, f64>>,
}

/// The load of a domain, or of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// The sum of the duty cycles: the number of CPUs that the tasks of the domain, or of the
    /// machine, would use if each task had a CPU for itself.
    pub duty_cycle: f64,
    /// The load, as the [`LoadKind`] defines it. With [`LoadKind::Weighted`], a task of nice 0 that
    /// is always runnable has a load of 100, or less if its weight is clamped. With
    /// [`LoadKind::DutyCycle`], the load equals `duty_cycle`.
    pub load: f64,
}

/// Result of [`LoadAggregator::calculate`].
#[derive(Debug, Clone, PartialEq)]
pub struct LoadLedger {
    /// The load of all domains together.
    pub total: Load,
    /// The value to which weights are clamped; [`WEIGHT_MAX`] if the CPUs suffice for all tasks, or
    /// with [`LoadKind::DutyCycle`].
    pub weight_max: f64,
    kind: LoadKind,
    domains: BTreeMap<usize, Load>,
}

impl LoadAggregator {
    /// For a machine with `nr_cpus` online CPUs; 0 counts as 1.
    #[must_use]
    pub fn new(nr_cpus: u32, kind: LoadKind) -> Self {
        Self {
            nr_cpus: f64::from(nr_cpus.max(1)),
            kind,
            duties: BTreeMap::new(),
        }
    }

    /// Adds a domain to the ledger, even if it has no tasks.
    pub fn add_domain(&mut self, domain: usize) {
        self.duties.entry(domain).or_default();
    }

    /// Adds tasks of one weight in a domain; `duty_cycle` is the sum of their duty cycles.
    ///
    /// # Errors
    ///
    /// See [`Refused`]; nothing is added then.
    pub fn record(&mut self, domain: usize, weight: u32, duty_cycle: f64) -> Result<(), Refused> {
        if !(1..=WEIGHT_MAX).contains(&weight) {
            return Err(Refused::Weight(weight));
        }
        if !duty_cycle.is_finite() || duty_cycle < 0.0 {
            return Err(Refused::DutyCycle(duty_cycle));
        }
        let of_domain = self.duties.entry(domain).or_default();
        *of_domain.entry(weight).or_default() += duty_cycle;
        Ok(())
    }

    /// Calculates all loads, in O(n log n) for n pairs of a domain and a weight.
    #[must_use]
    pub fn calculate(&self) -> LoadLedger {
        let weight_max = match self.kind {
            LoadKind::Weighted => self.feasible_weight(),
            LoadKind::DutyCycle => f64::from(WEIGHT_MAX),
        };
        let load_of = |duties: &BTreeMap<u32, f64>| {
            duties.iter().fold(Load::default(), |sum, (weight, duty)| {
                let factor = self.kind.factor(*weight, weight_max);
                Load {
                    duty_cycle: sum.duty_cycle + duty,
                    load: sum.load + duty * factor,
                }
            })
        };
        let domains: BTreeMap<_, _> = self
            .duties
            .iter()
            .map(|(domain, duties)| (*domain, load_of(duties)))
            .collect();
        let total = domains.values().fold(Load::default(), |sum, of| Load {
            duty_cycle: sum.duty_cycle + of.duty_cycle,
            load: sum.load + of.load,
        });
        LoadLedger {
            total,
            weight_max,
            kind: self.kind,
            domains,
        }
    }

    /// Returns λ, at most [`WEIGHT_MAX`]. If the CPUs suffice for all tasks (Σ dᵢ < P), there is no
    /// λ, and the result is [`WEIGHT_MAX`]. Weights are clamped in descending order. If the clamped
    /// tasks have the duty cycle D, and the other tasks the load L, then λ · (P - D) = L. This λ is
    /// the solution if the next weight is not above it.
    fn feasible_weight(&self) -> f64 {
        let mut by_weight = BTreeMap::<u32, f64>::new();
        for (weight, duty) in self.duties.values().flatten() {
            *by_weight.entry(*weight).or_default() += duty;
        }
        // Prefix sums in ascending order. Subtracting from the total would leave rounding errors.
        let mut load = 0.0;
        let mut steps = Vec::with_capacity(by_weight.len());
        for (weight, duty) in by_weight {
            load += f64::from(weight) * duty;
            steps.push((f64::from(weight), duty, load));
        }
        let mut cpus_left = self.nr_cpus;
        for (weight, duty, load) in steps.into_iter().rev() {
            // `cpus_left` stays above 0: `duty` is subtracted only if weight * cpus_left > load,
            // and load >= weight * duty.
            if weight * cpus_left <= load {
                return (load / cpus_left).min(f64::from(WEIGHT_MAX));
            }
            cpus_left -= duty;
        }
        f64::from(WEIGHT_MAX)
    }
}

impl LoadLedger {
    /// The loads of the domains, by their numbers.
    #[must_use]
    pub fn domains(&self) -> &BTreeMap<usize, Load> {
        &self.domains
    }

    /// The load of a task with this weight and duty cycle.
    #[must_use]
    pub fn effective_load(&self, weight: u32, duty_cycle: f64) -> f64 {
        self.kind.factor(weight, self.weight_max) * duty_cycle
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A weight, and the sum of the duty cycles of its tasks.
    type Group = (u32, f64);

    fn ledger(nr_cpus: u32, kind: LoadKind, groups: &[Group]) -> LoadLedger {
        let mut loads = LoadAggregator::new(nr_cpus, kind);
        for (domain, (weight, duty)) in groups.iter().enumerate() {
            loads.record(domain, *weight, *duty).unwrap();
        }
        loads.calculate()
    }

    fn weighted(nr_cpus: u32, groups: &[Group]) -> LoadLedger {
        ledger(nr_cpus, LoadKind::Weighted, groups)
    }

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    /// CPU time of each group, distributed in rounds: the groups that are left share the remaining
    /// CPUs by weight. A group that would get all that it can use, or more, gets what it can use,
    /// and does not take part in the next round.
    fn shares(nr_cpus: u32, groups: &[Group]) -> Vec<f64> {
        let mut share = vec![None; groups.len()];
        loop {
            let taken: f64 = share.iter().flatten().sum();
            let open = |idx: &usize| share[*idx].is_none();
            let of = |idx: usize| f64::from(groups[idx].0) * groups[idx].1;
            let load: f64 = (0..groups.len()).filter(open).map(of).sum();
            let cpus = f64::from(nr_cpus) - taken;
            let due: Vec<_> = (0..groups.len())
                .map(|idx| {
                    if load > 0.0 {
                        of(idx) / load * cpus
                    } else {
                        0.0
                    }
                })
                .collect();
            let full: Vec<_> = (0..groups.len())
                .filter(open)
                .filter(|idx| due[*idx] >= groups[*idx].1)
                .collect();
            if full.is_empty() {
                return share
                    .iter()
                    .enumerate()
                    .map(|(idx, share)| share.unwrap_or(due[idx]))
                    .collect();
            }
            for idx in full {
                share[idx] = Some(groups[idx].1);
            }
        }
    }

    #[test]
    fn feasible_weights_are_left_alone() {
        let found = weighted(2, &[(100, 4.0), (200, 4.0)]);
        assert!(found.weight_max >= 200.0, "{found:?}");
        assert!(is_close(found.total.load, 1200.0));
        assert!(is_close(found.domains()[&1].load, 800.0));
    }

    #[test]
    fn heavy_task_counts_as_one_cpu() {
        // The heavy task gets one of four CPUs. The other nine tasks share three CPUs, with a load
        // of 300 on each.
        let found = weighted(4, &[(10_000, 1.0), (100, 9.0)]);
        assert!(is_close(found.weight_max, 300.0), "{found:?}");
        assert!(is_close(found.domains()[&0].load, 300.0));
        assert!(is_close(found.effective_load(10_000, 0.5), 150.0));
    }

    #[test]
    fn machine_with_cpus_for_all_needs_no_clamp() {
        let found = weighted(8, &[(10_000, 1.0), (1, 3.0)]);
        assert!(is_close(found.weight_max, f64::from(WEIGHT_MAX)));
    }

    #[test]
    fn duty_cycles_alone_know_no_weights() {
        let found = ledger(1, LoadKind::DutyCycle, &[(10_000, 1.0), (1, 3.0)]);
        assert!(is_close(found.total.load, 4.0));
        assert!(is_close(found.domains()[&1].load, 3.0));
    }

    #[test]
    fn no_tasks_have_no_load() {
        let mut loads = LoadAggregator::new(0, LoadKind::Weighted);
        loads.add_domain(7);
        let found = loads.calculate();
        assert_eq!(found.total, Load::default());
        assert_eq!(found.domains()[&7], Load::default());
    }

    #[test]
    fn the_same_twice_adds_up() {
        let mut loads = LoadAggregator::new(1, LoadKind::Weighted);
        loads.record(3, 100, 0.5).unwrap();
        loads.record(3, 100, 0.25).unwrap();
        assert!(is_close(loads.calculate().domains()[&3].duty_cycle, 0.75));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut loads = LoadAggregator::new(1, LoadKind::Weighted);
        for weight in [0, WEIGHT_MAX + 1] {
            assert_eq!(loads.record(0, weight, 1.0), Err(Refused::Weight(weight)));
        }
        for duty in [-0.1, f64::INFINITY, f64::NAN] {
            assert!(matches!(
                loads.record(0, 1, duty),
                Err(Refused::DutyCycle(_))
            ));
        }
        assert!(loads.calculate().domains().is_empty());
    }

    proptest! {
        /// If tasks get CPU time in proportion to their clamped weights, each gets what the
        /// distribution in rounds yields.
        #[test]
        fn shares_are_those_of_the_slow_model(
            nr_cpus in 1_u32..64,
            groups in vec((1..=WEIGHT_MAX, 0.0..20.0), 1..40),
        ) {
            // One group per weight: tasks of equal weight are indistinguishable.
            let groups: BTreeMap<u32, f64> = groups.into_iter().collect();
            let groups: Vec<Group> = groups.into_iter().collect();
            let found = weighted(nr_cpus, &groups);
            let wanted: f64 = groups.iter().map(|(_, duty)| duty).sum();
            for ((weight, duty), model) in groups.iter().zip(shares(nr_cpus, &groups)) {
                let share = if wanted <= f64::from(nr_cpus) {
                    *duty
                } else {
                    found.effective_load(*weight, *duty) / found.total.load * f64::from(nr_cpus)
                };
                prop_assert!((share - model).abs() < 1e-6, "{weight} {duty}: {share} {model}");
                prop_assert!(share <= duty + 1e-6);
            }
        }

        /// If there is a clamp, a clamped task that computes all the time gets one CPU.
        #[test]
        fn clamp_is_one_cpu(
            nr_cpus in 1_u32..512,
            groups in vec((1..=WEIGHT_MAX, 0.0..50.0), 1..60),
        ) {
            let found = weighted(nr_cpus, &groups);
            let heaviest = groups.iter().map(|(weight, _)| f64::from(*weight)).fold(0.0, f64::max);
            if found.weight_max < heaviest {
                let cpus = found.total.load / found.weight_max;
                prop_assert!((cpus - f64::from(nr_cpus)).abs() < 1e-6, "{cpus}");
            }
            prop_assert!(found.weight_max > 0.0);
        }

        /// The distribution of tasks over domains does not affect the total.
        #[test]
        fn domains_add_up(
            nr_cpus in 1_u32..64,
            tasks in vec((0_usize..8, 1..=WEIGHT_MAX, 0.0..1.0), 1..100),
        ) {
            let mut apart = LoadAggregator::new(nr_cpus, LoadKind::Weighted);
            let mut one = apart.clone();
            for (domain, weight, duty) in tasks {
                apart.record(domain, weight, duty).unwrap();
                one.record(0, weight, duty).unwrap();
            }
            let (apart, one) = (apart.calculate(), one.calculate());
            prop_assert!((apart.weight_max - one.weight_max).abs() < 1e-6);
            prop_assert!((apart.total.load - one.total.load).abs() < 1e-6);
        }
    }
}
