// SPDX-License-Identifier: GPL-2.0-only
//! Schedulers whose policy is plain Rust in user space.
//!
//! The author of a scheduler implements a [`Policy`]: it gets tasks and the time, and returns
//! decisions. A [`Driver`] runs the policy as an instance of [`scx_utils::runner`], which provides
//! the options, statistics, restarts and exit status that all schedulers have in common.
//! `scx_rlfifo` is the smallest example, and `docs/writing-a-scheduler.md` builds a scheduler from
//! scratch.
//!
//! | module | contents |
//! |---|---|
//! | `policy`, `task`, `cpus` | the author's interface, independent of the kernel |
//! | `driver` | the loop around a policy |
//! | `scheduler` | the BPF side with its rings of tasks and decisions, for a loop of one's own |
//! | `shared`, `program` | state in shared memory, and BPF programs that user space runs |
//! | `options` | the options of the BPF side |
//! | `alloc`, `memory`, `faults` | memory whose use does not block the policy thread |
//! | `metrics` | counters and their consistency check |
//! | `include/rustland/` | the BPF side; `intf.h` defines everything that both sides share |
//! | `builder` | builds a scheduler's own BPF side, which extends this one |
//!
//! There are two features: `runtime` (the default) is for the scheduler, `builder` for its build
//! script.

#[cfg(feature = "runtime")]
pub mod alloc;
#[cfg(feature = "builder")]
mod builder;
#[cfg(feature = "runtime")]
mod cpus;
#[cfg(feature = "runtime")]
mod driver;
#[cfg(feature = "runtime")]
mod faults;
#[cfg(feature = "runtime")]
mod memory;
#[cfg(feature = "runtime")]
mod metrics;
#[cfg(feature = "runtime")]
mod options;
#[cfg(feature = "runtime")]
mod policy;
#[cfg(feature = "runtime")]
mod program;
#[cfg(feature = "runtime")]
mod scheduler;
#[cfg(feature = "runtime")]
mod shared;
#[cfg(feature = "runtime")]
mod task;

#[cfg(feature = "runtime")]
pub use alloc::LockedHeap;
#[cfg(feature = "builder")]
pub use builder::RustLandBuilder;
#[cfg(feature = "runtime")]
pub use cpus::Cpus;
#[cfg(feature = "runtime")]
pub use driver::Driver;
#[cfg(feature = "runtime")]
pub use memory::COMPACTION_SETTING;
#[cfg(feature = "runtime")]
pub use metrics::Metrics;
#[cfg(feature = "runtime")]
pub use options::{IdleSelection, Options, SLICE_DFL_NS};
#[cfg(feature = "runtime")]
pub use policy::Policy;
#[cfg(feature = "runtime")]
pub use scheduler::{BpfScheduler, Event};
#[cfg(feature = "runtime")]
pub use task::{DispatchedTask, QueuedTask, Target, TaskCtx, SLICE_INF_NS, WEIGHT_DFL};

#[cfg(feature = "runtime")]
scx_utils::include_bpf!();
#[cfg(feature = "runtime")]
use bpf_intf as intf;

/// The kfuncs without which the BPF side does not load, for
/// [`Scheduler::KFUNCS`](scx_utils::runner::Scheduler::KFUNCS).
#[cfg(feature = "runtime")]
pub const KFUNCS: &[&str] = bpf_kfuncs::KFUNCS;
