// SPDX-License-Identifier: GPL-2.0-only
//! The class-switch helper: a thread that switches tasks between scheduling classes if the kernel
//! takes long to do so.
//!
//! While a scheduler is being enabled or disabled, the kernel waits for an RCU grace period and
//! then for forks in progress. Meanwhile some tasks are in the ext class and other tasks are in the
//! fair class, which has precedence. If enough of the fair tasks compute, the ext tasks starve. If
//! an ext task was preempted within an RCU reader or during a fork, the machine hangs for as long
//! as the fair tasks compute. Linux 7.2 reserves 5 % of CPU time for the ext class, so the machine
//! does not hang, but the tasks that the kernel waits for share only this reserve.
//!
//! Setting a task's scheduling parameters, even to their present values, switches the task to its
//! new class at once (`__sched_setscheduler()` in kernel/sched/syscalls.c of 6.12). So if the
//! kernel's switch takes long, this thread sets the parameters of all tasks. It cannot help after
//! `kill -9`, which ends the helper before the kernel unloads the scheduler.
//!
//! Before the kernel switches tasks for an unload, it waits for the end of CPU hotplug. At this
//! stage, the kernel picks tasks of the fair class only within a reserve of 5 % of CPU time. A task
//! that the helper switched to the fair class could not leave a CPU that goes offline: hotplug and
//! unload would wait for each other. So the helper switches no task at this stage.

use std::fs::File;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use procfs::process::all_processes_with_root;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{getrlimit, Resource};

use crate::kernel::SchedExt;
use crate::realtime::RealTime;

/// Period of the check. If two consecutive checks see a switch in progress, the switch is assumed
/// to be stuck.
const POLL: Duration = Duration::from_millis(500);

/// Number of file descriptors to reserve at the start: the usual limit of open files.
const NR_FDS: u64 = 1024;

/// Starts the helper, which runs until the process ends. Call this function before the scheduler
/// is loaded.
pub(super) fn start(kernel: SchedExt) -> Result<()> {
    grow_fd_table().context("cannot reserve file descriptors")?;
    let thread = thread::Builder::new().name("class-switch".into());
    thread
        .spawn(move || run(&kernel))
        .context("cannot start the class-switch thread")?;
    Ok(())
}

/// Makes room for [`NR_FDS`] file descriptors. To enlarge the table of a process with several
/// threads, the kernel waits for an RCU grace period (`expand_fdtable()` in fs/file.c). A helper
/// that has to wait for the grace period to open a file cannot end the stall that delays the grace
/// period.
fn grow_fd_table() -> std::io::Result<()> {
    let limit = getrlimit(Resource::Nofile).current;
    let nr = limit.map_or(NR_FDS, |limit| limit.min(NR_FDS));
    let last = i32::try_from(nr.saturating_sub(1)).unwrap_or(i32::MAX);
    // The table does not shrink when this descriptor is closed.
    fcntl_dupfd_cloexec(File::open("/dev/null")?, last)?;
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

/// Switches all tasks. Errors are ignored, because a task may have ended.
fn switch_all(kernel: &SchedExt) {
    let processes = all_processes_with_root(kernel.root().join("proc"));
    let tasks = processes.into_iter().flatten().flatten();
    let threads = tasks.filter_map(|process| process.tasks().ok()).flatten();
    for thread in threads.flatten() {
        // Checked for each task: the loop may take seconds.
        if !kernel.is_switching_classes() {
            break;
        }
        renew_params(thread.tid);
    }
}

/// Sets a task's priority to 0, which keeps non-real-time policies as they are and is an error for
/// real-time policies.
fn renew_params(tid: libc::pid_t) {
    let param = libc::sched_param { sched_priority: 0 };
    // The system call is used directly, because the function of musl always fails.
    // SAFETY: the kernel reads one `sched_param`.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setparam, tid, &raw const param) };
}
