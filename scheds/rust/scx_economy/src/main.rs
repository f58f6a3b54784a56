// SPDX-License-Identifier: GPL-2.0-only
//! A fair scheduler in which tasks trade CPU time. The policy is in `bpf/`.

mod books;
mod explain;
mod opts;
mod sched;
mod stats;
mod trace;

use std::process::ExitCode;

scx_utils::include_bpf!();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Economy>()
}
