// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of the scheduler: served to whoever may read them, and printed.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use crossbeam_channel::{bounded, Receiver, RecvTimeoutError};
use nix::unistd::{Gid, Group};
use scx_stats::{Access, Args, ClientError, Server, Stats as _, DEFAULT_TARGET};

use super::{CommonOpts, Instance, Scheduler, Shutdown, StatsReader, Trigger};

/// The number that means "as it is" where a group is set.
const NO_GROUP: u32 = u32::MAX;

/// Who may read: `--stats-group` by name or number.
///
/// # Errors
///
/// If there is no such group.
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

/// How long the end of a generation waits for its statistics: a write to a terminal that was
/// stopped would otherwise hold it up.
const PATIENCE: Duration = Duration::from_secs(2);

/// The statistics of one generation: served, and printed if that was asked for, until this is
/// dropped. All of it is done by threads of its own, for the one that schedules must not wait for
/// a file system, a socket or a terminal. A scheduler that cannot be asked still schedules: what
/// is wrong is told, and nothing more.
#[derive(Debug)]
pub(super) struct Service {
    trigger: Trigger,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread is at its end.
    ended: Receiver<()>,
}

impl Service {
    /// Starts it; `None` if that is impossible. `end` ends the program, when nobody reads any more
    /// what it is to print.
    pub(super) fn start<S: Scheduler>(
        opts: &CommonOpts,
        access: Access,
        instance: &S::Instance<'_>,
        end: Trigger,
    ) -> Option<Self> {
        let (until, trigger) = tell("there are no statistics", Shutdown::new())?;
        let (at_end, ended) = bounded::<()>(0);
        let server = instance.stats_reader().map(|reader| {
            let socket = opts.stats_socket.clone();
            move || launch::<S>(&socket, access, reader)
        });
        let printer = opts.stats.map(|interval| {
            let reader = instance.stats_reader();
            move |until: &Shutdown| print::<S>(reader?, interval, until, &end)
        });
        let thread = thread::spawn(move || {
            let _at_end = at_end;
            let server = tell(
                "statistics are not served",
                server.and_then(|launch| launch()),
            );
            if let Some(print) = printer {
                tell("statistics are not printed", print(&until));
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
        if self.ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Disconnected) {
            // A panic has been told by the thread.
            let _ = thread.map(JoinHandle::join);
        }
    }
}

fn tell<T>(what: &str, result: Result<T>) -> Option<T> {
    result
        .map_err(|error| tracing::warn!("{what}: {error:#}"))
        .ok()
}

fn launch<S: Scheduler>(
    socket: &Path,
    access: Access,
    mut reader: StatsReader<S::Stats>,
) -> Result<Server> {
    let source = move |_: &Args| reader();
    let builder = Server::builder(socket).access(access);
    Ok(builder.stats(DEFAULT_TARGET, source).launch()?)
}

/// Prints what happened in each interval, until the generation is over.
fn print<S: Scheduler>(
    mut reader: StatsReader<S::Stats>,
    interval: Duration,
    until: &Shutdown,
    end: &Trigger,
) -> Result<()> {
    let mut before = reader().ok();
    let mut due = Instant::now();
    loop {
        // Intervals that were missed, as in suspend, are not made up for.
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
            // `| head`: who reads has seen enough. Nobody wants a scheduler that he cannot see.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                end.request();
                return Ok(());
            }
            result => result.context("standard output")?,
        }
        before = Some(now);
    }
}
