// SPDX-License-Identifier: GPL-2.0-only
//! Common code of the sched_ext schedulers written in Rust.
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
//! | [`time`] | the clock that BPF programs and user space share |
//! | [`host`], [`resume_latency`] | machine settings, restored at the end |
//! | [`power`], [`primary`] | the power profile, and the CPUs that a scheduler fills first |
//! | [`placement`] | options for where tasks run, for BPF sides that include `<scx/cpus.bpf.h>` |
//! | [`cgroups`] | cgroup controls that have no effect |
//! | [`manifest`] | a scheduler's description for programs that start it |
//! | [`cli`], [`log`](mod@log), [`build_id`] | common to all programs of this project |

pub mod bpf;
mod btf;
pub mod build_id;
pub mod cgroups;
pub mod cli;
pub mod compat;
pub mod cpumask;
mod cpus;
pub mod exit_info;
pub mod host;
pub mod hotplug;
pub mod infeasible;
pub mod kernel;
pub mod log;
mod macros;
pub mod manifest;
pub mod percpu;
pub mod placement;
pub mod power;
pub mod primary;
pub mod ravg;
mod realtime;
pub mod resume_latency;
pub mod runner;
pub mod time;
pub mod topology;

/// Used by the generated code that [`include_bpf!`] includes.
#[doc(hidden)]
pub use zerocopy;
