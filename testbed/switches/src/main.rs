// SPDX-License-Identifier: GPL-2.0-only
//! Traces which task ran where and for how long, from the kernel's context switches.
//!
//! The trace is independent of a scheduler's own statistics. Each time a thread is switched out,
//! the BPF side (`bpf/main.bpf.c`) records its run: CPU, thread, name, start and end, and whether
//! the thread slept, exited, or was still runnable. The BPF side also counts wakeups, switches and,
//! on request, system calls of each thread.
//!
//! ```text
//! scx_switches --comm hog --json --seconds 5
//! ```
//!
//! "recording" on standard error means that all events are recorded from then on. Runs that began
//! earlier are omitted; records that did not fit into the ring are counted and reported. Records
//! are read every 20 ms, and sooner after a full batch. A new record does not wake the reader.
//!
//! In text output, starts are in seconds of the monotonic clock, lengths in us, and CPU times in
//! ms. In JSON output, all times are integers in ns, except `elapsed_s`, which is in seconds. Each
//! line is an object, and the last one is the summary:
//!
//! | `type` | fields |
//! |---|---|
//! | `run` | `start_ns` `stop_ns` `ran_ns` `cpu` `pid` `tgid` `comm` `end` `prio` `policy` |
//! | `summary` | `elapsed_s` `runs` `lost` `uncounted` `threads` |
//!
//! `end` is `preempted`, `slept`, `exited` or, in the last runs, `running`. Each of the summary's
//! `threads` has `pid` `tgid` `comm`; figures of its complete runs: `runs` (their number) `cpu_ns`
//! `run_p50_ns` `run_p90_ns` `run_max_ns`; the length of an incomplete run: `running_ns`; and the
//! counters `wakeups` `switches_in` `voluntary` `involuntary` `syscalls`. If a thread id is reused,
//! the figures cover all threads with this id.
//!
//! `recorder` records, without output; `session` runs a recording; `lengths` and `summary`
//! aggregate; `output` prints.

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

/// Prints the text of --help or --version. A closed pipe is not an error.
fn print(text: &clap::Error) -> ExitCode {
    match text.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(FAILURE, &error.to_string())
        }
        _ => ExitCode::SUCCESS,
    }
}

fn fail(status: u8, message: &str) -> ExitCode {
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "scx_switches: {message}");
    ExitCode::from(status)
}
