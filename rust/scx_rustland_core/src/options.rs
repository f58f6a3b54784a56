// SPDX-License-Identifier: GPL-2.0-only
//! How the BPF half is to behave.

use crate::LockedHeap;

/// The slice of a task whose decision names none. The kernel's own (`SCX_SLICE_DFL`).
pub const SLICE_DFL_NS: u64 = 20_000_000;

/// Who places a task that wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleSelection {
    /// The policy decides on each ordinary task. All but these are ordinary: kernel threads that
    /// are bound to a CPU, tasks that may not migrate at the moment, and the threads of the
    /// scheduler's own process.
    #[default]
    FullUser,
    /// Its last CPU, if that is idle and nobody waits: it runs there at once. Else, if whoever
    /// wakes it is about to sleep, it gets the rest of his slice on his CPU. The policy decides on
    /// the rest.
    PrevCpu,
    /// The kernel finds an idle CPU for it and lets it run there at once, unless others wait. Else
    /// as [`PrevCpu`](Self::PrevCpu).
    Builtin,
}

/// Options of a scheduler, beside those that the runner has for all: `--partial` and
/// `--exit-dump-len` among them.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// As the kernel is to call the scheduler, at most 127 bytes of letters, digits, `_` and `.`.
    pub name: &'static str,
    /// The slice of a task whose decision names none, above 0: by default [`SLICE_DFL_NS`].
    pub slice_ns: u64,
    /// Who places a task that wakes up.
    pub idle: IdleSelection,
    /// Whether idle CPUs are left asleep as long as another one runs that the task may use.
    pub low_power: bool,
    /// The program's global allocator, if it is one that the policy's thread can have for itself.
    pub heap: Option<&'static LockedHeap>,
}

impl Options {
    /// All as by default.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            slice_ns: SLICE_DFL_NS,
            idle: IdleSelection::FullUser,
            low_power: false,
            heap: None,
        }
    }
}
