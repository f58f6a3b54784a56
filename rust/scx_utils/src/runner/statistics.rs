// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's statistics: served on the socket, and printed.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use crossbeam_channel::{bounded, Receiver, RecvTimeoutError};
use nix::unistd::{Gid, Group};
use scx_stats::{Access, Args, Client, ClientError, Server, ServerBuilder, Stats, DEFAULT_TARGET};
use serde::de::DeserializeOwned;

use super::{CommonOpts, Instance, Scheduler, Shutdown, StatsReader, Trigger};

/// The group id with which chown() leaves the group unchanged.
const NO_GROUP: u32 = u32::MAX;

/// Who may read the statistics: root and, if given, the group of `--stats-group` (a name or an id).
///
/// # Errors
///
/// If no group has this name, or the number is not a valid group id.
pub(super) fn access(opts: &CommonOpts) -> Result<Access> {
    let gid = |name: &String| -> Result<u32> {
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = name.parse().ok().filter(|number| *number != NO_GROUP);
            return number.with_context(|| format!("--stats-group: there is no group {name}"));
        }
        let group = Group::from_name(name).with_context(|| format!("--stats-group {name}"))?;
        let group = group.with_context(|| format!("--stats-group: there is no group {name}"))?;
        Ok(Gid::as_raw(group.gid))
    };
    let group = opts.stats_group.as_ref().map(gid).transpose()?;
    Ok(Access { group })
}

/// Prints the statistics of the running scheduler, until the user requests the end or the reader
/// closes the pipe.
///
/// # Errors
///
/// If the statistics cannot be read or printed.
pub(super) fn monitor<S: Scheduler>(
    opts: &CommonOpts,
    interval: Duration,
    shutdown: &Shutdown,
) -> Result<()> {
    let print = |stats: S::Stats| print_line(&stats);
    follow(opts, interval, shutdown, Client::stats, print)
}

/// Prints what `ask` gets from the running scheduler, once per `interval`, until the user requests
/// the end or the reader of standard output closes the pipe. While no scheduler serves statistics,
/// waits for one.
///
/// # Errors
///
/// If the answer cannot be read or printed.
pub fn follow<T: Stats + DeserializeOwned>(
    opts: &CommonOpts,
    interval: Duration,
    shutdown: &Shutdown,
    ask: impl FnMut(&mut Client) -> Result<T, ClientError>,
    mut print: impl FnMut(T) -> io::Result<()>,
) -> Result<()> {
    let end = scx_stats::monitor_with(
        &opts.stats_socket,
        interval,
        ask,
        |pause| shutdown.wait(pause),
        |stats| print(stats).map_err(End::Output),
    );
    match end {
        Ok(()) => Ok(()),
        // `| head`: the reader has closed the pipe.
        Err(End::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(End::Output(error)) => Err(error).context("standard output"),
        Err(End::Client(error)) => Err(client_error(error)),
    }
}

/// The error of a client of this scheduler's statistics. If the answer is not the expected one,
/// adds the likely cause.
#[must_use]
pub fn client_error(error: ClientError) -> anyhow::Error {
    match error {
        ClientError::Unexpected { .. } | ClientError::Refused { .. } => anyhow::Error::new(error)
            .context("the running scheduler is another one, or another version"),
        _ => error.into(),
    }
}

/// An error that ends a monitor.
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

/// How long the end of a generation waits for the statistics thread. A write to a stopped terminal
/// may block this thread.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Serves the statistics of one generation, and prints them if requested, until it is dropped.
/// Other threads do this work, because the policy thread must not wait for a file system, a socket
/// or a terminal. Errors are logged, and the scheduler continues.
#[derive(Debug)]
pub(super) struct Service {
    trigger: Trigger,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
}

impl Service {
    /// Starts the service. `None` if the process has no file descriptors left. `end` ends the
    /// program if the reader of its output closes the pipe.
    pub(super) fn start<S: Scheduler>(
        opts: &CommonOpts,
        access: Access,
        instance: &S::Instance<'_>,
        end: Trigger,
    ) -> Option<Self> {
        let (until, trigger) = warn_on_error("there are no statistics", Shutdown::new())?;
        let (at_end, ended) = bounded::<()>(0);
        let server = server::<S>(&opts.stats_socket, access, instance);
        let printer = opts.stats.map(|interval| {
            let reader = instance.stats_reader();
            move |until: &Shutdown| print::<S>(reader?, interval, until, &end)
        });
        let thread = thread::spawn(move || {
            let _at_end = at_end;
            let server = warn_on_error(
                "statistics are not served",
                server.and_then(|server| Ok(server.launch()?)),
            );
            if let Some(print) = printer {
                warn_on_error("statistics are not printed", print(&until));
            }
            until.wait_for_ever();
            drop(server);
        });
        Some(Self {
            trigger,
            thread: Some(thread),
            ended,
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.trigger.request();
        let thread = self.thread.take();
        if self.ended.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Disconnected) {
            // If the thread panicked, it has printed the panic message.
            let _ = thread.map(JoinHandle::join);
        }
    }
}

fn warn_on_error<T>(what: &str, result: Result<T>) -> Option<T> {
    result
        .map_err(|error| tracing::warn!("{what}: {error:#}"))
        .ok()
}

fn server<S: Scheduler>(
    socket: &Path,
    access: Access,
    instance: &S::Instance<'_>,
) -> Result<ServerBuilder> {
    let mut reader = instance.stats_reader()?;
    let source = move |_: &Args| reader();
    let builder = Server::builder(socket).access(access);
    instance.more_stats(builder.stats(DEFAULT_TARGET, source))
}

/// Prints the changes in each interval, until the generation ends or the reader closes the pipe.
fn print<S: Scheduler>(
    mut reader: StatsReader<S::Stats>,
    interval: Duration,
    until: &Shutdown,
    end: &Trigger,
) -> Result<()> {
    let mut before = reader().ok();
    let mut due = Instant::now();
    loop {
        // Intervals missed while the output blocked or the process was stopped are skipped.
        due = (due + interval).max(Instant::now());
        if until.wait(due.saturating_duration_since(Instant::now())) {
            return Ok(());
        }
        let now = match reader() {
            Ok(now) => now,
            Err(error) => {
                tracing::warn!("no statistics: {error:#}");
                continue;
            }
        };
        let line = before
            .as_ref()
            .map_or_else(|| now.clone(), |before| now.since(before));
        match print_line(&line) {
            // `| head`: the reader has closed the pipe; end the scheduler too.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                end.request();
                return Ok(());
            }
            result => result.context("standard output")?,
        }
        before = Some(now);
    }
}
