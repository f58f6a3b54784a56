// SPDX-License-Identifier: GPL-2.0-only
//! Makes RCU's grace-period kthread a real-time thread, on kernels where it could starve.
//!
//! While a scheduler is being enabled or disabled, some tasks are in the ext class, and other
//! tasks, such as newly forked tasks, are in the fair class. The kernel waits for a grace period in
//! order to block forks. The fair class has precedence: if enough of its tasks compute to fill all
//! CPUs, the grace-period kthread starves in the ext class, and the machine hangs for as long as
//! these tasks compute. On 6.12 and 6.17, with four CPUs, four such tasks that are forked within a
//! few ms suffice. 7.2 reserves CPU time for the ext class.
//!
//! The boot option `rcutree.kthread_prio=1` has the same effect as [`boost`].

use procfs::process::{all_processes_with_root, Stat};

use crate::kernel::SchedExt;
use crate::realtime::RealTime;

/// The kthread's name with CONFIG_PREEMPT_RCU, and its name without.
const NAMES: [&str; 2] = ["rcu_preempt", "rcu_sched"];

/// PID of kthreadd, the parent of all kernel threads.
const KTHREADD: i32 = 2;

/// Keeps RCU's kthread in `SCHED_FIFO` until the guard is dropped. `None` if the kthread is not
/// found. After `kill -9` the kthread stays in `SCHED_FIFO`.
pub(super) fn boost(kernel: &SchedExt) -> Option<RealTime> {
    let processes = all_processes_with_root(kernel.root().join("proc")).ok()?;
    let thread = processes
        .filter_map(|process| process.ok()?.stat().ok())
        .find(is_rcu_kthread)?;
    Some(RealTime::raise_ordinary(thread.pid))
}

/// Checks the parent too, because any process may have that name.
fn is_rcu_kthread(process: &Stat) -> bool {
    process.ppid == KTHREADD && NAMES.contains(&process.comm.as_str())
}
