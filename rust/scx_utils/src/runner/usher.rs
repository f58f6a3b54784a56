// SPDX-License-Identifier: GPL-2.0-only
//! A thread that helps the kernel when it does not get on with moving tasks between classes.
//!
//! While a scheduler is attached or goes away, the kernel waits for the end of a grace period of
//! RCU, and then for those who fork. Until it goes on, some tasks are in the ext class and others
//! in the fair class, which goes first. Where enough of the latter compute, the former do not run;
//! and if one of them was interrupted within an RCU reader, or half-way through a fork, the machine
//! hangs for as long as the others compute. 7.2 sets a twentieth of the time aside for the ext
//! class: it does not hang, but those whom it waits for are that much slower.
//!
//! But a task goes at once to the class that it is to be in when anybody sets its parameters, also
//! to what they are already (`__sched_setscheduler()` in kernel/sched/syscalls.c of 6.12): then all
//! are in one class, and share the CPUs. So that is what this does, if it takes long. After
//! `kill -9` nobody does it.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use procfs::process::all_processes_with_root;

use crate::kernel::SchedExt;
use crate::realtime::RealTime;

/// How often it looks. What it finds twice takes long.
const POLL: Duration = Duration::from_millis(500);

/// From now on until the process ends.
pub(super) fn start(kernel: SchedExt) -> Result<()> {
    let thread = thread::Builder::new().name("usher".into());
    thread.spawn(move || run(&kernel)).context("a thread")?;
    Ok(())
}

fn run(kernel: &SchedExt) {
    let _first = RealTime::raise_self();
    let mut moving = false;
    loop {
        thread::sleep(POLL);
        let moved_before = moving;
        moving = kernel.is_moving_tasks();
        if moving && moved_before {
            usher_all(kernel);
        }
    }
}

/// Who ends meanwhile needs no help.
fn usher_all(kernel: &SchedExt) {
    let processes = all_processes_with_root(kernel.root().join("proc"));
    let tasks = processes.into_iter().flatten().flatten();
    let threads = tasks.filter_map(|process| process.tasks().ok()).flatten();
    for thread in threads.flatten() {
        set_as_it_is(thread.tid);
    }
}

/// What is not of a real-time policy has no priority. To others this is an error.
fn set_as_it_is(tid: libc::pid_t) {
    let param = libc::sched_param { sched_priority: 0 };
    // Not the function of the C library: musl's does nothing.
    // SAFETY: the kernel reads one `sched_param`.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setparam, tid, &raw const param) };
}
