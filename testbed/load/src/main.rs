//! A small mixed load that measures how it is scheduled.
//!
//! The kinds of load run in parallel, each in its own module: `hog` burns CPU, `sleeper` wakes up
//! often and works little, `pipe` passes a byte back and forth, `fork` starts processes, `periodic`
//! has work with deadlines, `request` serves requests, `client` sends requests to a server process,
//! `group` sends messages, `mover` changes affinities. Each kind measures itself. The result has
//! one line for each kind that ran. An example:
//!
//! ```text
//! scx_load --hogs 8 --seconds 30
//! ```
//!
//! All threads keep the scheduling policy with which the program was started. If it is the default
//! policy, a loaded scheduler schedules them. To change their weight, start the program with
//! `nice`.
//!
//! `run` starts and stops the threads through `control`; `stats` stores samples; `report` is the
//! output.

#![deny(unsafe_code)]

mod client;
mod clock;
mod control;
mod fork;
mod group;
mod hog;
mod locks;
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

/// Exit status when a load failed.
const FAILURE: u8 = 1;
/// Exit status after wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    if fork::is_child() {
        return ExitCode::SUCCESS;
    }
    if let Some(result) = client::serve_if_asked() {
        return match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(FAILURE, &format!("server: {error:#}")),
        };
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
