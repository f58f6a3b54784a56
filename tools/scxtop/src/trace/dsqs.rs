// SPDX-License-Identifier: GPL-2.0-only
//! The tracks of DSQs: a slice (an interval on a Perfetto track) for each stay of a task, from its
//! insertion until it runs, and the depth.
//!
//! In the trace, a task that is moved by `scx_bpf_dsq_move_to_local()` stays in its former DSQ
//! until it runs, because the arguments of that function do not identify the task. Tasks that had
//! been inserted before the first record are missing from the depth. If records were lost, a stay
//! ends when its task is next seen to be inserted, to run, to sleep or to exit.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::bpf::top_event;
use crate::collect::dsqs::name;

use super::event::{comm, kind, Kind};
use super::proto::{TracePacket, Value};
use super::tracks::{describe, Track};

/// A task in a DSQ.
#[derive(Clone, Copy, Debug)]
struct Stay {
    dsq: u32,
    lane: usize,
}

/// A DSQ. Stays may overlap, but the slices of one track may not. So a DSQ has several lanes, each
/// with a track of its own, and a stay takes the first free lane.
#[derive(Debug, Default)]
struct Dsq {
    depth: i64,
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
    track: Track,
    is_free: bool,
}

/// All DSQs of a trace.
#[derive(Debug, Default)]
pub(super) struct Dsqs {
    index: BTreeMap<u64, u32>,
    dsqs: Vec<Dsq>,
    nr_lanes: u32,
    stays: HashMap<u32, Stay>,
}

impl Dsqs {
    /// Finds the DSQs of these records.
    pub(super) fn find(events: &[top_event]) -> Self {
        let inserts = events.iter().filter(|e| kind(e) == Some(Kind::Insert));
        let ids: BTreeSet<u64> = inserts.map(|event| event.dsq_id).collect();
        let index: BTreeMap<u64, u32> = ids.into_iter().zip(0..).collect();
        Self {
            dsqs: index.iter().map(|_| Dsq::default()).collect(),
            index,
            ..Self::default()
        }
    }

    pub(super) fn describe(&self, out: &mut Vec<TracePacket>) {
        if !self.index.is_empty() {
            out.push(describe(Track::Dsqs.top("DSQs")));
        }
        for (&id, &index) in &self.index {
            let (dsq, depth) = (Track::Dsq(index), Track::Depth(index));
            let name = format!("DSQ {}", name(id));
            out.push(describe(dsq.child(Track::Dsqs, &name, index)));
            out.push(describe(depth.counter(dsq, "depth", Some("tasks"), 0)));
        }
    }

    pub(super) fn take(&mut self, event: &top_event, out: &mut Vec<TracePacket>) {
        match kind(event) {
            Some(Kind::Insert) => {
                self.leave(event.task.pid, event.time_ns, out);
                self.enter(event, out);
            }
            Some(Kind::Switch) => {
                self.leave(event.other.pid, event.time_ns, out);
                // A task that goes to sleep is in no DSQ. If an insertion was recorded while it
                // ran, that insertion had no effect.
                if event.state != 0 {
                    self.leave(event.task.pid, event.time_ns, out);
                }
            }
            Some(Kind::Exit) => self.leave(event.task.pid, event.time_ns, out),
            _ => {}
        }
    }

    fn enter(&mut self, event: &top_event, out: &mut Vec<TracePacket>) {
        let Some(&index) = self.index.get(&event.dsq_id) else {
            return;
        };
        let Some(dsq) = self.dsqs.get_mut(index as usize) else {
            return;
        };
        dsq.depth += 1;
        out.push(Track::Depth(index).count(dsq.depth).at(event.time_ns));
        let lane = dsq.lanes.iter().position(|lane| lane.is_free);
        let lane = lane.unwrap_or_else(|| {
            let track = Track::Lane(self.nr_lanes);
            self.nr_lanes += 1;
            out.push(describe(track.child(Track::Dsq(index), "tasks", 1)));
            dsq.lanes.push(Lane {
                track,
                is_free: true,
            });
            dsq.lanes.len() - 1
        });
        dsq.lanes[lane].is_free = false;
        let slice = dsq.lanes[lane].track.begin(&comm(&event.task));
        let mut slice = slice.with("pid", Value::Uint(event.task.pid.into()));
        // 0 means that the insertion has no such value, or that it is unknown.
        for (name, value) in [("vtime", event.vtime), ("slice_ns", event.slice_ns)] {
            if value != 0 {
                slice = slice.with(name, Value::Uint(value));
            }
        }
        if event.enq_flags != 0 {
            slice = slice.with("enq_flags", Value::Pointer(event.enq_flags));
        }
        out.push(slice.at(event.time_ns));
        self.stays.insert(event.task.pid, Stay { dsq: index, lane });
    }

    fn leave(&mut self, pid: u32, time_ns: u64, out: &mut Vec<TracePacket>) {
        let Some(stay) = self.stays.remove(&pid) else {
            return;
        };
        let Some(dsq) = self.dsqs.get_mut(stay.dsq as usize) else {
            return;
        };
        dsq.depth -= 1;
        out.push(Track::Depth(stay.dsq).count(dsq.depth).at(time_ns));
        let lane = &mut dsq.lanes[stay.lane];
        lane.is_free = true;
        out.push(lane.track.end().at(time_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::{Data, SLICE_BEGIN, SLICE_END};
    use super::super::synthetic::{example, insert, sleep, switch};
    use super::*;

    /// Depths, such as `10 dsq 0 = 1` (time, index of the DSQ, depth), and slices, such as
    /// `10 lane 0 task7` and `30 lane 0 ends`.
    fn written(events: &[top_event]) -> Vec<String> {
        let mut dsqs = Dsqs::find(events);
        let mut out = Vec::new();
        for event in events {
            dsqs.take(event, &mut out);
        }
        let lines = out.iter().filter_map(|packet| {
            let Some(Data::TrackEvent(event)) = &packet.data else {
                return None;
            };
            let number = event.track_uuid & u64::from(u32::MAX);
            let what = match (event.kind, event.counter_value) {
                (SLICE_BEGIN, _) => format!("lane {number} {}", event.name.as_ref()?),
                (SLICE_END, _) => format!("lane {number} ends"),
                (_, value) => format!("dsq {number} = {}", value?),
            };
            Some(format!("{} {what}", packet.timestamp?))
        });
        lines.collect()
    }

    #[test]
    fn stays_last_from_insertion_to_running() {
        let events = [
            insert(10, 0, 7, 1),
            insert(20, 0, 8, 1),
            switch(30, 0, 0, 0, 7),
            insert(40, 0, 9, 1),
        ];
        let expected = [
            "10 dsq 0 = 1",
            "10 lane 0 task7",
            "20 dsq 0 = 2",
            "20 lane 1 task8",
            "30 dsq 0 = 1",
            "30 lane 0 ends",
            "40 dsq 0 = 2",
            "40 lane 0 task9",
        ];
        assert_eq!(written(&events), expected);
    }

    #[test]
    fn a_move_leaves_the_former_dsq() {
        let events = [insert(10, 0, 7, 1), insert(20, 0, 7, 0x8000_0000_0000_0002)];
        let expected = [
            "10 dsq 0 = 1",
            "10 lane 0 task7",
            "20 dsq 0 = 0",
            "20 lane 0 ends",
            "20 dsq 1 = 1",
            "20 lane 1 task7",
        ];
        assert_eq!(written(&events), expected);
    }

    #[test]
    fn sleeping_tasks_are_in_no_dsq() {
        let events = [insert(10, 0, 7, 1), sleep(20, 0, 7, 0)];
        assert_eq!(written(&events)[2..], ["20 dsq 0 = 0", "20 lane 0 ends"]);
        // The task is preempted, and waits in the DSQ.
        let events = [insert(10, 0, 7, 1), switch(20, 0, 7, 0, 8)];
        assert_eq!(written(&events).len(), 2);
    }

    #[test]
    fn depths_are_never_negative() {
        let depths = written(&example());
        assert!(depths.iter().all(|line| !line.contains('-')), "{depths:?}");
    }
}
