// SPDX-License-Identifier: GPL-2.0-only
//! Duration of a balancing round, by number of tasks.

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion};
use scx_utils::infeasible::LoadKind;

// The package has no library that a benchmark could use.
#[allow(dead_code)]
#[path = "../src/balancer/mod.rs"]
mod balancer;

use balancer::{balance, Domain, DomainMask, Snapshot, Task};

const NR_NODES: usize = 4;
const NR_DOMAINS: usize = 32;
const NR_CPUS: u32 = 8;
const WEIGHTS: [u32; 5] = [100, 100, 100, 36, 1024];

/// Returns a pseudo-random number of 32 bits, always the same for a seed.
fn noise(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

/// Half of the tasks are in any domain, the other half in the first quarter of the domains. If
/// `is_bound`, half of all tasks are allowed only in the domains with odd numbers.
fn snapshot(nr_tasks: u64, is_bound: bool) -> Snapshot {
    let odd = DomainMask::from_words([0xaaaa_aaaa_aaaa_aaaa; 4]);
    let pick = |seed: u64, n: usize| usize::try_from(noise(seed)).unwrap_or(0) % n;
    let task = |idx: u64| {
        let seed = idx * 8;
        let width = [NR_DOMAINS, NR_DOMAINS / 4][pick(seed, 2)];
        Task {
            pid: i32::try_from(idx).unwrap_or(0),
            weight: WEIGHTS[pick(seed + 1, WEIGHTS.len())],
            duty_cycle: f64::from(u32::try_from(noise(seed + 2) % 1001).unwrap_or(0)) / 1000.0,
            domain: pick(seed + 3, width),
            allowed: if is_bound && pick(seed + 4, 2) == 0 {
                odd
            } else {
                DomainMask::all(NR_DOMAINS)
            },
            preferred: DomainMask::default(),
            may_migrate: pick(seed + 5, 20) > 0,
        }
    };
    let domain = |idx: usize| Domain {
        node: idx * NR_NODES / NR_DOMAINS,
        nr_cpus: NR_CPUS,
    };
    Snapshot {
        domains: (0..NR_DOMAINS).map(domain).collect(),
        tasks: (0..nr_tasks).map(task).collect(),
    }
}

fn rounds(criterion: &mut Criterion) {
    for (name, is_bound) in [("free", false), ("bound", true)] {
        let mut group = criterion.benchmark_group(name);
        for nr_tasks in [1_000, 10_000, 100_000] {
            let snapshot = snapshot(nr_tasks, is_bound);
            assert!(!balance(&snapshot, LoadKind::Weighted).migrations.is_empty());
            let id = BenchmarkId::from_parameter(nr_tasks);
            group.bench_with_input(id, &snapshot, |bencher, snapshot| {
                bencher.iter(|| balance(black_box(snapshot), LoadKind::Weighted));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, rounds);
criterion_main!(benches);
