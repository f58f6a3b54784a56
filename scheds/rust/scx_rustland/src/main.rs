// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler for machines that people sit at: whoever sleeps often goes before whoever computes.
//!
//! | module | what it is |
//! |---|---|
//! | `history` | what is remembered of a task, and its place in the order |
//! | `queue` | the tasks that wait, found by deadline, by virtual time and by arrival |
//! | `policy` | who goes next, where, for how long, and whom they interrupt |
//! | `opts`, `sched` | the options, and how the runner starts it |

mod history;
mod opts;
mod policy;
mod queue;
mod sched;

use std::process::ExitCode;

use scx_rustland_core::LockedHeap;

/// The program's memory: a policy that waited for some would keep everybody waiting.
#[global_allocator]
static HEAP: LockedHeap = LockedHeap::new();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Rustland>()
}
