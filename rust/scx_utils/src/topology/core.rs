//! Groups CPUs into cores.

use std::collections::BTreeMap;

use super::raw::RawCpu;
use super::{Core, CoreType, Llc};
use crate::cpumask::Cpumask;

/// Die, cluster and core id of a CPU: on Arm with a device tree, core ids repeat in every
/// cluster. The package is not part of the key: CPUs are already grouped by package.
type CoreKey = (Option<u32>, Option<u32>, u32);

/// Groups CPUs into cores, and adds the cores to `llcs`. `llc_of` and `packages` contain the LLC
/// index and the package of each of `cpus`.
///
/// Threads of a core share an LLC and a package, and list each other as siblings. The kernel's
/// scheduler uses the same lists. A CPU without a list is a sibling of the CPUs that list it. The
/// remaining CPUs without lists are siblings if their die, cluster and core ids are equal.
pub(super) fn cores(
    cpus: &[RawCpu],
    llc_of: &[usize],
    packages: &[Option<u32>],
    llcs: &mut [Llc],
    nr_cpu_ids: usize,
) -> Vec<Core> {
    let mut buckets: BTreeMap<(usize, Option<u32>), Vec<&RawCpu>> = BTreeMap::new();
    for (cpu, place) in cpus.iter().zip(llc_of.iter().zip(packages)) {
        let (&llc, &package) = place;
        buckets.entry((llc, package)).or_default().push(cpu);
    }
    let mut cores = Vec::new();
    for ((llc, package_id), members) in buckets {
        for threads in groups(&members) {
            let mut span = Cpumask::new(nr_cpu_ids);
            for cpu in &threads {
                span.set_range(cpu.id, cpu.id);
            }
            let core = Core {
                index: 0,
                kernel_id: threads.iter().find_map(|cpu| cpu.core_id),
                node: llcs[llc].node,
                llc,
                package_id,
                core_type: CoreType::default(),
                span,
            };
            let first = threads.first();
            cores.push((core, first.map(|cpu| (cpu.die_id, cpu.cluster_id))));
        }
    }
    let mut cores = in_order(cores);
    for (index, core) in cores.iter_mut().enumerate() {
        core.index = index;
        llcs[core.llc].cores.push(index);
    }
    cores
}

/// Die and cluster of a core.
type Part = (Option<u32>, Option<u32>);

/// Sorts cores by node, package and kernel id. If a kernel id repeats within a package, die and
/// cluster are compared before the kernel id.
fn in_order(mut cores: Vec<(Core, Option<Part>)>) -> Vec<Core> {
    let key = |core: &Core| (core.node, core.package_id, core.kernel_id);
    cores.sort_by_key(|(core, _)| (key(core), core.span.first()));
    let mut pairs = cores.iter().zip(cores.iter().skip(1));
    let repeats = pairs.any(|((a, _), (b, _))| a.kernel_id.is_some() && key(a) == key(b));
    if repeats {
        // The sort is stable, so kernel ids stay sorted within a die and cluster.
        cores.sort_by_key(|(core, part)| (core.node, core.package_id, *part));
    }
    cores.into_iter().map(|(core, _)| core).collect()
}

/// Groups `members`, which share an LLC and a package and are sorted by id, into cores.
fn groups<'a>(members: &[&'a RawCpu]) -> Vec<Vec<&'a RawCpu>> {
    let mut groups: Vec<Vec<&RawCpu>> = Vec::new();
    let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut group_of_key: BTreeMap<CoreKey, usize> = BTreeMap::new();
    let by_id: BTreeMap<usize, &RawCpu> = members.iter().map(|cpu| (cpu.id, *cpu)).collect();
    let with_list: Vec<_> = members
        .iter()
        .filter(|cpu| cpu.siblings.is_some())
        .collect();
    for &cpu in members {
        let sibling = match &cpu.siblings {
            Some(list) => {
                let mut earlier = list.iter().take_while(|&other| other < cpu.id);
                earlier.find(|other| by_id.get(other).is_some_and(|other| agrees(other, cpu.id)))
            }
            None => {
                let mut earlier = with_list.iter().take_while(|other| other.id < cpu.id);
                earlier
                    .find(|other| agrees(other, cpu.id))
                    .map(|other| other.id)
            }
        };
        let key = key(cpu).filter(|_| cpu.siblings.is_none());
        let known = sibling.and_then(|sibling| group_of.get(&sibling).copied());
        let known = known.or_else(|| group_of_key.get(&key?).copied());
        let group = known.unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(cpu);
        group_of.insert(cpu.id, group);
        if let Some(key) = key {
            group_of_key.entry(key).or_insert(group);
        }
    }
    groups
}

/// Whether the CPU `id` may be a sibling of `cpu`, by the list of `cpu`; true if there is no list.
fn agrees(cpu: &RawCpu, id: usize) -> bool {
    cpu.siblings.as_ref().is_none_or(|list| list.test(id))
}

fn key(cpu: &RawCpu) -> Option<CoreKey> {
    Some((cpu.die_id, cpu.cluster_id, cpu.core_id?))
}
