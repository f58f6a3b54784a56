// SPDX-License-Identifier: GPL-2.0-only
//! First in, first out. The policy is `bpf/main.bpf.c`.

mod opts;
mod sched;
mod stats;

use std::process::ExitCode;

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Fifo>()
}
