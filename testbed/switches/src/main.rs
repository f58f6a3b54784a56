// SPDX-License-Identifier: GPL-2.0-only
//! Records who ran where and for how long, from the kernel's context switches.
//!
//! What a scheduler says of itself is one thing; this asks the kernel. Each time that a thread
//! leaves a CPU, the BPF half (`bpf/main.bpf.c`) records its run: CPU, thread, name, when it
//! began and ended, and whether the thread slept, exited, or could have gone on. Beside that it
//! counts for each thread wake-ups, switches and, if asked for, system calls.
//!
//! ```text
//! scx_switches --comm hog --json --seconds 5
//! ```
//!
//! "recording" on standard error says that from now on nothing is missed. What began before is
//! left out rather than guessed; what the ring had no place for is counted and told. Runs are read
//! every 20 ms, and nobody is woken up for them.
//!
//! Text is for people: seconds of the monotonic clock, and us. JSON is for programs: integers, ns,
//! an object on each line, of which the last one is the summary:
//!
//! | `type` | fields |
//! |---|---|
//! | `run` | `start_ns` `stop_ns` `ran_ns` `cpu` `pid` `tgid` `comm` `end` `prio` `policy` |
//! | `summary` | `elapsed_s` `runs` `lost` `uncounted` `threads` |
//!
//! `end` is `preempted`, `slept`, `exited` or, in the last lines, `running`. A thread of the
//! summary has `pid` `tgid` `comm`, of its complete runs `runs` (their number) `cpu_ns`
//! `run_p50_ns` `run_p90_ns` `run_max_ns`, of one that was not over `running_ns`, and `wakeups`
//! `switches_in` `voluntary` `involuntary` `syscalls`. Threads are told apart by their ids: the
//! figures of one that got the id of one that ended are added to that one's.
//!
//! `recorder` is the recording, and prints nothing; `session` runs one; `lengths` and `summary` are
//! its figures; `output` is what is printed.

mod lengths;
mod opts;
mod output;
mod recorder;
mod session;
mod summary;

use std::io::{self, Write};
use std::process::ExitCode;

use opts::Opts;

/// Exit status when recording was not possible.
const FAILURE: u8 = 1;
/// Exit status after wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let opts = match Opts::from_command_line() {
        Ok(opts) => opts,
        Err(text) if !text.use_stderr() => return print(&text),
        Err(error) => return fail(USAGE, &scx_utils::cli::one_line(&error)),
    };
    scx_utils::log::init("scx_switches", 0);
    match session::run(&opts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(FAILURE, &format!("{error:#}")),
    }
}

/// Prints the text of --help or --version. A reader that goes away is no error.
fn print(text: &clap::Error) -> ExitCode {
    match text.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(FAILURE, &error.to_string())
        }
        _ => ExitCode::SUCCESS,
    }
}

fn fail(status: u8, message: &str) -> ExitCode {
    // Nobody may be there to be told.
    let _ = writeln!(io::stderr(), "scx_switches: {message}");
    ExitCode::from(status)
}
