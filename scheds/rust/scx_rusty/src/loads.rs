// SPDX-License-Identifier: GPL-2.0-only
//! The loads of tasks. Each balancing round reads them with a BPF iterator.

use std::io::Read as _;

use anyhow::{Context as _, Result};
use libbpf_rs::{Iter, Link};
use scx_utils::zerocopy::FromBytes as _;

use crate::balancer::{Domain, DomainMask, Snapshot, Task};
use crate::bpf_intf::rusty_load;
use crate::domains::Domains;

/// `SCX_RAVG_ONE` of `scx/ravg.h`.
const DUTY_CYCLE_ONE: f64 = 4_294_967_296.0;

/// Reads the loads.
#[derive(Debug)]
pub(crate) struct Loads {
    link: Link,
    domains: Vec<Domain>,
    /// The kernel's id and the domains of each node.
    of_node: Vec<(usize, DomainMask)>,
    leaves_kworkers: bool,
    uses_mempolicy: bool,
}

impl Loads {
    pub(crate) fn new(
        link: Link,
        domains: &Domains,
        leaves_kworkers: bool,
        uses_mempolicy: bool,
    ) -> Self {
        let nodes = domains.nodes.iter().enumerate();
        let of_node = nodes.map(|(index, kernel_id)| {
            let mut mask = DomainMask::default();
            for (domain, of) in domains.domains.iter().enumerate() {
                if of.node == index {
                    mask.insert(domain);
                }
            }
            (*kernel_id, mask)
        });
        Self {
            link,
            of_node: of_node.collect(),
            domains: domains
                .domains
                .iter()
                .map(|domain| Domain {
                    node: domain.node,
                    nr_cpus: u32::try_from(domain.cpus.weight()).unwrap_or(u32::MAX),
                })
                .collect(),
            leaves_kworkers,
            uses_mempolicy,
        }
    }

    /// Reads the loads of all tasks that were runnable recently.
    pub(crate) fn read(&self) -> Result<Snapshot> {
        let mut bytes = Vec::new();
        let mut iter = Iter::new(&self.link).context("cannot begin to read loads")?;
        iter.read_to_end(&mut bytes).context("cannot read loads")?;
        let records = bytes.chunks_exact(size_of::<rusty_load>());
        let tasks = records.filter_map(|record| rusty_load::read_from_bytes(record).ok());
        Ok(Snapshot {
            domains: self.domains.clone(),
            tasks: tasks.filter_map(|load| self.task(&load)).collect(),
        })
    }

    #[allow(clippy::cast_precision_loss)] // A relative error of 2^-53.
    fn task(&self, load: &rusty_load) -> Option<Task> {
        let domain = usize::try_from(load.dom).ok()?;
        (domain < self.domains.len()).then(|| Task {
            pid: load.pid,
            weight: load.weight.clamp(1, scx_utils::infeasible::WEIGHT_MAX),
            duty_cycle: (load.duty_cycle as f64 / DUTY_CYCLE_ONE).clamp(0.0, 1.0),
            domain,
            allowed: DomainMask::from_words(load.allowed),
            preferred: self.preferred(load.preferred_nodes),
            may_migrate: !(self.leaves_kworkers && load.is_kworker != 0),
        })
    }

    fn preferred(&self, nodes: u64) -> DomainMask {
        let is_preferred = |kernel_id: usize| kernel_id < 64 && nodes >> kernel_id & 1 == 1;
        self.of_node
            .iter()
            .filter(|(kernel_id, _)| self.uses_mempolicy && is_preferred(*kernel_id))
            .fold(DomainMask::default(), |union, (_, mask)| union.or(*mask))
    }
}
