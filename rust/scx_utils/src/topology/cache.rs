//! Which CPUs share a cache.

use std::collections::BTreeMap;

use super::raw::{RawCache, RawCpu};
use super::Llc;
use crate::cpumask::Cpumask;

/// What tells one cache of a level from another.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum CacheKey {
    /// Caches without an id: the lowest online CPU that shares it.
    Leader(usize),
    /// The kernel's id, with the package: only some machines count ids through.
    Id(Option<u32>, u32),
}

/// Where the CPUs of an LLC were found to share it; the first that is known holds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum LlcKey {
    L3(CacheKey),
    L2(CacheKey),
    /// Nothing is known: the rest of the node.
    Node,
}

impl LlcKey {
    fn level(self) -> Option<u32> {
        match self {
            Self::L3(_) => Some(3),
            Self::L2(_) => Some(2),
            Self::Node => None,
        }
    }

    fn kernel_id(self) -> Option<u32> {
        match self {
            Self::L3(CacheKey::Id(_, id)) | Self::L2(CacheKey::Id(_, id)) => Some(id),
            _ => None,
        }
    }
}

/// Groups CPUs into LLCs without cores yet. `nodes` gives the node index of each of
/// `cpus`, `packages` its package. CPUs of different nodes never share an LLC: where
/// sysfs says that they do, as in some VMs, each node has its part of it.
pub(super) fn llcs(
    cpus: &[RawCpu],
    nodes: &[usize],
    packages: &[Option<u32>],
    nr_cpu_ids: usize,
) -> Vec<Llc> {
    let l3 = cache_keys(cpus, packages, |cpu| &cpu.l3);
    let l2 = cache_keys(cpus, packages, |cpu| &cpu.l2);
    let mut groups: BTreeMap<(usize, LlcKey), Vec<usize>> = BTreeMap::new();
    for (at, &node) in nodes.iter().enumerate() {
        let l2_or_node = || l2[at].map_or(LlcKey::Node, LlcKey::L2);
        let key = l3[at].map_or_else(l2_or_node, LlcKey::L3);
        groups.entry((node, key)).or_default().push(at);
    }
    let mut llcs: Vec<Llc> = groups
        .into_iter()
        .map(|((node, key), members)| {
            let mut span = Cpumask::new(nr_cpu_ids);
            for &at in &members {
                span.set_range(cpus[at].id, cpus[at].id);
            }
            Llc {
                index: 0,
                kernel_id: key.kernel_id(),
                level: key.level(),
                node,
                package_id: members.iter().find_map(|&at| packages[at]),
                cores: Vec::new(),
                span,
            }
        })
        .collect();
    llcs.sort_by_key(|llc| (llc.node, llc.package_id, llc.kernel_id, llc.span.first()));
    for (index, llc) in llcs.iter_mut().enumerate() {
        llc.index = index;
    }
    llcs
}

/// For each of `cpus` the lowest online CPU that shares its level 2 cache.
pub(super) fn l2_leaders(cpus: &[RawCpu], packages: &[Option<u32>]) -> Vec<Option<usize>> {
    let keys = cache_keys(cpus, packages, |cpu| &cpu.l2);
    let mut leaders = BTreeMap::new();
    for (cpu, key) in cpus.iter().zip(&keys) {
        leaders.entry(*key).or_insert(cpu.id);
    }
    let leader = |key: &Option<CacheKey>| key.and_then(|_| leaders.get(key).copied());
    keys.iter().map(leader).collect()
}

/// The cache of one level that each of `cpus` has.
///
/// A CPU's own id holds; else the id of the lowest CPU that it shares the cache with
/// and that has one; else the list of those itself. A CPU that knows neither has the
/// cache of which another CPU says that the two share it.
fn cache_keys(
    cpus: &[RawCpu],
    packages: &[Option<u32>],
    cache: impl Fn(&RawCpu) -> &RawCache,
) -> Vec<Option<CacheKey>> {
    let at_of: BTreeMap<usize, usize> =
        cpus.iter().zip(0..).map(|(cpu, at)| (cpu.id, at)).collect();
    let id_of = |at: usize| Some(CacheKey::Id(packages[at], cache(&cpus[at]).id?));
    let key_of = |at: usize| {
        id_of(at).or_else(|| {
            let shared = cache(&cpus[at]).shared.as_ref()?;
            let with_id = shared.iter().find_map(|cpu| id_of(*at_of.get(&cpu)?));
            with_id.or_else(|| shared.first().map(CacheKey::Leader))
        })
    };
    let keys: Vec<_> = (0..cpus.len()).map(key_of).collect();
    let lists = || cpus.iter().map(|cpu| cache(cpu).shared.as_ref());
    let known: Vec<_> = lists()
        .zip(&keys)
        .filter_map(|(list, key)| list.zip(*key))
        .collect();
    let adopted = |cpu: &RawCpu| {
        let mut known = known.iter();
        known
            .find(|(list, _)| list.test(cpu.id))
            .map(|&(_, key)| key)
    };
    let with_adopted = keys.iter().zip(cpus);
    with_adopted
        .map(|(key, cpu)| key.or_else(|| adopted(cpu)))
        .collect()
}
