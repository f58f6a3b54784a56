// SPDX-License-Identifier: GPL-2.0-only
//! Records for tests: task `n` is called `taskn`.

use crate::bpf::{self, top_event, top_event_kind, top_event_task};

/// The ids of the local DSQ and of a DSQ that a scheduler has created.
const LOCAL: u64 = 0x8000_0000_0000_0002;
const QUEUE: u64 = 0x10;

fn task(pid: u32) -> top_event_task {
    let mut task = top_event_task {
        pid,
        tgid: pid,
        prio: 120,
        class: bpf::TOP_CLASS_EXT,
        ..top_event_task::default()
    };
    let name = match pid {
        0 => "swapper".to_owned(),
        pid => format!("task{pid}"),
    };
    task.comm[..name.len()].copy_from_slice(name.as_bytes());
    task
}

pub(super) fn event(time_ns: u64, kind: top_event_kind, cpu: u32, pid: u32) -> top_event {
    top_event {
        time_ns,
        kind,
        cpu,
        task: task(pid),
        ..top_event::default()
    }
}

/// A switch from `prev` to `next`. `state` is 0 if `prev` is still runnable.
pub(super) fn switch(time_ns: u64, cpu: u32, prev: u32, state: u32, next: u32) -> top_event {
    top_event {
        state,
        other: task(next),
        ..event(time_ns, bpf::TOP_EVENT_SWITCH, cpu, prev)
    }
}

pub(super) fn sleep(time_ns: u64, cpu: u32, prev: u32, next: u32) -> top_event {
    switch(time_ns, cpu, prev, 1, next)
}

pub(super) fn waking(time_ns: u64, cpu: u32, wakee: u32, waker: u32) -> top_event {
    top_event {
        other: task(waker),
        ..event(time_ns, bpf::TOP_EVENT_WAKING, cpu, wakee)
    }
}

/// A new task becomes runnable on CPU 0.
fn wakeup_new(time_ns: u64, pid: u32) -> top_event {
    event(time_ns, bpf::TOP_EVENT_WAKEUP_NEW, 0, pid)
}

pub(super) fn insert(time_ns: u64, cpu: u32, pid: u32, dsq_id: u64) -> top_event {
    top_event {
        dsq_id,
        slice_ns: 20_000_000,
        ..event(time_ns, bpf::TOP_EVENT_INSERT, cpu, pid)
    }
}

pub(super) fn fork(time_ns: u64, cpu: u32, child: u32, parent: u32) -> top_event {
    top_event {
        other: task(parent),
        ..event(time_ns, bpf::TOP_EVENT_FORK, cpu, child)
    }
}

fn migrate(time_ns: u64, cpu: u32, pid: u32, target_cpu: u32) -> top_event {
    top_event {
        target_cpu,
        ..event(time_ns, bpf::TOP_EVENT_MIGRATE, cpu, pid)
    }
}

/// Two CPUs with events of all kinds: an interrupt wakes task 10; task 10 wakes task 11 on another
/// CPU, forks task 12 and is preempted; task 12 is renamed and exits.
pub(super) fn example() -> Vec<top_event> {
    const MS: u64 = 1_000_000;
    let mut vtime = insert(15 * MS + 30, 0, 12, QUEUE);
    vtime.vtime = 1234;
    vtime.enq_flags = 1;
    let mut exec = event(16 * MS, bpf::TOP_EVENT_EXEC, 0, 12);
    exec.task.comm[..7].copy_from_slice(b"renamed");
    vec![
        waking(10 * MS, 0, 10, 0),
        insert(10 * MS + 5, 0, 10, LOCAL),
        switch(10 * MS + 40, 0, 0, 0, 10),
        waking(12 * MS, 0, 11, 10),
        migrate(12 * MS + 5, 0, 11, 1),
        insert(12 * MS + 20, 0, 11, QUEUE),
        switch(13 * MS, 1, 0, 0, 11),
        fork(15 * MS, 0, 12, 10),
        wakeup_new(15 * MS + 20, 12),
        vtime,
        insert(15 * MS + 900, 0, 10, QUEUE),
        switch(15 * MS + 910, 0, 10, 0, 12),
        exec,
        event(17 * MS, bpf::TOP_EVENT_EXIT, 0, 12),
        switch(17 * MS + 10, 0, 12, 0x80, 10),
        sleep(19 * MS, 1, 11, 0),
        sleep(33 * MS, 0, 10, 0),
    ]
}
