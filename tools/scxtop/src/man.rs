// SPDX-License-Identifier: GPL-2.0-only
//! The manual page, and shell completions.

use std::io;

use clap::CommandFactory as _;
use scx_utils::cli::{self, Generate, Section};

use crate::opts::Opts;

const SECTIONS: [Section<'_>; 4] = [
    (
        "LATENCY",
        &[
            "The latency of a wakeup is the time from the wakeup until the task runs. Percentiles \
             are upper limits of histogram buckets, four for each power of two: a value is at most \
             a quarter too large. A latency below 1.28 us counts as 1.28 us.",
            "The latency of a DSQ is the time from a task's insertion until it runs, including \
             the time in the CPU's local DSQ.",
        ],
    ),
    (
        "COST",
        &[
            "CPU time, waiting time, context switches and migrations of tasks are the kernel's own \
             counters, which scxtop reads once per interval. For latencies and DSQs, BPF programs \
             observe events until 5000 context switches per second of the interval have \
             occurred. scxtop shows its own CPU time.",
            "While a trace is recorded, each event is copied to a buffer of its CPU. Events that \
             do not fit are counted, and the number is in the trace.",
        ],
    ),
    (
        "EXIT STATUS",
        &[
            "0: Success, or ended by q, SIGINT, SIGTERM or SIGHUP.",
            "1: Nothing can be shown or recorded. One line on standard error gives the reason.",
            "2: Wrong usage.",
        ],
    ),
    ("SEE ALSO", &["scxctl(1), scxstats(1), scx_loader(8)"]),
];

pub(crate) fn generate(what: Generate) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    cli::generate(what, &mut Opts::command(), "1", &SECTIONS, &mut text)?;
    Ok(text)
}
