// SPDX-License-Identifier: GPL-2.0-only
//! One queue for each domain of CPUs that share a cache. What is decided for each task is in
//! `bpf/`; here the tuner says how far domains help each other out, and the balancer moves tasks.

mod balancer;
mod busy;
mod domains;
mod loads;
mod opts;
mod pace;
mod sched;
mod stats;
mod tuner;

use std::process::ExitCode;

scx_utils::include_bpf!();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Rusty>()
}
