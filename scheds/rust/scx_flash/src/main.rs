// SPDX-License-Identifier: GPL-2.0-only
//! A fair scheduler that orders tasks by virtual time. The policy is `bpf/main.bpf.c`.

mod opts;
mod sched;
mod stats;

use std::process::ExitCode;

scx_utils::include_bpf!();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Flash>()
}
