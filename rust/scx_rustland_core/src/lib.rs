// SPDX-License-Identifier: GPL-2.0-only
//! Schedulers whose policy is plain Rust in user space.
//!
//! An author writes a [`Policy`]: tasks and the time in, decisions out. A [`Driver`] runs it as an
//! instance of [`scx_utils::runner`], which has the options, statistics, restarts and exit status
//! that all schedulers share. `scx_rlfifo` is the smallest example, and
//! `docs/writing-a-scheduler.md` builds one from nothing.
//!
//! | module | what it is |
//! |---|---|
//! | `policy`, `task`, `cpus` | what an author sees; knows no kernel |
//! | `driver` | the loop around a policy |
//! | `scheduler` | the BPF half, for who wants the loop himself |
//! | `shared`, `program` | how the halves talk, besides the two rings |
//! | `alloc`, `memory`, `faults` | memory that never makes the policy wait |
//! | `metrics` | what is counted, and whether it adds up |
//! | `bpf/` | the BPF half; `intf.h` is the only definition of what both halves share |

pub mod alloc;
mod cpus;
mod driver;
mod faults;
mod memory;
mod metrics;
mod options;
mod policy;
mod program;
mod scheduler;
mod shared;
mod task;

pub use alloc::LockedHeap;
pub use cpus::Cpus;
pub use driver::Driver;
pub use memory::COMPACTION_SETTING;
pub use metrics::Metrics;
pub use options::{IdleSelection, Options, SLICE_DFL_NS};
pub use policy::Policy;
pub use scheduler::{BpfScheduler, Event};
pub use task::{DispatchedTask, QueuedTask, Target, Words, SLICE_INF_NS, WEIGHT_DFL};

scx_utils::include_bpf!();
use bpf_intf as intf;
