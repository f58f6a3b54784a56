// SPDX-License-Identifier: GPL-2.0-only
//! Latency-critical tasks get early virtual deadlines. The policy is in `bpf/`.

mod mode;
mod opts;
mod orders;
mod samples;
mod sched;
mod stats;

use std::process::ExitCode;

scx_utils::include_bpf!();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Lavd>()
}
