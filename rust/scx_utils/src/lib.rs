// SPDX-License-Identifier: GPL-2.0-only
//! What schedulers of the Linux class sched_ext share.
//!
//! Two features, for the two times in a scheduler's life: `runtime` (the default) is what it is
//! made of while it runs, `builder` compiles its BPF side in the build script.
//!
//! | module | what it is |
//! |---|---|
//! | [`runner`] | the run loop of every scheduler: options, restarts, statistics, exit status |
//! | [`bpf`] | the BPF side, opened, loaded and attached |
//! | [`exit_info`] | how a scheduler ended |
//! | [`kernel`], [`compat`] | what the running kernel says, and what it has |
//! | [`hotplug`], [`topology`], [`cpumask`] | nodes, caches, cores and CPUs |
//! | [`infeasible`] | loads, with weights that no machine can honour brought down |
//! | [`percpu`], [`ravg`] | counters and running averages of BPF programs |
//! | [`time`] | the clock of BPF programs |
//! | [`host`] | settings of the machine that are put back |
//! | [`cgroups`] | what cgroups ask for and do not get |
//! | [`manifest`] | what a scheduler tells of itself to those who start it |
//! | [`cli`], [`log`](mod@log), [`build_id`] | how programs of this project talk |
//! | `builder` | compiling BPF programs |

#[cfg(feature = "builder")]
pub mod builder;

#[cfg(feature = "runtime")]
pub mod bpf;
#[cfg(feature = "runtime")]
mod btf;
#[cfg(feature = "runtime")]
pub mod build_id;
#[cfg(feature = "runtime")]
pub mod cgroups;
#[cfg(feature = "runtime")]
pub mod cli;
#[cfg(feature = "runtime")]
pub mod compat;
#[cfg(feature = "runtime")]
pub mod cpumask;
#[cfg(feature = "runtime")]
pub mod exit_info;
#[cfg(feature = "runtime")]
pub mod host;
#[cfg(feature = "runtime")]
pub mod hotplug;
#[cfg(feature = "runtime")]
pub mod infeasible;
#[cfg(feature = "runtime")]
pub mod kernel;
#[cfg(feature = "runtime")]
pub mod log;
#[cfg(feature = "runtime")]
mod macros;
#[cfg(feature = "runtime")]
pub mod manifest;
#[cfg(feature = "runtime")]
pub mod percpu;
#[cfg(feature = "runtime")]
pub mod ravg;
#[cfg(feature = "runtime")]
mod realtime;
#[cfg(feature = "runtime")]
pub mod runner;
#[cfg(feature = "runtime")]
pub mod time;
#[cfg(feature = "runtime")]
pub mod topology;

/// For what [`include_bpf!`] brings in.
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub use zerocopy;
