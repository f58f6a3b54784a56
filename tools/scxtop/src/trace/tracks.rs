// SPDX-License-Identifier: GPL-2.0-only
//! Tracks and their events. The id of a track is computed from what the track shows, so that the
//! same records give the same trace.

use super::proto::{
    CounterDescriptor, Data, DebugAnnotation, TracePacket, TrackDescriptor, TrackEvent, Value,
    CLOCK_MONOTONIC, COUNTER, INSTANT, ORDER_EXPLICIT, SLICE_BEGIN, SLICE_END,
};

/// The id of the writer of the packets. There is only one.
const SEQUENCE: u32 = 1;

/// A track. The numbers of DSQs, depths, lanes and sampled values are indices, not ids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Track {
    /// What scxtop itself reports about the trace.
    Own,
    Cpus,
    Dsqs,
    Statistics,
    Events,
    Thread(u32),
    Cpu(u32),
    /// The interrupts of an idle CPU, which wake tasks.
    Interrupts(u32),
    Busy(u32),
    Dsq(u32),
    Depth(u32),
    Lane(u32),
    Sampled(u32),
}

impl Track {
    pub(super) fn uuid(self) -> u64 {
        let (kind, number) = match self {
            Self::Own => (1, 1),
            Self::Cpus => (1, 2),
            Self::Dsqs => (1, 3),
            Self::Statistics => (1, 4),
            Self::Events => (1, 5),
            Self::Thread(pid) => (2, pid),
            Self::Cpu(cpu) => (3, cpu),
            Self::Interrupts(cpu) => (4, cpu),
            Self::Busy(cpu) => (5, cpu),
            Self::Dsq(index) => (6, index),
            Self::Depth(index) => (7, index),
            Self::Lane(index) => (8, index),
            Self::Sampled(index) => (9, index),
        };
        kind << 32 | u64::from(number)
    }

    /// A top-level track, which orders its children by their ranks.
    pub(super) fn top(self, name: &str) -> TrackDescriptor {
        TrackDescriptor {
            uuid: self.uuid(),
            name: Some(name.to_owned()),
            child_ordering: Some(ORDER_EXPLICIT),
            ..TrackDescriptor::default()
        }
    }

    pub(super) fn child(self, parent: Self, name: &str, rank: u32) -> TrackDescriptor {
        TrackDescriptor {
            parent_uuid: Some(parent.uuid()),
            sibling_order_rank: i32::try_from(rank).ok(),
            ..self.top(name)
        }
    }

    pub(super) fn counter(
        self,
        parent: Self,
        name: &str,
        unit: Option<&str>,
        rank: u32,
    ) -> TrackDescriptor {
        TrackDescriptor {
            counter: Some(CounterDescriptor {
                unit_name: unit.map(str::to_owned),
            }),
            child_ordering: None,
            ..self.child(parent, name, rank)
        }
    }

    pub(super) fn begin(self, name: &str) -> TrackEvent {
        TrackEvent {
            kind: SLICE_BEGIN,
            ..self.instant(name)
        }
    }

    pub(super) fn end(self) -> TrackEvent {
        TrackEvent {
            kind: SLICE_END,
            track_uuid: self.uuid(),
            ..TrackEvent::default()
        }
    }

    pub(super) fn instant(self, name: &str) -> TrackEvent {
        TrackEvent {
            kind: INSTANT,
            track_uuid: self.uuid(),
            name: Some(name.to_owned()),
            ..TrackEvent::default()
        }
    }

    pub(super) fn count(self, value: i64) -> TrackEvent {
        TrackEvent {
            kind: COUNTER,
            track_uuid: self.uuid(),
            counter_value: Some(value),
            ..TrackEvent::default()
        }
    }

    pub(super) fn measure(self, value: f64) -> TrackEvent {
        TrackEvent {
            kind: COUNTER,
            track_uuid: self.uuid(),
            double_counter_value: Some(value),
            ..TrackEvent::default()
        }
    }
}

impl TrackEvent {
    /// Adds an annotation.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.debug_annotations.push(DebugAnnotation {
            name: name.to_owned(),
            value: Some(value),
        });
        self
    }

    pub(super) fn at(self, time_ns: u64) -> TracePacket {
        at(time_ns, Data::TrackEvent(self))
    }
}

/// A packet with a time.
pub(super) fn at(time_ns: u64, data: Data) -> TracePacket {
    TracePacket {
        timestamp: Some(time_ns),
        timestamp_clock_id: Some(CLOCK_MONOTONIC),
        ..timeless(data)
    }
}

/// A packet without a time.
pub(super) fn timeless(data: Data) -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: SEQUENCE,
        data: Some(data),
        ..TracePacket::default()
    }
}

pub(super) fn describe(track: TrackDescriptor) -> TracePacket {
    timeless(Data::TrackDescriptor(track))
}
