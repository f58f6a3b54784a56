// SPDX-License-Identifier: GPL-2.0-only
//! Shows the statistics of the running scheduler, based on its metadata.
//!
//! `source` queries the scheduler. `flatten` converts nested structs to a list of numbers.
//! `openmetrics` formats this list for Prometheus, and `http` serves the result. `man` generates
//! the manual page and the shell completions.

#![forbid(unsafe_code)]

mod flatten;
mod http;
mod man;
mod openmetrics;
mod opts;
mod source;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use scx_utils::cli;
use scx_utils::runner::Shutdown;

use opts::Opts;
use source::Reading;

/// Exit status if there are no statistics, or if they cannot be shown.
const FAILURE: u8 = 1;
/// Exit status after wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let result = match Opts::try_parse() {
        Ok(opts) => run(&opts),
        // This is the text of --help or --version, not an error.
        Err(text) if !text.use_stderr() => text.print().context("standard output"),
        Err(error) => return fail(USAGE, &cli::one_line(&error)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // It is not a failure if the reader has closed the pipe.
        Err(error) if cli::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(FAILURE, &source::describe(&error)),
    }
}

fn fail(status: u8, message: &str) -> ExitCode {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "scxstats: {message}");
    status.into()
}

fn run(opts: &Opts) -> Result<()> {
    let path = &opts.path;
    if let Some(what) = opts.generate {
        return write(&man::generate(what)?);
    }
    if let Some(address) = opts.listen {
        return http::serve(address, path);
    }
    if let Some(interval) = opts.watch {
        return watch(interval, path, opts.json);
    }
    let reading = Reading::total(path)?;
    if opts.openmetrics {
        write(openmetrics::encode(reading.metrics()?)?.as_bytes())
    } else {
        write(text_of(&reading, opts.json)?.as_bytes())
    }
}

/// Runs until interrupted. Waits for a scheduler if none is running.
fn watch(interval: Duration, path: &Path, json: bool) -> Result<()> {
    scx_utils::log::init("scxstats", 0);
    let (shutdown, _trigger) = Shutdown::on_signals()?;
    scx_stats::monitor_with(
        path,
        interval,
        Reading::since,
        |pause| shutdown.wait(pause),
        |reading| {
            let end = if json { "" } else { "\n" };
            write((text_of(&reading, json)? + end).as_bytes())
        },
    )
}

fn text_of(reading: &Reading, json: bool) -> Result<String> {
    if json {
        return Ok(format!("{}\n", reading.stats));
    }
    let mut text = String::new();
    for metric in reading.metrics()? {
        for (labels, number) in &metric.samples {
            let labels = labels
                .iter()
                .map(|(name, value)| format!(" {name}={value}"));
            let name = metric.name.clone() + &labels.collect::<String>();
            text += &format!("{name:<40} {number}\n");
        }
    }
    Ok(text)
}

fn write(text: &[u8]) -> Result<()> {
    cli::print(text).context("standard output")
}
