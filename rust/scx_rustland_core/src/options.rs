// SPDX-License-Identifier: GPL-2.0-only
//! Options of the BPF side.

use crate::LockedHeap;

/// The default slice of a decision, equal to the kernel's `SCX_SLICE_DFL`.
pub const SLICE_DFL_NS: u64 = 20_000_000;

/// How a CPU is selected for a wakee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleSelection {
    /// The policy decides on each wakee, except those that always bypass it: per-CPU kernel
    /// threads, migration-disabled tasks, and the threads of the scheduler's own process.
    #[default]
    FullUser,
    /// A wakee runs on its previous CPU at once if that CPU is idle and no task waits. Otherwise,
    /// on a sync wakeup, it may inherit the waker's remaining slice on the waker's CPU. The policy
    /// decides on all other wakees, except those with a standing decision.
    PrevCpu,
    /// Like [`PrevCpu`](Self::PrevCpu), but the kernel selects the idle CPU, which may be any CPU.
    Builtin,
}

/// Options of a scheduler. The runner has further options, such as `--partial`.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The name in `ops.name`, at most 127 bytes of letters, digits, `_` and `.`.
    pub name: &'static str,
    /// The slice of decisions that set none. It must be above 0. Default: [`SLICE_DFL_NS`].
    pub slice_ns: u64,
    /// How a CPU is selected for a wakee.
    pub idle: IdleSelection,
    /// Whether a task that may use a busy CPU waits for it, so that idle CPUs stay idle. If the
    /// task is still queued in the next period of BPF's watchdog, the watchdog wakes an idle CPU.
    pub low_power: bool,
    /// The program's global allocator, if it is a [`LockedHeap`]. The policy thread claims it.
    pub heap: Option<&'static LockedHeap>,
}

impl Options {
    /// The default options of a scheduler with this name.
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
