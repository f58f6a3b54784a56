// SPDX-License-Identifier: GPL-2.0-only
//! The command-line client of scx_loader.
//!
//! `client` sends requests, `operation` prints their progress, `status` and `watch` show the state.
//! `check` diagnoses the machine, and `recommend` chooses a scheduler for it, both without the
//! loader. `format` converts names of schedulers and modes.

#![forbid(unsafe_code)]

mod check;
mod client;
mod format;
mod man;
mod operation;
mod opts;
mod recommend;
mod status;
mod watch;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use scx_loader::registry::Registry;
use scx_utils::cli;
use zbus::block_on;

use opts::{Command, Opts};

/// Exit status of a failed command, and of `check` if it finds a problem.
const FAILURE: u8 = 1;
/// Exit status after wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let result = match Opts::try_parse() {
        Ok(opts) if opts.command.is_none() && opts.generate.is_none() => {
            return fail(USAGE, "no command: see --help");
        }
        Ok(opts) => run(&opts),
        // This is the text of --help or --version, not an error.
        Err(text) if !text.use_stderr() => text.print().context("standard output").map(|()| 0),
        Err(error) => return fail(USAGE, &cli::one_line(&error)),
    };
    match result {
        Ok(status) => status.into(),
        // It is not a failure if the reader has closed the pipe.
        Err(error) if cli::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(FAILURE, &format!("{error:#}")),
    }
}

fn fail(status: u8, message: &str) -> ExitCode {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "scxctl: {message}");
    status.into()
}

fn run(opts: &Opts) -> Result<u8> {
    if let Some(what) = opts.generate {
        return write(&man::generate(what)?).map(|()| 0);
    }
    let command = opts.command.as_ref();
    let text = match command.context("no command: see --help")? {
        Command::Check { schedulers } => return check(schedulers, opts.json),
        Command::Recommend {
            seconds,
            schedulers,
        } => return recommend(schedulers, *seconds, opts.json).map(|()| 0),
        Command::Watch => return block_on(watch::watch(opts.json)).map(|()| 0),
        command => block_on(client::run(command, opts.json))?,
    };
    write(text.as_bytes()).map(|()| 0)
}

fn check(schedulers: &Path, json: bool) -> Result<u8> {
    // libbpf's messages, for example about damaged BTF, get the format of scxctl's own messages.
    scx_utils::log::init("scxctl", 0);
    // Without the descriptions of schedulers, the machine can still be checked.
    let (registry, missing) = match Registry::read(schedulers) {
        Ok(registry) => (registry, None),
        Err(error) => (Registry::default(), Some(check::no_schedulers(&error))),
    };
    let mut findings = check::check(Path::new("/"), &registry);
    findings.extend(missing);
    let text = if json {
        serde_json::to_string_pretty(&findings)? + "\n"
    } else {
        check::print(&findings)
    };
    write(text.as_bytes())?;
    Ok(check::status(&findings))
}

fn recommend(schedulers: &Path, seconds: u32, json: bool) -> Result<()> {
    scx_utils::log::init("scxctl", 0);
    let registry = Registry::read(schedulers)?;
    let time = Duration::from_secs(seconds.into());
    let recommendation = recommend::recommend(Path::new("/"), &registry, time)?;
    let text = if json {
        serde_json::to_string_pretty(&recommendation)? + "\n"
    } else {
        recommend::print(&recommendation)
    };
    write(text.as_bytes())
}

fn write(text: &[u8]) -> Result<()> {
    cli::print(text).context("standard output")
}
