// SPDX-License-Identifier: GPL-2.0-only
//! The loads of all domains, and the choice of the tasks that migrate.

use super::sorted_tasks::{Found, Goal, SortedTasks, Walk};
use super::{Costs, DomainLoad, DomainMask, Migration, NodeLoad, Plan, Snapshot};

/// Minimum gain of a migration, as a fraction of the mean load per CPU. After the migration, the
/// load per CPU of the giver has to be higher than the previous load per CPU of the taker by more
/// than this, and that of the taker has to be lower than the previous load per CPU of the giver by
/// more than this. A smaller gain may be a rounding error.
const GAIN_MIN: f64 = 1e-9;

/// Lower bound of the load that a transfer aims at, relative to the threshold. It matters if one of
/// two groups cannot be balanced and the other group is almost balanced. Without the bound, each
/// round would move half of the remaining imbalance of the other group, so smaller and smaller
/// tasks would migrate for hundreds of rounds.
const TRANSFER_MIN: f64 = 0.1;

/// A load and the number of CPUs that share it.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    load: f64,
    nr_cpus: f64,
}

impl Share {
    fn by_cpu(self) -> f64 {
        self.load / self.nr_cpus
    }

    /// How much the load exceeds the fair share of these CPUs, which is `mean` per CPU. Negative if
    /// the load is below the fair share.
    fn excess(self, mean: f64) -> f64 {
        self.load - self.nr_cpus * mean
    }

    fn is_off(self, mean: f64, threshold: f64) -> bool {
        self.excess(mean).abs() > threshold * mean * self.nr_cpus
    }

    /// The minimum load that a transfer from or to this group aims at.
    fn transfer_min(self, mean: f64, costs: &Costs) -> f64 {
        TRANSFER_MIN * costs.threshold * mean * self.nr_cpus
    }

    fn plus(self, other: Self) -> Self {
        Self {
            load: self.load + other.load,
            nr_cpus: self.nr_cpus + other.nr_cpus,
        }
    }

    /// Upper bound (exclusive) of a load that may move to `to`. If less than this moves, `self`
    /// stays above the initial load per CPU of `to`, and `to` stays below that of `self`, both by
    /// more than `GAIN_MIN * mean`.
    fn bound(self, to: Self, mean: f64) -> f64 {
        (self.by_cpu() - to.by_cpu() - GAIN_MIN * mean) * self.nr_cpus.min(to.nr_cpus)
    }
}

/// A giver or taker of load: a domain, or all domains of a node together.
#[derive(Debug, Default)]
struct Group {
    share: Share,
    domains: Vec<usize>,
    mask: DomainMask,
    /// The tasks of the group that may migrate.
    sorted_tasks: SortedTasks,
    /// Union of the domains where the tasks are allowed.
    allowed: DomainMask,
    /// Union of the domains that the tasks prefer.
    preferred: DomainMask,
    /// The load that the group may still give in this pass.
    allowance: f64,
    has_given: bool,
}

/// The loads of all domains, including the effect of the migrations chosen so far.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    snapshot: &'a Snapshot,
    loads: Vec<f64>,
    /// Indexes of the tasks that may migrate, in ascending order of load.
    order: Vec<usize>,
    has_moved: Vec<bool>,
    /// The load of each domain before the migrations.
    before: Vec<f64>,
    /// By how much the migrations chosen so far change the load of each domain.
    delta: Vec<f64>,
    /// Domain indexes by node.
    nodes: Vec<Vec<usize>>,
    /// The mean load per CPU of the machine.
    mean: f64,
    migrations: Vec<Migration>,
    /// How often [`Self::transfer`] examined a task. It may examine a task several times.
    #[cfg(test)]
    pub(crate) nr_looks: usize,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, loads: Vec<f64>) -> Self {
        let nr_domains = snapshot.domains.len();
        let mut before = vec![0.0; nr_domains];
        let mut order = Vec::new();
        for (idx, task) in snapshot.tasks.iter().enumerate() {
            if let Some(load) = before.get_mut(task.domain) {
                *load += loads[idx];
                if task.may_migrate {
                    order.push((loads[idx], idx));
                }
            }
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut nodes = Vec::new();
        for (idx, domain) in snapshot.domains.iter().enumerate() {
            if nodes.len() <= domain.node {
                nodes.resize_with(domain.node + 1, Vec::new);
            }
            nodes[domain.node].push(idx);
        }
        let mut cluster = Self {
            snapshot,
            loads,
            order: order.into_iter().map(|(_, idx)| idx).collect(),
            has_moved: vec![false; snapshot.tasks.len()],
            before,
            delta: vec![0.0; nr_domains],
            nodes,
            mean: 0.0,
            migrations: Vec::new(),
            #[cfg(test)]
            nr_looks: 0,
        };
        let all = (0..nr_domains).map(|domain| cluster.share(domain));
        let all = all.fold(Share::default(), Share::plus);
        if all.nr_cpus > 0.0 {
            cluster.mean = all.by_cpu();
        }
        cluster
    }

    fn share(&self, domain: usize) -> Share {
        Share {
            load: self.before[domain] + self.delta[domain],
            nr_cpus: f64::from(self.snapshot.domains[domain].nr_cpus),
        }
    }

    fn migrate(&mut self, idx: usize, to: usize) {
        let task = &self.snapshot.tasks[idx];
        self.has_moved[idx] = true;
        self.delta[task.domain] -= self.loads[idx];
        self.delta[to] += self.loads[idx];
        self.migrations.push(Migration {
            pid: task.pid,
            from: task.domain,
            to,
        });
    }

    /// The pass between nodes.
    pub(crate) fn balance_nodes(&mut self, costs: &Costs) {
        let mut groups = self.groups(&self.nodes);
        self.level(&mut groups, costs);
    }

    /// The pass between the domains of each node.
    pub(crate) fn balance_domains(&mut self, costs: &Costs) {
        let alone = |domain: &usize| vec![*domain];
        let members: Vec<_> = self.nodes.iter().flatten().map(alone).collect();
        let mut groups = self.groups(&members);
        let mut rest = &mut groups[..];
        for len in self.nodes.iter().map(Vec::len).collect::<Vec<_>>() {
            let (of_node, others) = rest.split_at_mut(len);
            self.level(of_node, costs);
            rest = others;
        }
    }

    /// Returns the groups of a pass. `members`: the domains of each group.
    fn groups(&self, members: &[Vec<usize>]) -> Vec<Group> {
        let mut group_of = vec![0; self.snapshot.domains.len()];
        let mut groups = Vec::with_capacity(members.len());
        for (group, domains) in members.iter().enumerate() {
            for domain in domains {
                group_of[*domain] = group;
            }
            let shares = domains.iter().map(|domain| self.share(*domain));
            groups.push(Group {
                share: shares.fold(Share::default(), Share::plus),
                mask: domains.iter().copied().collect(),
                domains: domains.clone(),
                ..Group::default()
            });
        }
        for idx in &self.order {
            let task = &self.snapshot.tasks[*idx];
            let load = self.loads[*idx];
            if load > 0.0 && !self.has_moved[*idx] {
                let group = &mut groups[group_of[task.domain]];
                group.sorted_tasks.push(load, *idx);
                group.allowed = group.allowed.or(task.allowed);
                group.preferred = group.preferred.or(task.preferred);
            }
        }
        groups
    }

    /// Balances `groups`: groups above their share give load to groups below their share. The group
    /// with the highest load per CPU gives first. Each giver begins with the taker that has the
    /// lowest load per CPU.
    fn level(&mut self, groups: &mut [Group], costs: &Costs) {
        let shares = groups.iter().map(|group| group.share);
        let all = shares.fold(Share::default(), Share::plus);
        if all.nr_cpus <= 0.0 {
            return;
        }
        let mean = all.by_cpu();
        let (mut givers, mut takers) = (Vec::new(), Vec::new());
        for (idx, group) in groups.iter_mut().enumerate() {
            let excess = group.share.excess(mean);
            let least = group.share.transfer_min(mean, costs);
            group.allowance = (costs.push_max * excess).max(least);
            if excess > 0.0 {
                givers.push(idx);
            } else if excess < 0.0 {
                takers.push(idx);
            }
        }
        let by_cpu = |groups: &[Group], idx: usize| groups[idx].share.by_cpu();
        givers.sort_by(|a, b| by_cpu(groups, *b).total_cmp(&by_cpu(groups, *a)));
        for giver in givers {
            takers.sort_by(|a, b| by_cpu(groups, *a).total_cmp(&by_cpu(groups, *b)));
            for taker in &takers {
                let Ok([giver, taker]) = groups.get_disjoint_mut([giver, *taker]) else {
                    continue;
                };
                let is_off = |group: &Group| group.share.is_off(mean, costs.threshold);
                if !is_off(giver) && !is_off(taker) {
                    break;
                }
                self.transfer(giver, taker, mean, costs);
            }
        }
    }

    /// Transfers load from one group to another. The first task that a group gives in a pass may be
    /// heavier than the wanted load, since tasks cannot be split. Later tasks must not be heavier
    /// than the load that is still wanted.
    fn transfer(&mut self, giver: &mut Group, taker: &mut Group, mean: f64, costs: &Costs) {
        let imbal = giver.share.excess(mean).min(-taker.share.excess(mean));
        if imbal <= 0.0 {
            return;
        }
        let least = [&*giver, &*taker].map(|group| group.share.transfer_min(mean, costs));
        let wanted = (costs.transfer * imbal).max(least[0].min(least[1]));
        let mut wanted = wanted.min(giver.allowance);
        let bound = giver.share.bound(taker.share, mean);
        let better = giver.preferred.and(taker.mask);
        let allowed = giver.allowed.and(taker.mask);
        for (places, is_choosy) in [(better, true), (allowed, false)] {
            if wanted <= 0.0 || places.is_empty() {
                continue;
            }
            let mut walk = Walk::of_lighter(&giver.sorted_tasks, wanted);
            if !giver.has_given {
                walk = walk.and_heavier();
            }
            let goal = |wanted: f64| Goal {
                wanted,
                imbal,
                bound,
            };
            while let Some(found) = walk.next(&mut giver.sorted_tasks, goal(wanted)) {
                let Some(to) = self.target(found, giver, taker, is_choosy) else {
                    continue;
                };
                self.migrate(found.task, to);
                giver.give(found, taker);
                wanted -= found.load;
                walk.shrink(&giver.sorted_tasks, wanted);
            }
        }
    }

    /// Returns the destination of a task. This is the least loaded of the taker's domains where the
    /// task is allowed and where the migration is a gain. If `is_choosy`, the task also has to
    /// prefer the domain.
    fn target(
        &mut self,
        found: Found,
        giver: &Group,
        taker: &Group,
        is_choosy: bool,
    ) -> Option<usize> {
        #[cfg(test)]
        {
            self.nr_looks += 1;
        }
        let task = &self.snapshot.tasks[found.task];
        if found.load >= giver.share.bound(taker.share, self.mean) {
            return None;
        }
        let from = self.share(task.domain);
        let fits = |domain: &usize| {
            task.allowed.contains(*domain)
                && (!is_choosy || task.preferred.contains(*domain))
                && found.load < from.bound(self.share(*domain), self.mean)
        };
        let by_cpu = |domain: &usize| self.share(*domain).by_cpu();
        let domains = taker.domains.iter().copied().filter(fits);
        domains.min_by(|a, b| by_cpu(a).total_cmp(&by_cpu(b)))
    }

    pub(crate) fn into_plan(self) -> Plan {
        let total_load: f64 = self.before.iter().sum();
        let nr_cpus: f64 = (0..self.before.len())
            .map(|domain| self.share(domain).nr_cpus)
            .sum();
        let ideal = |domain: usize| total_load * self.share(domain).nr_cpus / nr_cpus;
        let of_domain = |domain: usize| DomainLoad {
            load: self.before[domain],
            imbal: self.before[domain] - ideal(domain),
            delta: self.delta[domain],
        };
        let domains: Vec<_> = (0..self.before.len()).map(of_domain).collect();
        let of_node = |of_node: Vec<usize>| NodeLoad {
            load: of_node.iter().map(|domain| domains[*domain].load).sum(),
            imbal: of_node.iter().map(|domain| domains[*domain].imbal).sum(),
            delta: of_node.iter().map(|domain| domains[*domain].delta).sum(),
            domains: of_node,
        };
        Plan {
            total_load,
            nodes: self.nodes.into_iter().map(of_node).collect(),
            domains,
            migrations: self.migrations,
        }
    }
}

impl Group {
    fn give(&mut self, found: Found, taker: &mut Self) {
        self.sorted_tasks.take(found.place);
        self.share.load -= found.load;
        self.allowance -= found.load;
        self.has_given = true;
        taker.share.load += found.load;
    }
}
