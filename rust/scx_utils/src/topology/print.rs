//! The topology as text, for `--print-topology`.
//!
//! The first line has the numbers of CPUs, nodes, LLCs and cores. Then there is a line for each
//! mask that is not empty (possible, online, offline, absent), and a tree: nodes, their LLCs, and
//! in each LLC one line for each kind of core. So the number of lines depends on the nodes, LLCs
//! and kinds of cores, but not on the number of CPUs.

use std::fmt;

use super::{Core, CoreType, Cpu, Llc, Node, Topology};
use crate::cpumask::{ranges, Cpumask};

/// Number of columns in a line of cores.
const COLUMNS: usize = 6;

/// The common properties of the cores of a line.
#[derive(Eq, PartialEq)]
struct Kind {
    threads: usize,
    core_type: CoreType,
    capacity: u32,
    min_freq_khz: Option<u32>,
    max_freq_khz: Option<u32>,
}

/// Equal cores of an LLC.
struct Alike<'a> {
    kind: Kind,
    cores: Vec<&'a Core>,
    span: Cpumask,
}

impl Topology {
    /// Groups the cores of `llc` by kind. The groups are in the order of their first cores.
    fn alike(&self, llc: &Llc) -> Vec<Alike<'_>> {
        let mut groups: Vec<Alike<'_>> = Vec::new();
        for core in llc.cores.iter().filter_map(|&core| self.cores.get(core)) {
            let Some(first) = core.span.first().and_then(|cpu| self.cpu(cpu)) else {
                continue;
            };
            let kind = Kind::of(core, first);
            let at = groups.iter().position(|group| group.kind == kind);
            let at = at.unwrap_or_else(|| {
                groups.push(Alike {
                    kind,
                    cores: Vec::new(),
                    span: Cpumask::new(self.nr_cpu_ids),
                });
                groups.len() - 1
            });
            groups[at].cores.push(core);
            groups[at].span |= &core.span;
        }
        groups
    }

    fn write_masks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offline = self.possible.and_not(&self.online);
        let absent = self.possible.and_not(&self.present);
        for (name, mask) in [
            ("possible", &self.possible),
            ("online", &self.online),
            ("offline", &offline),
            ("absent", &absent),
        ] {
            if !mask.is_empty() {
                writeln!(f, "{name:<9} {}", mask.to_list())?;
            }
        }
        Ok(())
    }

    fn write_node(
        &self,
        f: &mut fmt::Formatter<'_>,
        node: &Node,
        widths: &[usize; COLUMNS],
    ) -> fmt::Result {
        write!(f, "node {}", node.index)?;
        if node.kernel_id != node.index {
            write!(f, " (id {})", node.kernel_id)?;
        }
        match node.span.is_empty() {
            true => write!(f, ": no CPUs")?,
            false => write!(f, ": CPUs {}", node.span.to_list())?,
        }
        if self.nodes.len() > 1 {
            let distances: Vec<_> = node.distances.iter().map(u32::to_string).collect();
            write!(f, ", distances {}", distances.join(" "))?;
        }
        writeln!(f)?;
        for llc in node.llcs.iter().filter_map(|&llc| self.llcs.get(llc)) {
            writeln!(f, "  {llc}")?;
            for row in self.alike(llc).iter().map(Alike::row) {
                let cells = row.iter().zip(widths);
                let padded = cells.map(|(cell, &width)| format!("{cell:<width$}"));
                let line = padded.collect::<Vec<_>>().join("  ");
                writeln!(f, "    {}", line.trim_end())?;
            }
        }
        Ok(())
    }

    /// The width of each column over the whole tree.
    fn widths(&self) -> [usize; COLUMNS] {
        let mut widths = [0; COLUMNS];
        for alike in self.llcs.iter().flat_map(|llc| self.alike(llc)) {
            for (width, cell) in widths.iter_mut().zip(alike.row()) {
                *width = cell.len().max(*width);
            }
        }
        widths
    }
}

impl Kind {
    fn of(core: &Core, cpu: &Cpu) -> Self {
        Self {
            threads: core.span.weight(),
            core_type: core.core_type,
            capacity: cpu.capacity,
            min_freq_khz: cpu.min_freq_khz,
            max_freq_khz: cpu.max_freq_khz,
        }
    }
}

impl Alike<'_> {
    fn row(&self) -> [String; COLUMNS] {
        let cores = ranges(self.cores.iter().map(|core| core.index));
        let plural = if self.cores.len() > 1 { "s" } else { "" };
        [
            format!("core{plural} {cores}"),
            format!("CPUs {}", self.span.to_list()),
            self.threads(),
            self.kind.core_type.name().to_owned(),
            format!("capacity {}", self.kind.capacity),
            frequencies(self.kind.min_freq_khz, self.kind.max_freq_khz),
        ]
    }

    /// Threads per core, and with SMT the CPUs of the first core as an example.
    fn threads(&self) -> String {
        let first = self.cores.first();
        let siblings = first.map_or_else(String::new, |core| core.span.to_list());
        let more = if self.cores.len() > 1 { ", ..." } else { "" };
        match self.kind.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads ({siblings}{more})"),
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let possible = counted(self.nr_cpus_possible(), "possible CPU");
        let online = self.nr_cpus_online();
        let nodes = counted(self.nodes.len(), "node");
        let llcs = counted(self.llcs.len(), "LLC");
        let cores = counted(self.cores.len(), "core");
        let smt = match self.smt_width {
            1 => "no SMT".to_owned(),
            width => format!("SMT {width}"),
        };
        writeln!(
            f,
            "{possible}, {online} online: {nodes}, {llcs}, {cores}, {smt}"
        )?;
        self.write_masks(f)?;
        let widths = self.widths();
        self.nodes
            .iter()
            .try_for_each(|node| self.write_node(f, node, &widths))
    }
}

impl fmt::Display for Llc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self
            .kernel_id
            .map_or("no id".to_owned(), |id| format!("id {id}"));
        let source = match self.level {
            Some(level) => format!("L{level}, {id}"),
            None => "caches unknown".to_owned(),
        };
        write!(
            f,
            "LLC {} ({source}): CPUs {}",
            self.index,
            self.span.to_list()
        )
    }
}

/// A number with its noun: `1 node`, `2 nodes`.
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A range of frequencies, as far as it is known.
fn frequencies(min_khz: Option<u32>, max_khz: Option<u32>) -> String {
    match (min_khz.map(mhz), max_khz.map(mhz)) {
        (Some(min), Some(max)) => format!("{min}-{max} MHz"),
        (None, Some(max)) => format!("up to {max} MHz"),
        (Some(min), None) => format!("from {min} MHz"),
        (None, None) => String::new(),
    }
}

/// Converts kHz to MHz, rounded to the nearest integer.
fn mhz(khz: u32) -> u32 {
    khz / 1000 + u32::from(khz % 1000 >= 500)
}
