// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of the scheduler: served to whoever may read them, and printed.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::unistd::{Gid, Group};
use scx_stats::{Access, Args, ClientError, Server, DEFAULT_TARGET};

use super::{CommonOpts, Instance, Scheduler, Shutdown, Trigger};

/// Who may read: `--stats-group` by name or number.
///
/// # Errors
///
/// If there is no such group.
pub(super) fn access(opts: &CommonOpts) -> Result<Access> {
    let gid = |name: &String| -> Result<u32> {
        if let Ok(number) = name.parse() {
            return Ok(number);
        }
        let group = Group::from_name(name).with_context(|| format!("--stats-group {name}"))?;
        let group = group.with_context(|| format!("--stats-group: there is no group {name}"))?;
        Ok(Gid::as_raw(group.gid))
    };
    let group = opts.stats_group.as_ref().map(gid).transpose()?;
    Ok(Access { group })
}

/// Serves the statistics of one generation until the result is dropped. A scheduler that cannot
/// be asked still schedules: what is wrong is told, and nothing more.
pub(super) fn serve<S: Scheduler>(
    opts: &CommonOpts,
    access: Access,
    instance: &S::Instance<'_>,
) -> Option<Server> {
    let launch = || -> Result<Server> {
        let mut reader = instance.stats_reader()?;
        let source = move |_: &Args| reader();
        let builder = Server::builder(&opts.stats_socket).access(access);
        Ok(builder.stats(DEFAULT_TARGET, source).launch()?)
    };
    launch()
        .map_err(|error| tracing::warn!("statistics are not served: {error:#}"))
        .ok()
}

/// Prints the statistics of whatever runs, until the user wants the program to end.
///
/// # Errors
///
/// If they may not be read, or not be printed.
pub(super) fn monitor<S: Scheduler>(
    opts: &CommonOpts,
    interval: Duration,
    shutdown: &Shutdown,
) -> Result<()> {
    let end = scx_stats::monitor(
        &opts.stats_socket,
        interval,
        |pause| shutdown.wait(pause),
        |stats: S::Stats| print_line(&stats).map_err(End::Output),
    );
    match end {
        Ok(()) => Ok(()),
        // `| head`: who reads has seen enough.
        Err(End::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(End::Output(error)) => Err(error).context("standard output"),
        Err(End::Client(error)) => Err(error.into()),
    }
}

/// What ends a monitor.
enum End {
    Client(ClientError),
    Output(io::Error),
}

impl From<ClientError> for End {
    fn from(error: ClientError) -> Self {
        End::Client(error)
    }
}

fn print_line(stats: &impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{stats}")?;
    stdout.flush()
}

/// A thread that prints the scheduler's own statistics, all generations through. It reads them
/// as anybody else does, and shares nothing with the thread that schedules.
#[derive(Debug)]
pub(super) struct Printer {
    thread: Option<JoinHandle<()>>,
    trigger: Trigger,
}

impl Printer {
    /// Starts it. When it cannot print any more, the program ends.
    pub(super) fn start<S: Scheduler>(opts: &CommonOpts, interval: Duration, end: Trigger) -> Self {
        let (until, trigger) = Shutdown::new();
        let opts = opts.clone();
        let thread = thread::spawn(move || {
            if let Err(error) = monitor::<S>(&opts, interval, &until) {
                tracing::error!("{error:#}");
            }
            end.request();
        });
        Self {
            thread: Some(thread),
            trigger,
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.trigger.request();
        if let Some(thread) = self.thread.take() {
            // A panic has been told by the thread.
            let _ = thread.join();
        }
    }
}
