// SPDX-License-Identifier: GPL-2.0-only
//! First come, first served. The scheduler itself is `bpf/main.bpf.c`.

mod opts;
mod sched;
mod stats;

use std::process::ExitCode;

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Fifo>()
}
