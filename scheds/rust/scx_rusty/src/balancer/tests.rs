// SPDX-License-Identifier: GPL-2.0-only
//! The properties of a round, one by one.

use super::*;

mod simulation;

/// Creates the domains of each node, given their numbers of CPUs.
fn domains(nodes: &[&[u32]]) -> Vec<Domain> {
    let of_node = |(node, domains): (usize, &&[u32])| {
        let domain = |nr_cpus: &u32| Domain {
            node,
            nr_cpus: *nr_cpus,
        };
        domains.iter().map(domain).collect::<Vec<_>>()
    };
    nodes.iter().enumerate().flat_map(of_node).collect()
}

/// A snapshot with tasks of nice 0 that are allowed in all domains. `loads`: the domain and the
/// load of each task. Pids start at 1.
fn snapshot(nodes: &[&[u32]], loads: &[(usize, f64)]) -> Snapshot {
    let task = |(pid, (domain, load)): (i32, &(usize, f64))| Task {
        pid,
        weight: 100,
        duty_cycle: load / LOAD_BUSY,
        domain: *domain,
        allowed: DomainMask::all(DOMAINS_MAX),
        preferred: DomainMask::default(),
        may_migrate: true,
    };
    Snapshot {
        domains: domains(nodes),
        tasks: (1..).zip(loads).map(task).collect(),
    }
}

fn only(domains: &[usize]) -> DomainMask {
    domains.iter().copied().collect()
}

/// Pid and target of each migration.
fn moves(snapshot: &Snapshot) -> Vec<(i32, usize)> {
    let plan = balance(snapshot, LoadKind::DutyCycle);
    plan.migrations.iter().map(|of| (of.pid, of.to)).collect()
}

fn many(n: usize, domain: usize, load: f64) -> Vec<(usize, f64)> {
    vec![(domain, load); n]
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

#[test]
fn masks_are_sets() {
    let mut mask = DomainMask::default();
    assert!(mask.is_empty());
    for domain in [0, 63, 64, 255, DOMAINS_MAX, usize::MAX] {
        mask.insert(domain);
        assert_eq!(mask.contains(domain), domain < DOMAINS_MAX, "{domain}");
    }
    assert_eq!(mask, DomainMask::from_words([1 | 1 << 63, 1, 0, 1 << 63]));
    let all = DomainMask::all(65);
    assert_eq!(all, DomainMask::from_words([u64::MAX, 1, 0, 0]));
    assert_eq!(mask.and(all), only(&[0, 63, 64]));
    assert_eq!(only(&[1]).or(only(&[2])), only(&[1, 2]));
}

#[test]
fn busy_task_of_nice_0_is_100_in_both_kinds() {
    let snapshot = snapshot(&[&[1, 1]], &[(0, 100.0), (1, 50.0)]);
    for kind in [LoadKind::Weighted, LoadKind::DutyCycle] {
        let plan = balance(&snapshot, kind);
        assert!(is_close(plan.total_load, 150.0));
        assert!(is_close(plan.domains[1].load, 50.0));
    }
}

#[test]
fn weights_count_as_far_as_they_are_feasible_and_if_asked_for() {
    let mut snapshot = snapshot(&[&[2, 2]], &many(10, 0, 100.0));
    snapshot.tasks[0].weight = 10_000;
    let plan = balance(&snapshot, LoadKind::Weighted);
    assert!(is_close(plan.total_load, 1200.0), "{plan:?}");
    let plan = balance(&snapshot, LoadKind::DutyCycle);
    assert!(is_close(plan.total_load, 1000.0), "{plan:?}");
}

#[test]
fn ideal_is_a_share_by_cpus() {
    let snapshot = snapshot(&[&[1, 3], &[4]], &many(8, 0, 100.0));
    let plan = balance(&snapshot, LoadKind::DutyCycle);
    let imbal = plan.domains.iter().map(|of| of.imbal);
    for (imbal, expected) in imbal.zip([700.0, -300.0, -400.0]) {
        assert!(is_close(imbal, expected), "{plan:?}");
    }
    assert_eq!(plan.nodes[0].domains, [0, 1]);
    assert!(is_close(plan.nodes[0].imbal, 400.0));
    assert!(is_close(plan.nodes[1].imbal, -400.0));
}

#[test]
fn deltas_are_the_migrations() {
    let snapshot = snapshot(&[&[1, 1], &[2]], &many(40, 0, 10.0));
    let plan = balance(&snapshot, LoadKind::DutyCycle);
    let mut delta = [0.0; 3];
    for of in &plan.migrations {
        delta[of.from] -= 10.0;
        delta[of.to] += 10.0;
    }
    assert!(delta[1] > 0.0 && delta[2] > 0.0, "{plan:?}");
    for (domain, delta) in plan.domains.iter().zip(delta) {
        assert!(is_close(domain.delta, delta));
    }
    assert!(is_close(plan.nodes[0].delta, delta[0] + delta[1]));
}

#[test]
fn balanced_machine_is_left_alone() {
    // Deviations of 4 % between domains, and 16 % between nodes.
    let within = [many(104, 0, 1.0), many(96, 1, 1.0)].concat();
    assert_eq!(moves(&snapshot(&[&[1, 1]], &within)), []);
    let between = [many(116, 0, 1.0), many(84, 1, 1.0)].concat();
    assert_eq!(moves(&snapshot(&[&[1], &[1]], &between)), []);
}

#[test]
fn thresholds_are_5_percent_between_domains_and_17_between_nodes() {
    let within = [many(106, 0, 1.0), many(94, 1, 1.0)].concat();
    assert!(!moves(&snapshot(&[&[1, 1]], &within)).is_empty());
    let between = [many(118, 0, 1.0), many(82, 1, 1.0)].concat();
    assert!(!moves(&snapshot(&[&[1], &[1]], &between)).is_empty());
}

#[test]
fn half_of_the_smaller_imbalance_is_moved() {
    // Domain 0 has 180 more than its share. Domain 1 has 60 less, and domain 2 has 120 less.
    let loads = [many(300, 0, 1.0), many(60, 1, 1.0)].concat();
    let snapshot = snapshot(&[&[1, 1, 1]], &loads);
    let plan = balance(&snapshot, LoadKind::DutyCycle);
    let ideal = 120.0;
    assert!(is_close(plan.domains[2].delta, ideal / 2.0), "{plan:?}");
    assert!(is_close(plan.domains[1].delta, (ideal - 60.0) / 2.0));
}

#[test]
fn giver_keeps_half_of_its_imbalance() {
    // Domain 0 has 600 more than its share. Each of the other domains has 200 less, and gets 100.
    let snapshot = snapshot(&[&[1, 1, 1, 1]], &many(800, 0, 1.0));
    let plan = balance(&snapshot, LoadKind::DutyCycle);
    assert!(is_close(plan.domains[0].delta, -300.0), "{plan:?}");
}

#[test]
fn most_loaded_gives_to_least_loaded_first() {
    let loads = [many(150, 0, 1.0), many(200, 1, 1.0), many(30, 2, 1.0)].concat();
    let snapshot = snapshot(&[&[1, 1, 1, 1]], &loads);
    let plan = balance(&snapshot, LoadKind::DutyCycle);
    let first = plan.migrations[0];
    assert_eq!((first.from, first.to), (1, 3));
}

#[test]
fn task_is_chosen_by_its_load() {
    // A load of 50 is wanted, half of the imbalance.
    let loads = [(0, 20.0), (0, 47.0), (0, 60.0), (0, 73.0)];
    assert_eq!(moves(&snapshot(&[&[1, 1]], &loads)), [(2, 1)]);
    let loads = [(0, 20.0), (0, 40.0), (0, 52.0), (0, 88.0)];
    assert_eq!(moves(&snapshot(&[&[1, 1]], &loads)), [(3, 1)]);
}

#[test]
fn first_task_may_be_all_of_the_imbalance() {
    let loads = many(2, 0, 100.0);
    assert_eq!(moves(&snapshot(&[&[1, 1]], &loads)).len(), 1);
    let loads = many(1, 0, 100.0);
    assert_eq!(moves(&snapshot(&[&[1, 1]], &loads)), []);
}

/// If the light task migrated instead, three CPU-bound tasks would share the two CPUs of domain 0.
#[test]
fn light_task_does_not_keep_a_heavy_one_from_going() {
    let loads = [(0, 3.0), (0, 100.0), (0, 100.0), (0, 100.0), (1, 100.0)];
    let moves = moves(&snapshot(&[&[2], &[2]], &loads));
    assert!(
        moves.iter().any(|(pid, _)| (2..=4).contains(pid)),
        "{moves:?}"
    );
}

#[test]
fn other_task_goes_if_the_closest_may_not() {
    let loads = [(0, 20.0), (0, 47.0), (0, 60.0), (0, 73.0)];
    let of = |change: &dyn Fn(&mut Task)| {
        let mut snapshot = snapshot(&[&[1, 1]], &loads);
        change(&mut snapshot.tasks[1]);
        moves(&snapshot)
    };
    assert_eq!(of(&|task| task.may_migrate = false), [(3, 1)]);
    assert_eq!(of(&|task| task.allowed = only(&[0])), [(3, 1)]);
    assert_eq!(of(&|task| task.allowed = only(&[0, 1])), [(2, 1)]);
}

#[test]
fn all_filters_count_not_one_of_them() {
    let mut snapshot = snapshot(&[&[1, 1]], &many(40, 0, 10.0));
    for task in &mut snapshot.tasks[..20] {
        task.may_migrate = false;
    }
    for task in &mut snapshot.tasks[20..] {
        task.allowed = only(&[0]);
    }
    assert_eq!(moves(&snapshot), []);
    snapshot.tasks[7].may_migrate = true;
    assert_eq!(moves(&snapshot), [(8, 1)]);
}

#[test]
fn tasks_that_prefer_the_taker_migrate_first() {
    let loads = [(0, 20.0), (0, 47.0), (0, 60.0), (0, 73.0)];
    let mut snapshot = snapshot(&[&[1, 1]], &loads);
    snapshot.tasks[0].preferred = only(&[1]);
    snapshot.tasks[1].preferred = only(&[0]);
    let moves = moves(&snapshot);
    assert_eq!(moves[0], (1, 1));
}

#[test]
fn preference_is_no_permission() {
    let loads = [(0, 20.0), (0, 47.0), (0, 60.0), (0, 73.0)];
    let mut snapshot = snapshot(&[&[1, 1]], &loads);
    snapshot.tasks[0].preferred = only(&[1]);
    snapshot.tasks[0].allowed = only(&[0]);
    assert_eq!(moves(&snapshot), [(2, 1)]);
}

#[test]
fn task_is_moved_once_in_a_round() {
    // Node 1 receives tasks, and has two domains to balance.
    let loads = [many(90, 0, 10.0), many(30, 1, 10.0), many(3, 2, 10.0)].concat();
    let snapshot = snapshot(&[&[1, 1], &[1, 1]], &loads);
    let mut pids: Vec<_> = moves(&snapshot).iter().map(|(pid, _)| *pid).collect();
    let nr_moves = pids.len();
    pids.sort_unstable();
    pids.dedup();
    assert!(nr_moves > 20);
    assert_eq!(pids.len(), nr_moves);
}

#[test]
fn node_takes_into_its_least_loaded_domain_that_is_allowed() {
    let loads = [many(3, 0, 90.0), vec![(1, 40.0), (2, 10.0)]].concat();
    let mut snapshot = snapshot(&[&[1], &[1, 1]], &loads);
    assert_eq!(moves(&snapshot)[0].1, 2);
    for task in &mut snapshot.tasks {
        task.allowed = only(&[0, 1]);
    }
    assert_eq!(moves(&snapshot)[0].1, 1);
    for task in &mut snapshot.tasks {
        task.allowed = only(&[0]);
    }
    assert_eq!(moves(&snapshot), []);
}

#[test]
fn domains_of_a_node_that_is_off_are_evened_out() {
    // Node 0 has 15 % more than its share, which is tolerated. Domain 1 has its share of the load
    // of the machine, but less than its share of the load of node 0.
    let loads = [many(130, 0, 1.0), many(100, 1, 1.0), many(170, 2, 1.0)].concat();
    let snapshot = snapshot(&[&[1, 1], &[2]], &loads);
    assert!(!moves(&snapshot).is_empty());
    assert!(moves(&snapshot).iter().all(|(_, to)| *to == 1));
}

#[test]
fn small_domain_is_not_overrun() {
    // If domain 1 took a task, its load per CPU would be higher than that of domain 0 is now.
    let loads = [(0, 100.0), (0, 100.0), (0, 100.0)];
    assert_eq!(moves(&snapshot(&[&[5, 1]], &loads)), []);
}

#[test]
fn there_are_no_nans() {
    let idle = snapshot(&[&[1, 1], &[2]], &many(5, 0, 0.0));
    let mut odd = snapshot(&[&[1, 1]], &many(4, 0, f64::NAN));
    odd.tasks[0].weight = 0;
    odd.tasks[1].duty_cycle = f64::INFINITY;
    odd.tasks[2].domain = usize::MAX;
    odd.tasks[3].duty_cycle = f64::MIN_POSITIVE;
    let cases = [
        Snapshot::default(),
        snapshot(&[], &[(0, 10.0)]),
        snapshot(&[&[4, 4], &[4]], &[]),
        snapshot(&[&[2, 2]], &many(3, 0, f64::MIN_POSITIVE)),
        idle,
        odd,
    ];
    for case in cases {
        for kind in [LoadKind::Weighted, LoadKind::DutyCycle] {
            let plan = balance(&case, kind);
            let of_domain = |of: &DomainLoad| [of.load, of.imbal, of.delta];
            let of_node = |of: &NodeLoad| [of.load, of.imbal, of.delta];
            let domains = plan.domains.iter().flat_map(of_domain);
            let numbers = domains.chain(plan.nodes.iter().flat_map(of_node));
            assert!(
                numbers.chain([plan.total_load]).all(f64::is_finite),
                "{plan:?}"
            );
        }
    }
}

#[test]
fn idle_tasks_stay() {
    let loads = [many(50, 0, 0.0), many(2, 0, 100.0)].concat();
    assert_eq!(moves(&snapshot(&[&[1, 1]], &loads)).len(), 1);
}

/// Counts how often tasks are examined instead of measuring the time, which depends on the load of
/// the test machine.
#[test]
fn few_tasks_are_looked_at() {
    for nr_tasks in [1_000, 10_000, 100_000] {
        let nodes: Vec<&[u32]> = vec![&[8; 8]; 4];
        let load = |idx: usize| f64::from(u32::try_from(idx * 7919 % 1009).unwrap()) / 10.0;
        let loads: Vec<_> = (0..nr_tasks).map(|idx| (idx % 5, load(idx))).collect();
        let snapshot = snapshot(&nodes, &loads);
        let loads = task_loads(&snapshot, LoadKind::DutyCycle);
        let mut cluster = Cluster::new(&snapshot, loads);
        cluster.balance_nodes(&BETWEEN_NODES);
        cluster.balance_domains(&WITHIN_NODE);
        let nr_looks = cluster.nr_looks;
        let nr_moves = cluster.into_plan().migrations.len();
        assert!(nr_moves > nr_tasks / 8, "{nr_tasks}: {nr_moves}");
        assert!(nr_looks < 2 * nr_tasks, "{nr_tasks}: {nr_looks}");
    }
}
