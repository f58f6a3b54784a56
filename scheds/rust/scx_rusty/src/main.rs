// SPDX-License-Identifier: GPL-2.0-only
//! One queue for each domain of CPUs that share a cache. Scheduling decisions are in `bpf/`; here
//! the tuner sets how far domains use each other's idle CPUs, and the balancer migrates tasks.

mod balancer;
mod busy;
mod domains;
mod interval;
mod loads;
mod opts;
mod sched;
mod stats;
mod tuner;

use std::process::ExitCode;

scx_utils::include_bpf!();

fn main() -> ExitCode {
    scx_utils::runner::main::<sched::Rusty>()
}
