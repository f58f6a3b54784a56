// SPDX-License-Identifier: GPL-2.0-only
//! The domains and their CPUs. Domains are numbered from 0 without gaps, node by node, whatever the
//! kernel's ids of caches and nodes are. Each domain has at least one online CPU.

use anyhow::{ensure, Context as _, Result};
use scx_utils::cpumask::{Cpumask, CpumaskError};
use scx_utils::topology::Topology;

use crate::balancer::DomainMask;
use crate::bpf_intf::{RUSTY_DOMS_MAX, RUSTY_NODES_MAX};

/// CPUs that share a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Domain {
    /// Index into [`Domains::nodes`].
    pub(crate) node: usize,
    /// Online CPUs.
    pub(crate) cpus: Cpumask,
}

/// The domains of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Domains {
    /// Indexed by domain id.
    pub(crate) domains: Vec<Domain>,
    /// The kernel's ids of the nodes that have domains.
    pub(crate) nodes: Vec<usize>,
}

/// The index of a node, and some of its CPUs.
type Span = (usize, Cpumask);

impl Domains {
    /// Creates a domain for each last-level cache or, if there are `cpumasks`, the domains of
    /// [`by_hand`].
    pub(crate) fn new(topology: &Topology, cpumasks: &[String]) -> Result<Self> {
        let nodes = topology.nodes();
        let spans = if cpumasks.is_empty() {
            let llcs = topology.llcs().iter();
            llcs.map(|llc| (llc.node, llc.span().clone())).collect()
        } else {
            let nodes: Vec<_> = nodes.iter().map(|node| node.span().clone()).collect();
            by_hand(topology.online(), &nodes, cpumasks)?
        };
        let kernel_ids: Vec<_> = nodes.iter().map(|node| node.kernel_id).collect();
        Self::number(spans, &kernel_ids)
    }

    /// Numbers the domains in the order of their nodes. Skips domains without CPUs, and nodes
    /// without domains.
    fn number(mut spans: Vec<Span>, kernel_ids: &[usize]) -> Result<Self> {
        spans.retain(|(_, cpus)| !cpus.is_empty());
        spans.sort_by_key(|(node, _)| *node);
        let mut of = Self {
            domains: Vec::with_capacity(spans.len()),
            nodes: Vec::new(),
        };
        let mut last = None;
        for (node, cpus) in spans {
            if last != Some(node) {
                of.nodes.push(kernel_ids[node]);
                last = Some(node);
            }
            let node = of.nodes.len() - 1;
            of.domains.push(Domain { node, cpus });
        }
        of.within_limits()
    }

    fn within_limits(self) -> Result<Self> {
        let most = usize::try_from(RUSTY_DOMS_MAX)?;
        let nr_domains = self.domains.len();
        ensure!(
            nr_domains <= most,
            "{nr_domains} domains are more than {most}: use --cpumasks to make fewer"
        );
        let (most, nr_nodes) = (usize::try_from(RUSTY_NODES_MAX)?, self.nodes.len());
        ensure!(nr_nodes <= most, "{nr_nodes} nodes are more than {most}");
        Ok(self)
    }

    /// Returns the first domain of a node. The ids of the domains of a node are consecutive.
    pub(crate) fn first_of_node(&self, node: usize) -> usize {
        self.domains.partition_point(|domain| domain.node < node)
    }

    /// Returns the CPUs of the domains in `mask` as a bit mask of 64 CPUs per word, with a bit for
    /// each possible CPU.
    pub(crate) fn cpus_of(&self, mask: &DomainMask) -> Vec<u64> {
        let mut words = vec![0; self.nr_words()];
        let domains = self.domains.iter().enumerate();
        for (_, domain) in domains.filter(|(id, _)| mask.contains(*id)) {
            for (word, of) in words.iter_mut().zip(domain.cpus.words()) {
                *word |= of;
            }
        }
        words
    }

    fn nr_words(&self) -> usize {
        self.domains.first().map_or(0, |of| of.cpus.words().len())
    }
}

/// Parses `text` as a list of CPUs if it contains a range, else as a hexadecimal mask, whose groups
/// may be separated by commas.
fn parse(text: &str, nr_cpu_ids: usize) -> Result<Cpumask, CpumaskError> {
    if text.contains('-') {
        Cpumask::from_list(text, nr_cpu_ids)
    } else {
        Cpumask::from_hex(text, nr_cpu_ids)
    }
}

/// Creates on each node a domain for the CPUs of each mask, and another domain for the CPUs that
/// are in none of the masks.
fn by_hand(online: &Cpumask, nodes: &[Cpumask], cpumasks: &[String]) -> Result<Vec<Span>> {
    let mut left = online.clone();
    let mut spans = Vec::new();
    for text in cpumasks {
        let mask = parse(text, online.nr_cpu_ids());
        let mask = mask.with_context(|| format!("--cpumasks {text}"))?;
        let mask = mask.and(online);
        ensure!(
            mask.is_subset(&left),
            "--cpumasks {text}: a CPU is in two masks"
        );
        left = left.and_not(&mask);
        spans.push(mask);
    }
    spans.push(left);
    let of_node = |(index, node): (usize, &Cpumask)| {
        let spans = spans.iter().map(|span| (index, span.and(node)));
        spans.collect::<Vec<_>>()
    };
    Ok(nodes.iter().enumerate().flat_map(of_node).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(list: &str) -> Cpumask {
        Cpumask::from_list(list, 8).unwrap()
    }

    /// Returns the CPUs and the node index of each domain, on a machine with CPUs 0 to 3 in node 3
    /// and CPUs 4 to 6 in node 5. CPU 7 is offline.
    fn domains(cpumasks: &[&str]) -> Result<Vec<(String, usize)>> {
        let cpumasks: Vec<_> = cpumasks.iter().map(ToString::to_string).collect();
        let spans = by_hand(&mask("0-6"), &[mask("0-3"), mask("4-6")], &cpumasks)?;
        let of = Domains::number(spans, &[3, 5])?;
        assert_eq!(of.nodes, [3, 5]);
        for (id, domain) in of.domains.iter().enumerate() {
            assert!(of.first_of_node(domain.node) <= id);
            assert!(id < of.first_of_node(domain.node + 1));
        }
        let told = of.domains.iter();
        Ok(told.map(|of| (of.cpus.to_list(), of.node)).collect())
    }

    fn told(domains: &[(&str, usize)]) -> Vec<(String, usize)> {
        let told = domains.iter().map(|(cpus, node)| (cpus.to_string(), *node));
        told.collect()
    }

    #[test]
    fn masks_are_cut_at_nodes_and_the_rest_is_a_domain_too() {
        let wanted = [("0-1", 0), ("2-3", 0), ("4", 1), ("5-6", 1)];
        assert_eq!(domains(&["3", "2-4"]).unwrap(), told(&wanted));
    }

    #[test]
    fn offline_cpus_are_in_no_domain() {
        assert_eq!(
            domains(&["80", "0-7"]).unwrap(),
            told(&[("0-3", 0), ("4-6", 1)])
        );
    }

    #[test]
    fn hexadecimal_may_be_in_groups() {
        let wanted = [("0,3", 0), ("1-2", 0), ("4-6", 1)];
        assert_eq!(domains(&["0,00000009"]).unwrap(), told(&wanted));
    }

    #[test]
    fn invalid_masks_are_refused() {
        for (masks, words) in [
            (&["1", "3"][..], "--cpumasks 3: a CPU is in two masks"),
            (&["x"], "--cpumasks x"),
            (&["0-99"], "--cpumasks 0-99"),
        ] {
            let error = domains(masks).unwrap_err();
            assert!(format!("{error:#}").contains(words), "{error:#}");
        }
    }

    #[test]
    fn ids_have_no_gaps_whatever_comes_first() {
        let spans = vec![
            (2, mask("4")),
            (0, mask("1")),
            (1, mask("")),
            (2, mask("0")),
        ];
        let of = Domains::number(spans, &[7, 8, 9]).unwrap();
        assert_eq!(of.nodes, [7, 9]);
        let nodes: Vec<_> = of.domains.iter().map(|domain| domain.node).collect();
        assert_eq!(nodes, [0, 1, 1]);
    }

    #[test]
    fn masks_of_cpus_have_a_bit_for_every_possible_one() {
        let domain = |list| Domain {
            node: 0,
            cpus: Cpumask::from_list(list, 130).unwrap(),
        };
        let domains = vec![domain("0,64"), domain("1"), domain("3,129")];
        let of = Domains {
            domains,
            nodes: vec![0],
        };
        let mut mask = DomainMask::default();
        assert_eq!(of.cpus_of(&mask), [0, 0, 0]);
        mask.insert(1);
        assert_eq!(of.cpus_of(&mask), [2, 0, 0]);
        mask.insert(2);
        assert_eq!(of.cpus_of(&mask), [0b1010, 0, 2]);
    }

    #[test]
    fn limits_are_named() {
        let nr = usize::try_from(RUSTY_DOMS_MAX).unwrap() + 1;
        let error = Domains::number(vec![(0, mask("1")); nr], &[0]).unwrap_err();
        assert!(error.to_string().contains("use --cpumasks"), "{error}");
        let nr = usize::try_from(RUSTY_NODES_MAX).unwrap() + 1;
        let spans = (0..nr).map(|node| (node, mask("1"))).collect();
        let ids: Vec<_> = (0..nr).collect();
        let error = Domains::number(spans, &ids).unwrap_err();
        assert!(error.to_string().contains("65 nodes"), "{error}");
    }
}
