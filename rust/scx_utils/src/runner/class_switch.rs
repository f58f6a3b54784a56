// SPDX-License-Identifier: GPL-2.0-only
//! The class-switch helper: a thread that finishes switching tasks between scheduling classes when
//! the kernel is stuck in it.
//!
//! While a scheduler is enabled or disabled, the kernel waits for an RCU grace period and then for
//! forks in progress. Meanwhile some tasks are in the ext class and others in the fair class, which
//! has precedence. If enough of the fair tasks compute, the ext tasks starve; and if one of those
//! was preempted within an RCU reader or during a fork, the machine hangs for as long as the fair
//! tasks compute. 7.2 reserves 5 % of CPU time for the ext class: it does not hang, but the tasks
//! that it waits for run that slowly.
//!
//! Setting a task's scheduling parameters, even to their present values, switches the task to its
//! new class at once (`__sched_setscheduler()` in kernel/sched/syscalls.c of 6.12). So if the
//! kernel's switch takes long, this thread does that for all tasks. After `kill -9` there is no
//! helper.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use procfs::process::all_processes_with_root;

use crate::kernel::SchedExt;
use crate::realtime::RealTime;

/// Period of the check; a switch that two consecutive checks see is stuck.
const POLL: Duration = Duration::from_millis(500);

/// Starts the helper, which runs until the process ends.
pub(super) fn start(kernel: SchedExt) -> Result<()> {
    let thread = thread::Builder::new().name("class-switch".into());
    thread.spawn(move || run(&kernel)).context("a thread")?;
    Ok(())
}

fn run(kernel: &SchedExt) {
    let _first = RealTime::raise_self();
    let mut switching = false;
    loop {
        thread::sleep(POLL);
        let was_switching = switching;
        switching = kernel.is_switching_classes();
        if switching && was_switching {
            switch_all(kernel);
        }
    }
}

/// Errors are ignored: the task may have ended.
fn switch_all(kernel: &SchedExt) {
    let processes = all_processes_with_root(kernel.root().join("proc"));
    let tasks = processes.into_iter().flatten().flatten();
    let threads = tasks.filter_map(|process| process.tasks().ok()).flatten();
    for thread in threads.flatten() {
        renew_params(thread.tid);
    }
}

/// Priority 0 keeps non-real-time policies as they are and is an error for others.
fn renew_params(tid: libc::pid_t) {
    let param = libc::sched_param { sched_priority: 0 };
    // Not the C library's function, which does nothing on musl.
    // SAFETY: the kernel reads one `sched_param`.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setparam, tid, &raw const param) };
}
