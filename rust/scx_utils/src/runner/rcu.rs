// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's thread that ends RCU's grace periods goes first, where it could starve.
//!
//! While a scheduler is attached or goes away, one part of the tasks is in the ext class and the
//! other in the fair class, tasks that are forked meanwhile among them; and the kernel waits for
//! a grace period, to keep forks out. The fair class goes first. Where enough of its tasks compute
//! to fill all CPUs, the thread that ends grace periods does not run any more if it is in the ext
//! class, and the machine hangs for as long as they compute: on 6.12 and 6.17, four that were
//! forked within some milliseconds on four CPUs. 7.2 sets time aside for the ext class.
//!
//! The boot option `rcutree.kthread_prio=1` does the same.

use procfs::process::{all_processes_with_root, Stat};

use crate::kernel::SchedExt;
use crate::realtime::RealTime;

/// With and without CONFIG_PREEMPT_RCU.
const NAMES: [&str; 2] = ["rcu_preempt", "rcu_sched"];

/// The parent of all of the kernel's threads, and of nobody else.
const KTHREADD: i32 = 2;

/// Holds that thread in `SCHED_FIFO`. After `kill -9` it stays there.
pub(super) fn favour_grace_periods(kernel: &SchedExt) -> Option<RealTime> {
    let processes = all_processes_with_root(kernel.root().join("proc")).ok()?;
    let thread = processes
        .filter_map(|process| process.ok()?.stat().ok())
        .find(is_it)?;
    Some(RealTime::raise_ordinary(thread.pid))
}

/// Any process may bear its name.
fn is_it(process: &Stat) -> bool {
    process.ppid == KTHREADD && NAMES.contains(&process.comm.as_str())
}
