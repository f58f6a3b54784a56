// SPDX-License-Identifier: GPL-2.0-only
//! A whole trace, encoded and decoded.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::{proptest, Strategy};
use prost::Message;

use crate::bpf::{self, top_event};

use super::machine::Machine;
use super::output::Output;
use super::proto::{Data, TracePacket, TrackEvent, Value};
use super::recording::{Limits, Recording};
use super::samples::Counter;
use super::synthetic::{event, example, fork};

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

fn machine() -> Machine {
    Machine {
        monotonic_ns: 9_000_000,
        boottime_ns: 1_000_009_000_000,
        realtime_ns: 1_700_000_000_000_000_000,
        release: "6.12.0".to_owned(),
        version: "#1 SMP".to_owned(),
        architecture: "x86_64".to_owned(),
    }
}

/// The bytes of a trace. There is no /proc to read names of processes from.
fn bytes(recording: Recording) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let contents = recording.contents();
    let output = Output::create(&path).unwrap();
    let root = Path::new("/nowhere");
    output
        .finish(|encoder| contents.write(root, encoder))
        .unwrap();
    fs::read(path).unwrap()
}

/// The packets of a trace, written and read.
fn written(recording: Recording) -> Vec<TracePacket> {
    Trace::decode(&*bytes(recording)).unwrap().packet
}

fn recorded(events: Vec<top_event>) -> Recording {
    let mut recording = Recording::new(machine(), Limits::default());
    recording.push(&events, 0);
    recording
}

/// The example, with samples and a loss.
fn all_features() -> Recording {
    let mut recording = Recording::new(machine(), Limits::default());
    let (early, late): (Vec<_>, Vec<_>) =
        example().into_iter().partition(|e| e.time_ns < 15_000_000);
    let sample = |khz, total| {
        vec![
            (Counter::Frequency(0), khz),
            (Counter::Statistic("nr_queued".to_owned()), 1.5),
            (Counter::Event("REENQ".to_owned()), total),
        ]
    };
    recording.notice(&["something is invisible".to_owned()]);
    recording.push(&early, 0);
    recording.sample(11_000_000, sample(800_000.0, 0.0));
    recording.sample(16_000_000, sample(3_600_000.0, 0.0));
    recording.push(&[], 3);
    recording.push(&late, 3);
    recording
}

fn value(value: Option<&Value>) -> String {
    match value {
        Some(Value::Uint(number)) => number.to_string(),
        Some(Value::String(text)) => format!("'{text}'"),
        Some(Value::Pointer(number)) => format!("{number:#x}"),
        None => String::new(),
    }
}

fn line_of(event: &TrackEvent, names: &BTreeMap<u64, String>) -> String {
    let kind = ["?", "begin", "end", "instant", "counter"][usize::try_from(event.kind).unwrap()];
    let mut line = format!("[{}] {kind}", names[&event.track_uuid]);
    line.extend(event.name.iter().map(|name| format!(" {name}")));
    line.extend(event.counter_value.map(|value| format!(" {value}")));
    line.extend(event.double_counter_value.map(|value| format!(" {value}")));
    for annotation in &event.debug_annotations {
        line += &format!(" {}={}", annotation.name, value(annotation.value.as_ref()));
    }
    line.extend(event.flow_ids.iter().map(|id| format!(" flow {id} >")));
    let ends = event.terminating_flow_ids.iter();
    line.extend(ends.map(|id| format!(" > flow {id}")));
    line
}

/// One line for each packet, and for each event in a packet.
fn lines(packets: &[TracePacket]) -> Vec<String> {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    let mut lines = Vec::new();
    for packet in packets {
        let time = packet
            .timestamp
            .map_or(String::new(), |ns| format!("{ns} "));
        match packet.data.as_ref().unwrap() {
            Data::TrackDescriptor(track) => {
                let name = match (&track.name, &track.thread) {
                    (Some(name), _) => name.clone(),
                    (_, Some(thread)) => format!("{} {}", thread.thread_name, thread.tid),
                    _ => panic!("a track without a name"),
                };
                let name = match track.parent_uuid {
                    Some(parent) => format!("{} / {name}", names[&parent]),
                    None => name,
                };
                let unit = track.counter.as_ref().map(|c| format!("{:?}", c.unit_name));
                lines.push(format!("track [{name}] {}", unit.unwrap_or_default()));
                names.insert(track.uuid, name);
            }
            Data::TrackEvent(event) => lines.push(format!("{time}{}", line_of(event, &names))),
            Data::FtraceEvents(bundle) => {
                let lost = if bundle.lost_events == Some(true) {
                    " after a loss"
                } else {
                    ""
                };
                lines.push(format!("ftrace of CPU {}{lost}", bundle.cpu));
                let events = bundle.event.iter();
                lines.extend(events.map(|e| {
                    let event = format!("{:?}", e.event.as_ref().unwrap());
                    format!("    {} pid {} {event}", e.timestamp, e.pid)
                }));
            }
            other => lines.push(format!("{time}{other:?}")),
        }
    }
    lines
}

#[test]
fn decoded_packets() {
    let lines = lines(&written(all_features()));
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(lines.join("\n"));
    });
}

#[test]
fn the_same_records_give_the_same_bytes() {
    assert_eq!(bytes(all_features()), bytes(all_features()));
}

#[test]
fn unordered_records_are_ordered() {
    let mut events = example();
    let ordered = written(recorded(events.clone()));
    events.reverse();
    assert_eq!(written(recorded(events)), ordered);
}

/// Any record of tasks 0 to 4 on CPUs 0 and 1, within 100 ms.
fn any_record() -> impl Strategy<Value = top_event> {
    let kind = bpf::TOP_EVENT_SWITCH..=bpf::TOP_EVENT_INSERT;
    let (cpu, pid, state) = (0..2u32, 0..5u32, 0..2u32);
    (
        0..100_000_000u64,
        kind,
        cpu,
        pid.clone(),
        pid,
        state,
        0..3u64,
    )
        .prop_map(
            |(time_ns, kind, cpu, pid, other, state, dsq_id)| top_event {
                state,
                dsq_id,
                other: fork(0, 0, other, 0).task,
                ..event(time_ns, kind, cpu, pid)
            },
        )
}

proptest! {
    #[test]
    fn any_trace_is_valid(
        events in vec(any_record(), 0..200),
        at in 0..200usize,
        lost in 0..2u64,
    ) {
        let mut recording = Recording::new(machine(), Limits::default());
        let (first, second) = events.split_at(at.min(events.len()));
        recording.push(first, lost);
        recording.push(second, lost);
        check(&written(recording));
    }
}

#[test]
fn a_full_trace_is_valid() {
    check(&written(all_features()));
}

/// Checks that tracks are described before their events, times never go back on a track, depths are
/// not negative, slices end after they began, and flows have two ends.
fn check(packets: &[TracePacket]) {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut open: BTreeMap<u64, i32> = BTreeMap::new();
    let mut flows: BTreeMap<u64, i32> = BTreeMap::new();
    for packet in packets {
        match packet.data.as_ref().unwrap() {
            Data::TrackEvent(event) => {
                let time = packet.timestamp.unwrap();
                let before = last.insert(event.track_uuid, time).unwrap();
                assert!(before <= time, "{before}: {packet:?}");
                assert!(event.counter_value.unwrap_or(0) >= 0);
                let open = open.entry(event.track_uuid).or_default();
                *open += [0, 1, -1, 0, 0][usize::try_from(event.kind).unwrap()];
                assert!((0..=1).contains(open), "{packet:?}");
                for id in &event.flow_ids {
                    *flows.entry(*id).or_default() += 1;
                }
                for id in &event.terminating_flow_ids {
                    *flows.entry(*id).or_default() -= 1;
                    assert_eq!(flows[id], 0);
                }
            }
            Data::TrackDescriptor(track) => assert_eq!(last.insert(track.uuid, 0), None),
            _ => {}
        }
    }
    assert!(flows.values().all(|&missing| missing == 0), "{flows:?}");
}

#[test]
fn a_trace_without_events_is_valid() {
    let packets = written(Recording::new(machine(), Limits::default()));
    assert!(matches!(packets[0].data, Some(Data::ClockSnapshot(_))));
}
