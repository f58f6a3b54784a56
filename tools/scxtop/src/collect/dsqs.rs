// SPDX-License-Identifier: GPL-2.0-only
//! Dispatch queues: insertions, latencies, depths.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags};
use scx_utils::topology::Topology;
use scx_utils::zerocopy::FromBytes as _;

use super::programs::{control, Programs};
use super::rates::{changes, per_second};
use crate::bpf::{self, top_dsq};
use crate::histogram::Latency;
use crate::model::Dsq;

/// `enum scx_dsq_id_flags` of the kernel: ids of built-in DSQs.
const SCX_DSQ_FLAG_BUILTIN: u64 = 1 << 63;
const SCX_DSQ_FLAG_LOCAL_ON: u64 = 1 << 62;
const SCX_DSQ_GLOBAL: u64 = SCX_DSQ_FLAG_BUILTIN | 1;
const SCX_DSQ_LOCAL: u64 = SCX_DSQ_FLAG_BUILTIN | 2;
const SCX_DSQ_LOCAL_ON: u64 = SCX_DSQ_FLAG_BUILTIN | SCX_DSQ_FLAG_LOCAL_ON;

/// Maximum number of map elements that one system call reads: all of them. In a hash map, a batch
/// may end before it is full, and libbpf-rs would treat such a batch as the last one.
const BATCH: u32 = bpf::TOP_DSQS_MAX;

/// Reads the counters of DSQs.
#[derive(Default)]
pub(super) struct Dsqs {
    before: HashMap<u64, top_dsq>,
    interval: u64,
}

/// The DSQs, and the depths of the local DSQs.
pub(super) struct Read {
    pub(super) shown: Vec<Dsq>,
    /// Depths of the local DSQs, by CPU; 0 if unknown.
    pub(super) local: Vec<u32>,
}

impl Dsqs {
    /// Reads all DSQs into which an insertion was observed. `observed_ns` is the length of the
    /// window.
    pub(super) fn read(
        &mut self,
        programs: &Programs<'_>,
        topology: &Topology,
        observed_ns: u64,
    ) -> Result<Read> {
        let counters = counters(programs)?;
        let ids: Vec<u64> = counters.keys().copied().collect();
        let depths = depths(programs, &ids)?;
        let local = local_depths(programs, topology)?;
        let ended = self.interval;
        let shown = counters.iter().zip(depths).map(|((&id, now), depth)| Dsq {
            depth: if id == SCX_DSQ_LOCAL {
                Some(local.iter().sum())
            } else {
                depth
            },
            ..self.difference(id, now, observed_ns, ended)
        });
        let shown: Vec<Dsq> = shown.collect();
        forget_destroyed(programs, &shown)?;
        self.before = counters.into_iter().collect();
        self.interval += 1;
        programs.control.set(control::INTERVAL, self.interval);
        Ok(Read { shown, local })
    }

    fn difference(&self, id: u64, now: &top_dsq, observed_ns: u64, ended: u64) -> Dsq {
        let before = self.before.get(&id);
        let nr_before = before.map_or(0, |before| before.nr_inserts);
        let latency = changes(&now.latency, before.map(|before| &before.latency[..]));
        let is_current = ended > 0 && now.vtime_interval == ended;
        Dsq {
            id,
            name: name(id),
            depth: None,
            inserts: per_second(now.nr_inserts.saturating_sub(nr_before), observed_ns),
            latency: Latency::of(&latency),
            vtime_spread: is_current.then(|| spread(now)),
        }
    }
}

/// Difference between the highest and the lowest vtime. Vtimes may wrap around. CPUs update the
/// two values without a lock, so a lost update may leave the lowest above the highest. The result
/// is then 0.
fn spread(dsq: &top_dsq) -> u64 {
    let spread = dsq.vtime_max.wrapping_sub(dsq.vtime_min);
    if spread > u64::MAX / 2 {
        0
    } else {
        spread
    }
}

/// The name of a DSQ: `local`, `global`, or its id in hexadecimal.
pub(crate) fn name(id: u64) -> String {
    match id {
        SCX_DSQ_LOCAL => "local".to_owned(),
        SCX_DSQ_GLOBAL => "global".to_owned(),
        _ => format!("{id:#x}"),
    }
}

fn counters(programs: &Programs<'_>) -> Result<BTreeMap<u64, top_dsq>> {
    let map = &programs.skel.maps.dsqs;
    let mut counters = BTreeMap::new();
    for (key, value) in map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)? {
        let key = u64::read_from_bytes(&key).ok();
        let value = top_dsq::read_from_bytes(&value).ok();
        counters.extend(key.zip(value));
    }
    Ok(counters)
}

/// Removes the counters of DSQs that no longer exist, such as those of an earlier scheduler.
fn forget_destroyed(programs: &Programs<'_>, dsqs: &[Dsq]) -> Result<()> {
    let is_gone = |dsq: &&Dsq| {
        dsq.id & SCX_DSQ_FLAG_BUILTIN == 0 && dsq.depth.is_none() && dsq.inserts == 0.0
    };
    for dsq in dsqs.iter().filter(is_gone) {
        programs.skel.maps.dsqs.delete(&dsq.id.to_ne_bytes())?;
    }
    Ok(())
}

fn local_depths(programs: &Programs<'_>, topology: &Topology) -> Result<Vec<u32>> {
    let online: Vec<usize> = topology.online().iter().collect();
    let ids: Vec<u64> = online
        .iter()
        .map(|&cpu| SCX_DSQ_LOCAL_ON | cpu as u64)
        .collect();
    let mut local = vec![0; topology.nr_cpu_ids()];
    for (cpu, depth) in online.into_iter().zip(depths(programs, &ids)?) {
        local[cpu] = depth.unwrap_or_default();
    }
    Ok(local)
}

/// The depths of the DSQs; `None` for a DSQ that the kernel does not know.
fn depths(programs: &Programs<'_>, ids: &[u64]) -> Result<Vec<Option<u32>>> {
    // Indices of words in struct top_depths.
    const FIRST_ID: usize = 1;
    const FIRST_DEPTH: usize = FIRST_ID + bpf::TOP_DEPTHS_MAX as usize;

    let words = &programs.depths;
    let mut depths = Vec::new();
    for ids in ids.chunks(bpf::TOP_DEPTHS_MAX as usize) {
        words.set(0, ids.len() as u64);
        for (index, &id) in ids.iter().enumerate() {
            words.set(FIRST_ID + index, id);
        }
        scx_utils::bpf::run(&programs.skel.progs.read_depths, &mut [])
            .context("cannot read the depths of DSQs")?;
        let known = (0..ids.len()).map(|index| words.get(FIRST_DEPTH + index));
        // A negative depth, which means unknown, is a large unsigned number here.
        depths.extend(known.map(|depth| depth.and_then(|depth| u32::try_from(depth).ok())));
    }
    Ok(depths)
}
