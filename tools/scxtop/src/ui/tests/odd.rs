// SPDX-License-Identifier: GPL-2.0-only
//! Snapshots that no collector would return.

use crate::histogram::Latency;
use crate::model::{Cpu, Dsq, Event, Group, OwnCost, Sched, Snapshot, Task};

fn latency() -> Latency {
    Latency {
        count: u64::MAX,
        p50_ns: u64::MAX,
        p90_ns: 0,
        p99_ns: u64::MAX,
        max_ns: 1,
        buckets: (0..=u8::MAX).map(|index| (index, u64::MAX)).collect(),
    }
}

fn cpu(id: u32, name: &str, number: f64) -> Cpu {
    Cpu {
        id: u32::MAX - id,
        is_online: id % 5 != 4,
        llc: id / 7,
        node: u32::MAX - id / 20,
        freq_khz: Some(u64::MAX),
        busy_pct: number,
        rt_pct: number,
        ext_pct: -number,
        switches: number,
        queued: u32::MAX,
        current: Some((u32::MAX, name.to_owned())),
        wakeup: latency(),
        ..Cpu::default()
    }
}

fn group(number: f64, cpus: u32) -> Group {
    Group {
        id: u32::MAX,
        node: u32::MAX,
        cpus: (0..cpus).map(|id| u32::MAX - id).collect(),
        busy_pct: number,
        busy_min_pct: number,
        busy_max_pct: number,
        migrations_in: number,
        wakeup: latency(),
        ..Group::default()
    }
}

fn task(pid: u32, name: &str, number: f64) -> Task {
    let class = if pid.is_multiple_of(2) { "rt" } else { "ext" };
    Task {
        pid,
        tgid: u32::MAX,
        comm: name.to_owned(),
        state: name.to_owned(),
        class: class.to_owned(),
        prio: if pid.is_multiple_of(3) {
            i32::MIN
        } else {
            i32::MAX
        },
        run_pct: number,
        run_ns: u64::MAX,
        switches: number,
        wakeup: latency(),
        weight: u32::MAX,
        slice_ns: u64::MAX,
        dsq_vtime: u64::MAX,
        dsq: Some(name.to_owned()),
        ..Task::default()
    }
}

fn dsq(name: &str, number: f64) -> Dsq {
    Dsq {
        id: u64::MAX,
        name: name.to_owned(),
        depth: Some(u32::MAX),
        inserts: number,
        latency: latency(),
        vtime_spread: Some(u64::MAX),
    }
}

/// A snapshot with extreme integers, with `number` for floating-point numbers and `name` for texts.
pub(super) fn snapshot(name: &str, number: f64, cpus: u32) -> Snapshot {
    let event = Event {
        name: name.to_owned(),
        total: i64::MIN,
        delta: i64::MAX,
    };
    let stat = (name.to_owned(), serde_json::json!([name, u64::MAX]));
    Snapshot {
        time_ns: u64::MAX,
        kernel: name.to_owned(),
        sched: Sched {
            state: name.to_owned(),
            name: Some(name.to_owned()),
            last_exit: Some(name.to_owned()),
            ..Sched::default()
        },
        cpus: (0..cpus).map(|id| cpu(id, name, number)).collect(),
        llcs: vec![group(number, cpus); 3],
        nodes: vec![group(number, cpus)],
        wakeup: latency(),
        tasks: (0..cpus).map(|pid| task(pid, name, number)).collect(),
        dsqs: vec![dsq(name, number); 3],
        events: vec![event; 4],
        stats: vec![stat; 4],
        own: OwnCost {
            process_pct: number,
            lost: u64::MAX,
        },
        notices: vec![name.to_owned(); 9],
        ..Snapshot::default()
    }
}
