// SPDX-License-Identifier: GPL-2.0-only
//! `scx_rusty`: one queue for each domain of CPUs that share a cache. The BPF programs in `bpf/`
//! make the scheduling decisions. In user space, the tuner sets the slice and decides which idle
//! CPUs tasks of other domains may use, and the balancer migrates tasks between domains.

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
