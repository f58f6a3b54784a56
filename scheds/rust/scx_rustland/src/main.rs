// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler for interactive machines: tasks that sleep often precede tasks that compute.
//!
//! | module | contents |
//! |---|---|
//! | `history` | per-task history, and the deadline that follows from it |
//! | `queue` | the waiting tasks, ordered by deadline, virtual time and arrival |
//! | `policy` | which task runs next, where, for how long, and which task it preempts |
//! | `opts`, `sched` | the options, and how the runner starts the scheduler |

mod history;
mod opts;
mod policy;
mod queue;
mod sched;

use std::process::ExitCode;

use scx_rustland_core::LockedHeap;

/// The program's allocator, which does not block the policy thread. If that thread had to wait for
/// memory, all tasks would have to wait for a decision.
#[global_allocator]
static HEAP: LockedHeap = LockedHeap::new();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Rustland>()
}
