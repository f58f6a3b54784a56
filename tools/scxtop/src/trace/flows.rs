// SPDX-License-Identifier: GPL-2.0-only
//! Arrows from wakers to wakees: an instant on the track of each, connected by a flow. The wakee's
//! instant shows the latency. A flow is written only if both of its ends are in the trace.

use std::ops::RangeInclusive;

use crate::bpf::{top_event, top_event_task};

use super::event::comm;
use super::proto::{TracePacket, TrackEvent, Value};
use super::tracks::Track;
use super::wakeups::{Wakeups, Woken};

/// The end of a flow, or a wakeup without a known waker.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The index of the record SWITCH.
    at: usize,
    woken: Woken<usize>,
}

/// The wakeups of a trace. Flows are numbered from 1, in the order of their ends.
#[derive(Debug)]
pub(super) struct Flows {
    ends: Vec<End>,
    /// The index of the waker's record, and the index in `ends`; ordered.
    starts: Vec<(usize, usize)>,
    next_start: usize,
    next_end: usize,
}

impl Flows {
    /// Finds the wakeups. `gaps` are ranges of indices of records. Before each record of a range,
    /// other records may have been lost, so wakeups that were pending there are forgotten.
    pub(super) fn find(events: &[top_event], gaps: &[RangeInclusive<usize>]) -> Self {
        let mut wakeups = Wakeups::default();
        let mut ends = Vec::new();
        let mut gaps = gaps.iter().peekable();
        for (at, event) in events.iter().enumerate() {
            while gaps.next_if(|gap| *gap.end() < at).is_some() {}
            if gaps.peek().is_some_and(|gap| gap.contains(&at)) {
                wakeups.forget();
            }
            if let Some(woken) = wakeups.take(at, event) {
                ends.push(End { at, woken });
            }
        }
        let starts = ends.iter().enumerate();
        let starts = starts.filter_map(|(index, end)| Some((end.woken.waker?, index)));
        let mut starts: Vec<_> = starts.collect();
        starts.sort_unstable();
        Self {
            ends,
            starts,
            next_start: 0,
            next_end: 0,
        }
    }

    /// Writes the instants and flows of the record with the index `at`. Has to be called for all
    /// records, in their order.
    pub(super) fn take(&mut self, at: usize, events: &[top_event], out: &mut Vec<TracePacket>) {
        let event = &events[at];
        if let Some(&(_, index)) = self.starts.get(self.next_start).filter(|s| s.0 == at) {
            self.next_start += 1;
            let instant = track_of(&event.other, event.cpu).instant("wakeup");
            let mut instant = of_task(instant, "wakee", &event.task);
            instant.flow_ids.push(id(index));
            out.push(instant.at(event.time_ns));
        }
        if let Some(&end) = self.ends.get(self.next_end).filter(|end| end.at == at) {
            let latency = Value::Uint(end.woken.latency_ns);
            let instant = Track::Thread(event.other.pid).instant("woken");
            let mut instant = instant.with("latency_ns", latency);
            if let Some(waker) = end.woken.waker {
                instant = of_task(instant, "waker", &events[waker].other);
                instant.terminating_flow_ids.push(id(self.next_end));
            }
            self.next_end += 1;
            out.push(instant.at(event.time_ns));
        }
    }
}

/// The id of the flow with this index.
fn id(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(0) + 1
}

/// The waker's track. The pid 0 means that an interrupt on an idle CPU has woken the task.
fn track_of(waker: &top_event_task, cpu: u32) -> Track {
    match waker.pid {
        0 => Track::Interrupts(cpu),
        pid => Track::Thread(pid),
    }
}

fn of_task(instant: TrackEvent, role: &str, task: &top_event_task) -> TrackEvent {
    instant
        .with(role, Value::String(comm(task)))
        .with(&format!("{role}_pid"), Value::Uint(task.pid.into()))
}

#[cfg(test)]
mod tests {
    use super::super::proto::Data;
    use super::super::synthetic::{example, switch, waking};
    use super::*;

    fn written(events: &[top_event], gaps: &[RangeInclusive<usize>]) -> Vec<TrackEvent> {
        let mut flows = Flows::find(events, gaps);
        let mut out = Vec::new();
        for at in 0..events.len() {
            flows.take(at, events, &mut out);
        }
        let events = out.into_iter().map(|packet| match packet.data {
            Some(Data::TrackEvent(event)) => event,
            other => panic!("{other:?}"),
        });
        events.collect()
    }

    #[test]
    fn every_flow_has_two_ends() {
        let events = example();
        // Any part of a trace.
        for from in 0..events.len() {
            for to in from..events.len() {
                let written = written(&events[from..to], &[]);
                let ids = |of: fn(&TrackEvent) -> &[u64]| {
                    let mut ids: Vec<u64> = written
                        .iter()
                        .flat_map(|event| of(event).to_vec())
                        .collect();
                    ids.sort_unstable();
                    ids
                };
                assert_eq!(ids(|e| &e.flow_ids), ids(|e| &e.terminating_flow_ids));
            }
        }
    }

    #[test]
    fn flows_go_from_the_waker_to_the_wakee() {
        let events = [waking(100, 0, 7, 9), switch(400, 1, 0, 0, 7)];
        let written_ = written(&events, &[]);
        let [start, end] = &written_[..] else {
            panic!("{written_:?}")
        };
        assert_eq!(start.track_uuid, Track::Thread(9).uuid());
        assert_eq!(end.track_uuid, Track::Thread(7).uuid());
        assert_eq!(start.flow_ids, end.terminating_flow_ids);
        assert_eq!(end.debug_annotations[0].value, Some(Value::Uint(300)));
        // Records were lost in between.
        assert_eq!(written(&events, &[1..=1]), []);
        assert_eq!(written(&events, &[0..=3]), []);
        // Records were lost before.
        assert_eq!(written(&events, &[0..=0]).len(), 2);
    }

    #[test]
    fn interrupts_on_idle_cpus_have_their_own_track() {
        let events = [waking(1, 3, 7, 0), switch(3, 3, 0, 0, 7)];
        let uuid = written(&events, &[])[0].track_uuid;
        assert_eq!(uuid, Track::Interrupts(3).uuid());
    }
}
