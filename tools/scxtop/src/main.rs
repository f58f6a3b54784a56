// SPDX-License-Identifier: GPL-2.0-only
//! Shows what the CPU scheduler does, live, and records traces for Perfetto.
//!
//! `collect` gathers a [`model::Snapshot`] for each interval from the BPF side, sysfs, the kernel's
//! log and the scheduler's statistics. `ui` draws snapshots in a terminal, and `top` prints them.
//! `trace` records events and writes them in Perfetto's format. `man` has additional sections of
//! the manual page.

mod bpf;
mod collect;
mod histogram;
mod man;
mod model;
mod opts;
mod top;
mod trace;
mod ui;

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use scx_utils::cli;

use opts::{Command, Opts};

/// Exit status when nothing can be shown or recorded.
const FAILURE: u8 = 1;
/// Exit status after wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let result = match Opts::try_parse() {
        Ok(opts) => run(opts),
        // This is the text of --help or --version, not an error.
        Err(text) if !text.use_stderr() => text.print().context("standard output"),
        Err(error) => return fail(USAGE, &cli::one_line(&error)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // It is not a failure if the reader has closed the pipe.
        Err(error) if cli::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(FAILURE, &format!("{error:#}")),
    }
}

fn fail(status: u8, message: &str) -> ExitCode {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "scxtop: {message}");
    status.into()
}

fn run(opts: Opts) -> Result<()> {
    if let Some(what) = opts.generate {
        return cli::print(&man::generate(what)?).context("standard output");
    }
    scx_utils::log::init("scxtop", 0);
    match opts.command {
        None => ui::run(&opts.live),
        Some(Command::Top(top)) => top::run(&top),
        Some(Command::Trace(trace)) => trace::run(&trace),
    }
}
