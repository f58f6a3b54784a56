// SPDX-License-Identifier: GPL-2.0-only
//! Everything that a trace consists of. The order in the file is: the machine; the names of tasks;
//! the tracks of scxtop, of CPUs and of sampled values; a summary with the losses and the late
//! wakeup; the sampled values; the tracks of DSQs; the events.

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::bpf::top_event;

use super::busy::Busy;
use super::counters::Counters;
use super::dsqs::Dsqs;
use super::flows::Flows;
use super::machine::Machine;
use super::names::Names;
use super::output::Encoder;
use super::proto::{TracePacket, Value};
use super::recording::Late;
use super::sched::Bundles;
use super::tracks::{describe, Track};
use super::window::Gap;

/// Approximate number of packets that are encoded at once.
const BATCH: usize = 1024;

/// A recorded trace.
#[derive(Debug)]
pub(super) struct Contents {
    pub machine: Machine,
    /// In the order of their times, like the gaps.
    pub events: Vec<top_event>,
    pub gaps: Vec<Gap>,
    pub counters: Counters,
    pub late: Option<Late>,
    pub notices: Vec<String>,
}

impl Contents {
    pub(super) fn nr_lost(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.nr_lost).sum()
    }

    /// Writes the trace. `root` is where the directory `proc` is.
    pub(super) fn write(&self, root: &Path, encoder: &mut Encoder<'_>) -> io::Result<()> {
        let first = self.events.first();
        let start_ns = first.map_or(self.machine.monotonic_ns, |event| event.time_ns);
        let mut out = Vec::new();
        self.machine.packets(&mut out);
        Names::find(&self.events, root).packets(start_ns, &mut out);
        self.describe(&mut out);
        self.own(start_ns, &mut out);
        self.counters.packets(start_ns, &mut out);
        encoder.write(&mut out)?;
        self.events(start_ns, encoder)
    }

    fn events(&self, start_ns: u64, encoder: &mut Encoder<'_>) -> io::Result<()> {
        let mut out = Vec::new();
        let gaps: Vec<_> = self.gaps.iter().map(|gap| self.within(gap)).collect();
        let mut flows = Flows::find(&self.events, &gaps);
        let mut gaps = gaps.iter().map(|gap| *gap.end()).peekable();
        let mut bundles = Bundles::new(&self.machine);
        let mut dsqs = Dsqs::find(&self.events);
        let mut busy = Busy::new(start_ns);
        dsqs.describe(&mut out);
        for (at, event) in self.events.iter().enumerate() {
            if gaps.next_if(|&gap| gap <= at).is_some() {
                bundles.gap(&mut out);
            }
            bundles.take(event, &mut out);
            flows.take(at, &self.events, &mut out);
            dsqs.take(event, &mut out);
            busy.take(event, &mut out);
            if out.len() >= BATCH {
                encoder.write(&mut out)?;
            }
        }
        bundles.finish(&mut out);
        if let Some(last) = self.events.last() {
            busy.finish(last.time_ns, &mut out);
        }
        encoder.write(&mut out)
    }

    /// The indices of the events in a gap, up to the first event after it.
    fn within(&self, gap: &Gap) -> RangeInclusive<usize> {
        let after = |time_ns| {
            self.events
                .partition_point(|event| event.time_ns <= time_ns)
        };
        after(gap.from_ns)..=after(gap.time_ns)
    }

    fn describe(&self, out: &mut Vec<TracePacket>) {
        out.push(describe(Track::Own.top("scxtop")));
        let cpus = self.events.iter().map(|event| event.cpu);
        let cpus: BTreeSet<u32> = cpus.chain(self.counters.cpus()).collect();
        out.push(describe(Track::Cpus.top("CPUs")));
        for cpu in cpus {
            let (track, name) = (Track::Cpu(cpu), format!("CPU {cpu}"));
            out.push(describe(track.child(Track::Cpus, &name, cpu)));
            out.push(describe(Track::Busy(cpu).counter(
                track,
                "busy",
                Some("%"),
                0,
            )));
            let interrupts = Track::Interrupts(cpu);
            out.push(describe(interrupts.child(
                track,
                "interrupts while idle",
                1,
            )));
        }
        self.counters.describe(out);
    }

    /// Writes to scxtop's own track: a summary of the trace, with its notices; the losses; and the
    /// late wakeup.
    fn own(&self, start_ns: u64, out: &mut Vec<TracePacket>) {
        let nr_events = u64::try_from(self.events.len()).unwrap_or(u64::MAX);
        let summary = Track::Own.instant("trace");
        let summary = summary.with("events", Value::Uint(nr_events));
        let mut summary = summary.with("lost", Value::Uint(self.nr_lost()));
        for notice in &self.notices {
            summary = summary.with("notice", Value::String(notice.clone()));
        }
        out.push(summary.at(start_ns));
        let mut told: Vec<_> = self.gaps.iter().map(|gap| lost(gap, start_ns)).collect();
        told.extend(self.late.as_ref().map(Late::packet));
        told.sort_by_key(|packet| packet.timestamp);
        out.append(&mut told);
    }
}

fn lost(gap: &Gap, start_ns: u64) -> TracePacket {
    let instant = Track::Own.instant("lost events");
    let instant = instant.with("lost", Value::Uint(gap.nr_lost));
    // The gap may precede the start of the trace.
    instant.at(gap.time_ns.max(start_ns))
}
