// SPDX-License-Identifier: GPL-2.0-only
//! Generates the manual page and the shell completions.

use std::io;

use clap::CommandFactory as _;
use scx_utils::cli::{self, Generate, Section};

use crate::opts::Opts;

const SECTIONS: [Section<'_>; 3] = [
    (
        "PROMETHEUS",
        &[
            "With --openmetrics --listen, scxstats is a target for Prometheus: it answers GET \
             /metrics with the statistics of the scheduler that is running at that time, or with \
             status 503 if there is none. Monotonic numbers are counters, and their names end in \
             _total; all others are gauges.",
            "Anyone who can connect to the address can read the statistics: there is no \
             authentication and no encryption.",
        ],
    ),
    (
        "EXIT STATUS",
        &[
            "0: Success, or ended by SIGINT, SIGTERM or SIGHUP.",
            "1: There are no statistics, or they cannot be shown. One line on standard error \
             gives the reason.",
            "2: Wrong usage.",
        ],
    ),
    ("SEE ALSO", &["scx_rustland(8), scx_rusty(8), scx_fifo(8)"]),
];

pub(crate) fn generate(what: Generate) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    cli::generate(what, &mut Opts::command(), "1", &SECTIONS, &mut text)?;
    Ok(text)
}
