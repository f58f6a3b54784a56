//! A small mixed load that measures how it is scheduled.
//!
//! The kinds of load run side by side, each in a module of its own: `hog` burns
//! CPU, `sleeper` wakes up often and works little, `pipe` hands a byte to and fro,
//! `fork` starts processes, `periodic` has work to do in time, `request` serves, `group`
//! sends messages, `mover` changes affinities. Each measures itself, and one line per
//! kind tells the figures at the end:
//!
//! ```text
//! scx_load --hogs 8 --seconds 30
//! ```
//!
//! Every load is made of threads of the default policy, which a loaded scheduler
//! takes over; to run it with another weight, start it with `nice`.
//!
//! `run` starts and stops the threads by means of `control`; `stats` holds samples;
//! `report` is what is printed.

#![forbid(unsafe_code)]

mod clock;
mod control;
mod fork;
mod group;
mod hog;
mod mover;
mod opts;
mod periodic;
mod pipe;
mod report;
mod request;
mod run;
mod sleeper;
mod stats;

use std::process::ExitCode;

use anyhow::{Context, Result};
use scx_utils::cli;

use opts::Opts;

/// Exit status when a load could not start or broke.
const FAILURE: u8 = 1;
/// Exit status after wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    if fork::is_child() {
        return ExitCode::SUCCESS;
    }
    let opts = match Opts::from_command_line() {
        Ok(opts) => opts,
        Err(text) if !text.use_stderr() => {
            return match text.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(FAILURE, &error.to_string()),
            }
        }
        Err(error) => return fail(USAGE, &cli::one_line(&error)),
    };
    match run_and_print(&opts) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(FAILURE, &format!("{error:#}")),
    }
}

fn fail(status: u8, message: &str) -> ExitCode {
    eprintln!("scx_load: {message}");
    ExitCode::from(status)
}

fn run_and_print(opts: &Opts) -> Result<()> {
    let report = run::run(opts)?;
    let text = if opts.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        report.to_string()
    };
    cli::print(text.as_bytes()).context("standard output")
}
