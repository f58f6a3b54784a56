// SPDX-License-Identifier: GPL-2.0-only
//! The class-switch helper: a thread that finishes switching tasks between scheduling classes when
//! the kernel is stuck in it.
//!
//! While a scheduler is enabled or disabled, the kernel waits for an RCU grace period and then for
//! forks in progress. Meanwhile some tasks are in the ext class and others in the fair class, which
//! has precedence. If enough of the fair tasks compute, the ext tasks starve; and if one of those
//! was preempted within an RCU reader or during a fork, the machine hangs for as long as the fair
//! tasks compute. 7.2 reserves 5 % of CPU time for the ext class: it does not hang, but the tasks
//! that it waits for share only this reserve.
//!
//! Setting a task's scheduling parameters, even to their present values, switches the task to its
//! new class at once (`__sched_setscheduler()` in kernel/sched/syscalls.c of 6.12). So if the
//! kernel's switch takes long, this thread does that for all tasks. After `kill -9` there is no
//! helper.
//!
//! Before that, an unload waits for the end of CPU hotplug. Tasks of the fair class then get only
//! its reserve, 5 % of CPU time, so this thread leaves them where they are. But the CPU that goes
//! offline may wait forever: it sleeps until its last task is gone, and looks only when it schedules
//! (`balance_push()` in kernel/sched/core.c), which it does not if another CPU takes that task out
//! of a DSQ. So this thread wakes up all idle CPUs.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use procfs::process::all_processes_with_root;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{getrlimit, Resource};

use crate::kernel::{SchedExt, Transition};
use crate::realtime::RealTime;

/// Period of the check; a switch that two consecutive checks see is stuck.
const POLL: Duration = Duration::from_millis(500);

/// Number of file descriptors for which the kernel has room from the start: the usual limit.
const NR_FDS: u64 = 1024;

/// Starts the helper, which runs until the process ends. Call it before the scheduler is loaded.
pub(super) fn start(kernel: SchedExt) -> Result<()> {
    grow_fd_table().context("cannot reserve file descriptors")?;
    let thread = thread::Builder::new().name("class-switch".into());
    thread.spawn(move || run(&kernel)).context("a thread")?;
    Ok(())
}

/// Makes room for [`NR_FDS`] file descriptors. If a process has several threads, the kernel waits
/// for an RCU grace period before it uses a larger table (`expand_fdtable()` in fs/file.c), such as
/// when the helper opens a file: it would wait for what it is to end.
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
    let mut transition = None;
    loop {
        thread::sleep(POLL);
        let before = transition;
        transition = kernel.transition();
        match transition {
            _ if transition != before => {}
            Some(Transition::SwitchingClasses) => switch_all(kernel),
            // An error means that this kernel or service has no such device.
            Some(Transition::Bypassing) => drop(wake_up_idle_cpus()),
            None => {}
        }
    }
}

/// Makes all idle CPUs schedule. The kernel does that when the lowest tolerable latency changes
/// (`cpu_latency_qos_apply()` in kernel/power/qos.c), which here lasts until the file is closed.
fn wake_up_idle_cpus() -> std::io::Result<()> {
    let mut latency = OpenOptions::new()
        .write(true)
        .open("/dev/cpu_dma_latency")?;
    latency.write_all(&0_i32.to_ne_bytes())
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
