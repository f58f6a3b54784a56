// SPDX-License-Identifier: GPL-2.0-only
//! Shared by the schedulers of the Linux class sched_ext.
//!
//! Two features: `runtime` (the default) for the scheduler itself, `builder` compiles its BPF side
//! in the build script.
//!
//! | module | contents |
//! |---|---|
//! | [`runner`] | the run loop of every scheduler: options, restarts, statistics, exit status |
//! | [`bpf`] | the BPF side, opened, loaded and attached |
//! | [`exit_info`] | how a scheduler ended |
//! | [`kernel`], [`compat`] | state and features of the running kernel |
//! | [`hotplug`], [`topology`], [`cpumask`] | nodes, caches, cores and CPUs |
//! | [`infeasible`] | loads, with infeasible weights clamped |
//! | [`percpu`], [`ravg`] | counters and running averages of BPF programs |
//! | [`time`] | the clock of BPF programs |
//! | [`host`], [`resume_latency`] | machine settings that are restored |
//! | [`power`], [`primary`] | the power profile, and the CPUs that a scheduler fills first |
//! | [`placement`] | options on where tasks run, for BPF sides that include `<scx/cpus.bpf.h>` |
//! | [`cgroups`] | cgroup controls that have no effect |
//! | [`manifest`] | a scheduler's description for programs that start it |
//! | [`cli`], [`log`](mod@log), [`build_id`] | common to all programs of this project |
//! | `builder` | compiles BPF programs |

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
mod cpus;
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
pub mod placement;
#[cfg(feature = "runtime")]
pub mod power;
#[cfg(feature = "runtime")]
pub mod primary;
#[cfg(feature = "runtime")]
pub mod ravg;
#[cfg(feature = "runtime")]
mod realtime;
#[cfg(feature = "runtime")]
pub mod resume_latency;
#[cfg(feature = "runtime")]
pub mod runner;
#[cfg(feature = "runtime")]
pub mod time;
#[cfg(feature = "runtime")]
pub mod topology;

/// For the code that [`include_bpf!`] includes.
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub use zerocopy;
