// SPDX-License-Identifier: GPL-2.0-only
//! Access to the records of the BPF side.

use crate::bpf::{self, top_event, top_event_task};

/// The values of `enum top_event_kind`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Switch,
    Waking,
    WakeupNew,
    Migrate,
    Fork,
    Exec,
    Exit,
    Insert,
}

/// The kind of a record; `None` if it is unknown, which does not occur.
pub(super) fn kind(event: &top_event) -> Option<Kind> {
    Some(match event.kind {
        bpf::TOP_EVENT_SWITCH => Kind::Switch,
        bpf::TOP_EVENT_WAKING => Kind::Waking,
        bpf::TOP_EVENT_WAKEUP_NEW => Kind::WakeupNew,
        bpf::TOP_EVENT_MIGRATE => Kind::Migrate,
        bpf::TOP_EVENT_FORK => Kind::Fork,
        bpf::TOP_EVENT_EXEC => Kind::Exec,
        bpf::TOP_EVENT_EXIT => Kind::Exit,
        bpf::TOP_EVENT_INSERT => Kind::Insert,
        _ => return None,
    })
}

/// The name of a task. It may contain any bytes: the kernel may change the name while the BPF side
/// reads it.
pub(super) fn comm(task: &top_event_task) -> String {
    let len = task.comm.iter().position(|&byte| byte == 0);
    let name = &task.comm[..len.unwrap_or(task.comm.len())];
    String::from_utf8_lossy(name).into_owned()
}

/// Converts an id to Perfetto's type. The kernel's pids and CPU numbers are below 2^31.
pub(super) fn int(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}
