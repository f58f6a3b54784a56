// SPDX-License-Identifier: GPL-2.0-only
//! First come, first served, decided in user space. Copy this folder to begin a scheduler of your
//! own; `docs/writing-a-scheduler.md` goes through it step by step.
//!
//! `policy.rs` is the scheduler. `opts.rs` has its options, and `sched.rs` tells the runner how to
//! start it.

mod opts;
mod policy;
mod sched;

use std::process::ExitCode;

use scx_rustland_core::LockedHeap;

/// The program's memory: a policy that waited for some would keep everybody waiting.
#[global_allocator]
static HEAP: LockedHeap = LockedHeap::new();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::RlFifo>()
}
