//! Groups CPUs by shared caches.

use std::collections::BTreeMap;

use super::raw::{RawCache, RawCpu};
use super::Llc;
use crate::cpumask::Cpumask;

/// Identifies a cache among the caches of the same level.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum CacheKey {
    /// The lowest online CPU that shares it.
    Leader(usize),
    /// For CPUs without a list of sharers: the package, and the kernel's id of the cache. Ids are
    /// unique across packages only on some machines.
    Id(Option<u32>, u32),
}

/// What identifies an LLC: the L3 if it is known, else the L2, else the node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum LlcKey {
    L3(CacheKey),
    L2(CacheKey),
    /// Neither cache is known. All such CPUs of a node form one LLC.
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

    /// The kernel's id of the cache, if the CPUs that share it agree. In some VMs each CPU has
    /// its own id for a shared cache.
    fn kernel_id<'a>(self, mut members: impl Iterator<Item = &'a RawCpu>) -> Option<u32> {
        let id = |cpu: &RawCpu| match self {
            Self::L3(_) => cpu.l3.id,
            Self::L2(_) => cpu.l2.id,
            Self::Node => None,
        };
        let first = members.find_map(id)?;
        let agreed = members.filter_map(id).all(|other| other == first);
        agreed.then_some(first)
    }
}

/// Groups CPUs into LLCs, without cores yet. `nodes` and `packages` contain the node index and the
/// package of each of `cpus`. CPUs of different nodes never share an LLC: a cache that spans nodes,
/// as in some VMs, is split into one LLC for each node.
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
                kernel_id: key.kernel_id(members.iter().map(|&at| &cpus[at])),
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

/// For each of `cpus`, the lowest online CPU that shares its level 2 cache; `None` if the cache is
/// unknown.
pub(super) fn l2_leaders(cpus: &[RawCpu], packages: &[Option<u32>]) -> Vec<Option<usize>> {
    let keys = cache_keys(cpus, packages, |cpu| &cpu.l2);
    let mut leaders = BTreeMap::new();
    for (cpu, key) in cpus.iter().zip(&keys) {
        leaders.entry(*key).or_insert(cpu.id);
    }
    let leader = |key: &Option<CacheKey>| key.and_then(|_| leaders.get(key).copied());
    keys.iter().map(leader).collect()
}

/// For each of `cpus`, its cache at one level.
///
/// The list of sharers has precedence over the id: it is the kernel's own conclusion, while ids are
/// passed through from the processor. A CPU without a list has the cache of a CPU whose list
/// contains it, else the cache of a CPU that has a list, the same package and the same id. The
/// remaining CPUs share a cache if their packages and ids are equal.
fn cache_keys(
    cpus: &[RawCpu],
    packages: &[Option<u32>],
    cache: impl Fn(&RawCpu) -> &RawCache,
) -> Vec<Option<CacheKey>> {
    let id_of = |at: usize| Some((packages[at], cache(&cpus[at]).id?));
    let with_list: Vec<_> = (0..cpus.len())
        .filter_map(|at| {
            let list = cache(&cpus[at]).shared.as_ref()?;
            Some((at, list, CacheKey::Leader(list.first()?)))
        })
        .collect();
    let mut keys: Vec<Option<CacheKey>> = vec![None; cpus.len()];
    for &(at, _, key) in &with_list {
        keys[at] = Some(key);
    }
    let by_id: BTreeMap<_, _> = with_list
        .iter()
        .rev()
        .filter_map(|&(at, _, key)| Some((id_of(at)?, key)))
        .collect();
    for (at, cpu) in cpus
        .iter()
        .enumerate()
        .filter(|(_, cpu)| cache(cpu).shared.is_none())
    {
        let listed = with_list
            .iter()
            .find(|(_, list, _)| list.test(cpu.id))
            .map(|&(.., key)| key);
        keys[at] = listed.or_else(|| {
            let (package, id) = id_of(at)?;
            Some(
                by_id
                    .get(&(package, id))
                    .copied()
                    .unwrap_or(CacheKey::Id(package, id)),
            )
        });
    }
    keys
}
