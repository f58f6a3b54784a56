// SPDX-License-Identifier: GPL-2.0-only
//! First in, first out, with a policy in user space. Copy this folder to start your own scheduler.
//! `docs/writing-a-scheduler.md` explains it step by step.
//!
//! `policy.rs` is the policy, `opts.rs` has its options, and `sched.rs` tells the runner
//! (`scx_utils::runner`) how to start it.

mod opts;
mod policy;
mod sched;

use std::process::ExitCode;

use scx_rustland_core::LockedHeap;

/// The program's allocator, which does not block the policy thread. If that thread had to wait for
/// memory, all tasks would have to wait for a decision.
#[global_allocator]
static HEAP: LockedHeap = LockedHeap::new();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::RlFifo>()
}
