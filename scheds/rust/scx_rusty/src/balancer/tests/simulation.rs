// SPDX-License-Identifier: GPL-2.0-only
//! Simulates balancing rounds on generated machines until no task migrates any more.

use proptest::prelude::*;

use super::*;

/// Maximum number of rounds. Of 6000 generated machines, half needed at most 7 rounds, 99 % needed
/// at most 25, and one needed 120.
const ROUNDS_MAX: usize = 400;

/// Maximum number of migrations per task. On the 6000 machines, no task migrated more than 5 times.
const MOVES_MAX: usize = 10;

/// Tolerance for rounding errors.
const EPSILON: f64 = 1e-6;

/// Parameters of a generated machine.
#[derive(Debug, Clone)]
struct Recipe {
    seed: u64,
    nr_nodes: usize,
    /// Maximum per node.
    nr_domains: usize,
    /// Maximum per domain.
    nr_cpus: u32,
    nr_tasks: usize,
    /// The higher, the more tasks are concentrated in few domains.
    skew: i32,
    /// Percentage of tasks that are restricted to a few domains, and of tasks that prefer a node.
    /// The percentage of tasks that may not migrate is a quarter of this percentage.
    special: u64,
    /// Maximum of duty cycles.
    duty_max: f64,
    has_weights: bool,
    kind: LoadKind,
}

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next()).unwrap() % n
    }

    /// Returns a number from 0 to 1, mostly near 0 if `skew` is above 1.
    fn part(&mut self, skew: i32) -> f64 {
        (f64::from(u32::try_from(self.next()).unwrap()) / f64::from(1_u32 << 31)).powi(skew)
    }

    fn is_one_of_100(&mut self, n: u64) -> bool {
        self.next() % 100 < n
    }

    fn domains(&mut self, recipe: &Recipe) -> Vec<Domain> {
        let mut domains = Vec::new();
        for node in 0..recipe.nr_nodes {
            for _ in 0..=self.below(recipe.nr_domains) {
                let nr_cpus = 1 + self.below(usize::try_from(recipe.nr_cpus).unwrap());
                let nr_cpus = u32::try_from(nr_cpus).unwrap();
                domains.push(Domain { node, nr_cpus });
            }
        }
        domains
    }

    fn task(&mut self, pid: usize, domains: &[Domain], recipe: &Recipe) -> Task {
        let mut domain = 0;
        let at = self.part(recipe.skew);
        while domain + 1 < domains.len() && self.share(domain + 1, domains.len()) <= at {
            domain += 1;
        }
        let mut allowed = DomainMask::all(domains.len());
        if self.is_one_of_100(recipe.special) {
            allowed = (0..self.below(4))
                .map(|_| self.below(domains.len()))
                .collect();
            allowed.insert(domain);
        }
        let mut preferred = DomainMask::default();
        if self.is_one_of_100(recipe.special) {
            let node = self.below(recipe.nr_nodes);
            let is_there = |idx: &usize| domains[*idx].node == node;
            preferred = (0..domains.len()).filter(is_there).collect();
        }
        let weights = [100, 100, 100, 1, 15, 335, 1024, 10_000];
        Task {
            pid: i32::try_from(pid).unwrap(),
            weight: if recipe.has_weights {
                weights[self.below(8)]
            } else {
                100
            },
            duty_cycle: self.part(2) * recipe.duty_max,
            domain,
            allowed,
            preferred,
            may_migrate: !self.is_one_of_100(recipe.special / 4),
        }
    }

    fn share(&self, domain: usize, of: usize) -> f64 {
        f64::from(u32::try_from(domain).unwrap()) / f64::from(u32::try_from(of).unwrap())
    }
}

impl Recipe {
    fn snapshot(&self) -> Snapshot {
        let mut noise = Noise(self.seed | 1);
        let domains = noise.domains(self);
        let task = |pid| noise.task(pid, &domains, self);
        let tasks = (0..self.nr_tasks).map(task).collect();
        Snapshot { domains, tasks }
    }
}

/// A load and the CPUs that share it.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    load: f64,
    nr_cpus: f64,
}

impl Sum {
    fn by_cpu(self) -> f64 {
        self.load / self.nr_cpus
    }

    fn of<'a>(sums: impl IntoIterator<Item = &'a Self>) -> Self {
        sums.into_iter().fold(Self::default(), |sum, of| Self {
            load: sum.load + of.load,
            nr_cpus: sum.nr_cpus + of.nr_cpus,
        })
    }

    /// Relative deviation of the load per CPU from `mean`.
    fn off(self, mean: f64) -> f64 {
        if mean > 0.0 {
            (self.by_cpu() / mean - 1.0).abs()
        } else {
            0.0
        }
    }

    /// Whether a move of `load` from `self` to `to` certainly makes their loads per CPU less
    /// different.
    fn is_improved(self, to: Self, load: f64) -> bool {
        let gap = (self.by_cpu() - to.by_cpu()) * (1.0 - EPSILON);
        load < gap * self.nr_cpus.min(to.nr_cpus)
    }
}

/// A simulated machine.
struct Model {
    snapshot: Snapshot,
    kind: LoadKind,
    loads: Vec<f64>,
    nr_moves: Vec<usize>,
    nr_rounds: usize,
}

/// The loads of domains and nodes.
struct Sums {
    domains: Vec<Sum>,
    nodes: Vec<Sum>,
}

impl Sums {
    fn worst(of: &[Sum]) -> f64 {
        let mean = Sum::of(of).by_cpu();
        of.iter().map(|sum| sum.off(mean)).fold(0.0, f64::max)
    }
}

impl Model {
    fn new(snapshot: Snapshot, kind: LoadKind) -> Self {
        Self {
            kind,
            loads: task_loads(&snapshot, kind),
            nr_moves: vec![0; snapshot.tasks.len()],
            nr_rounds: 0,
            snapshot,
        }
    }

    fn sums(&self) -> Sums {
        let domains = &self.snapshot.domains;
        let mut sums: Vec<_> = domains.iter().map(|_| Sum::default()).collect();
        for (sum, domain) in sums.iter_mut().zip(domains) {
            sum.nr_cpus = f64::from(domain.nr_cpus);
        }
        for (task, load) in self.snapshot.tasks.iter().zip(&self.loads) {
            sums[task.domain].load += load;
        }
        let nr_nodes = domains.iter().map(|domain| domain.node + 1).max();
        let mut nodes = vec![Sum::default(); nr_nodes.unwrap_or(0)];
        for (sum, domain) in sums.iter().zip(domains) {
            nodes[domain.node] = Sum::of([&nodes[domain.node], sum]);
        }
        Sums {
            domains: sums,
            nodes,
        }
    }

    /// Simulates one round. Returns false if no task migrates.
    fn step(&mut self) -> bool {
        let plan = balance(&self.snapshot, self.kind);
        for of in &plan.migrations {
            let idx = usize::try_from(of.pid).unwrap();
            let task = &mut self.snapshot.tasks[idx];
            assert!(
                task.may_migrate && task.allowed.contains(of.to),
                "{of:?} {task:?}"
            );
            assert!(
                of.from == task.domain && of.to != of.from,
                "migrated twice in a round: {of:?}"
            );
            task.domain = of.to;
            self.nr_moves[idx] += 1;
        }
        self.nr_rounds += 1;
        !plan.migrations.is_empty()
    }

    /// Simulates rounds until no task migrates.
    fn settle(&mut self) {
        self.step();
        let mut before = self.sums();
        while self.step() {
            assert!(self.nr_rounds < ROUNDS_MAX, "does not come to an end");
            let sums = self.sums();
            let of_domains = |sums: &Sums| Sums::worst(&sums.domains);
            let of_nodes = |sums: &Sums| Sums::worst(&sums.nodes);
            assert!(of_domains(&sums) <= of_domains(&before) + EPSILON);
            assert!(of_nodes(&sums) <= of_nodes(&before) + EPSILON);
            before = sums;
        }
        let nr_moves = self.nr_moves.iter().max().copied().unwrap_or(0);
        assert!(nr_moves <= MOVES_MAX, "moved {nr_moves} times");
    }

    /// Whether `from` has more than its share, `to` has less, and one of them deviates by more than
    /// `threshold`.
    fn is_pair_off(from: Sum, to: Sum, mean: f64, threshold: f64) -> bool {
        let has_slack = from.by_cpu() > mean && to.by_cpu() < mean;
        has_slack && (from.off(mean) > threshold + EPSILON || to.off(mean) > threshold + EPSILON)
    }

    /// Returns a migration that the balancer has missed: a gain between two domains or nodes, at
    /// least one of which deviates too much from its share.
    fn missing(&self) -> Option<Migration> {
        let sums = self.sums();
        let machine = Sum::of(&sums.nodes).by_cpu();
        let domains = &self.snapshot.domains;
        for (task, load) in self.snapshot.tasks.iter().zip(&self.loads) {
            let from = sums.domains[task.domain];
            if !task.may_migrate || *load <= 0.0 {
                continue;
            }
            for (to, domain) in domains.iter().enumerate() {
                if !task.allowed.contains(to) {
                    continue;
                }
                let nodes = [domains[task.domain].node, domain.node].map(|node| sums.nodes[node]);
                let is_off = if domains[task.domain].node == domain.node {
                    Self::is_pair_off(from, sums.domains[to], nodes[0].by_cpu(), 0.05)
                } else {
                    Self::is_pair_off(nodes[0], nodes[1], machine, 0.17)
                        && nodes[0].is_improved(nodes[1], *load)
                };
                if is_off && from.is_improved(sums.domains[to], *load) {
                    let (pid, from) = (task.pid, task.domain);
                    return Some(Migration { pid, from, to });
                }
            }
        }
        None
    }

    /// Whether no node or domain in `of` deviates from the mean load by more than the threshold.
    /// `None` if a task is so heavy that the balancer may be unable to achieve this.
    fn is_even(&self, of: &[Sum], threshold: f64, nr_cpus_min: f64) -> Option<bool> {
        let heaviest = self.loads.iter().copied().fold(0.0, f64::max);
        let mean = Sum::of(of).by_cpu();
        let is_fine = heaviest < (threshold - EPSILON) * mean * nr_cpus_min;
        is_fine.then(|| Sums::worst(of) <= threshold + EPSILON)
    }
}

fn machines() -> impl Strategy<Value = Recipe> {
    let size = (1_usize..=16, 1_usize..=8, 1_u32..=32, 0_usize..=3000);
    let skews = (1..6, 0_u64..60, any::<bool>(), any::<bool>());
    (any::<u64>(), size, skews).prop_map(|(seed, size, skews)| Recipe {
        seed,
        nr_nodes: size.0,
        nr_domains: size.1,
        nr_cpus: size.2,
        nr_tasks: size.3,
        skew: skews.0,
        special: skews.1,
        duty_max: 1.0,
        has_weights: skews.2,
        kind: if skews.3 {
            LoadKind::Weighted
        } else {
            LoadKind::DutyCycle
        },
    })
}

/// Few domains, with many small tasks that are allowed in all domains.
fn fine_machines() -> impl Strategy<Value = Recipe> {
    (any::<u64>(), 1_usize..=3, 1_usize..=4, 1..6).prop_map(|(seed, nodes, domains, skew)| Recipe {
        seed,
        nr_nodes: nodes,
        nr_domains: domains,
        nr_cpus: 2,
        nr_tasks: 3000,
        skew,
        special: 0,
        duty_max: 0.2,
        has_weights: false,
        kind: LoadKind::Weighted,
    })
}

fn smallest(domains: &[Domain]) -> f64 {
    f64::from(
        domains
            .iter()
            .map(|domain| domain.nr_cpus)
            .min()
            .unwrap_or(0),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Migrations come to an end, the greatest deviations of a domain and of a node do not increase
    /// after the first round, and no migration is missed.
    #[test]
    fn machine_settles(recipe in machines()) {
        let mut model = Model::new(recipe.snapshot(), recipe.kind);
        model.settle();
        prop_assert_eq!(model.missing(), None);
    }

    /// If each task's load is below the threshold times the smallest domain's share of the total
    /// load, all nodes and domains end within the thresholds.
    #[test]
    fn small_tasks_are_spread_evenly(recipe in fine_machines()) {
        let mut model = Model::new(recipe.snapshot(), recipe.kind);
        model.settle();
        let sums = model.sums();
        let nr_cpus_min = smallest(&model.snapshot.domains);
        prop_assert_eq!(model.is_even(&sums.nodes, 0.17, nr_cpus_min), Some(true));
        for node in 0..sums.nodes.len() {
            let is_there = |of: &(&Sum, &Domain)| of.1.node == node;
            let domains = sums.domains.iter().zip(&model.snapshot.domains).filter(is_there);
            let domains: Vec<_> = domains.map(|(sum, _)| *sum).collect();
            prop_assert_eq!(model.is_even(&domains, 0.05, nr_cpus_min), Some(true));
        }
    }
}

#[test]
fn large_machine_settles() {
    let recipe = Recipe {
        seed: 7,
        nr_nodes: 16,
        nr_domains: 15,
        nr_cpus: 63,
        nr_tasks: 100_000,
        skew: 3,
        special: 20,
        duty_max: 1.0,
        has_weights: true,
        kind: LoadKind::Weighted,
    };
    let mut model = Model::new(recipe.snapshot(), recipe.kind);
    model.settle();
    assert_eq!(model.missing(), None);
}
