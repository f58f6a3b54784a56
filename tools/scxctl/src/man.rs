// SPDX-License-Identifier: GPL-2.0-only
//! Generates the manual page and the shell completions.

use std::io;

use clap::CommandFactory as _;
use scx_utils::cli::{self, Generate, Section};

use crate::opts::Opts;

const SECTIONS: [Section<'_>; 4] = [
    (
        "MODES",
        &[
            "auto: The scheduler's defaults. If the loader is configured so, the scheduler follows \
             the power profile in this mode: see scx_loader(8).",
            "gaming: Even frame rates while other programs compute.",
            "lowlatency: Low wakeup latency, at the cost of throughput.",
            "powersave: Less power, at the cost of latency.",
            "server: Throughput, at the cost of latency.",
            "A scheduler that does not define a mode runs with its defaults in that mode.",
        ],
    ),
    (
        "RECOMMENDATIONS",
        &[
            "recommend considers CPUs, caches, power supply, cgroups with weights or quotas, and \
             what runs during two seconds, such as games and their launchers, desktops, audio \
             servers, databases and web servers. It prints a scheduler with a mode, what was found \
             and measured, and the command to try it. Run it while the machine does what it is \
             for.",
            "Only installed schedulers that this kernel can load are recommended, and the kernel's \
             own one if tasks hardly wait for CPUs, so that there is nothing to gain.",
            "With --json, scheduler and mode are null for the kernel's own scheduler. reasons has \
             what was found and what follows from it, rule the name of the rule that decided, and \
             facts what was measured, null where it could not be read. Only root can count the \
             threads that wait for sockets.",
        ],
    ),
    (
        "EXIT STATUS",
        &[
            "0: Success. For check: no problem was found. For recommend: also if the kernel's own \
             scheduler is recommended.",
            "1: Failure, with the reason in one line on standard error. For check: a problem was \
             found.",
            "2: Wrong usage.",
        ],
    ),
    (
        "SEE ALSO",
        &["scx_loader(8), scxstats(1), scx_rustland(8), scx_rusty(8)"],
    ),
];

pub(crate) fn generate(what: Generate) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    cli::generate(what, &mut Opts::command(), "1", &SECTIONS, &mut text)?;
    Ok(text)
}
