// SPDX-License-Identifier: GPL-2.0-only
//! The run loop that all Rust schedulers share.
//!
//! A scheduler's `main.rs` is its list of modules and
//! `fn main() -> ExitCode { runner::main::<sched::Fifo>() }`. What it is comes from two traits:
//! [`Scheduler`] turns options into a [`Config`](Scheduler::Config) and that into an attached
//! scheduler, which is an [`Instance`]. The runner has the rest: common options, signals, the
//! order of things, restarts, statistics, the report of the end and the exit status.
//!
//! One life of an instance is a *generation*. CPU hotplug ends it with a restart code, and the
//! next one begins from the same configuration, with all that depends on the machine read anew:
//! nothing of it may live in a static.

mod class_switch;
mod generations;
mod nice;
mod opts;
mod rcu;
mod shutdown;
mod start;
mod statistics;
#[cfg(test)]
mod tests;

pub use opts::{CommonOpts, LibbpfOpts};
pub use shutdown::{Shutdown, Trigger};
pub use start::Start;

use std::fmt::Display;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use scx_stats::Stats;
use serde::de::DeserializeOwned;

use crate::bpf::Slot;
use crate::cgroups::Ignored;
use crate::exit_info::ExitInfo;
use crate::kernel::SchedExt;
use crate::manifest::Modes;
use crate::{cli, log};
use generations::Generations;
use opts::Cli;

/// Exit statuses, the same for every scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// 0: ended by a signal, unregistered, or `SysRq-S`.
    Clean,
    /// 1: wrong usage, or it could not be loaded.
    Failed,
    /// 2: ended for an error while it ran.
    Ejected,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(match status {
            Status::Clean => 0,
            Status::Failed => 1,
            Status::Ejected => 2,
        })
    }
}

/// What a program says of itself. Made by [`program!`](crate::program) of its `Cargo.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// As it is called: `scx_fifo`.
    pub name: &'static str,
    /// Of the package.
    pub version: &'static str,
    /// One sentence.
    pub about: &'static str,
}

/// Reads statistics, on a thread of its own: what it needs of the scheduler it owns, such as maps
/// by their file descriptors. So no request for statistics can delay a decision.
pub type StatsReader<T> = Box<dyn FnMut() -> Result<T> + Send>;

/// A kind of scheduler.
pub trait Scheduler: 'static {
    /// Name and version.
    const PROGRAM: Program;
    /// Paragraphs for `--help` and the manual page.
    const DESCRIPTION: &'static str;
    /// Settings of the machine that it changes while it runs, for the manual page; those of the run
    /// loop come by themselves.
    const MACHINE_SETTINGS: &'static [&'static str] = &[];
    /// What it is started with in each mode of scx_loader.
    const MODES: Modes = Modes::NONE;
    /// The functions of the kernel that it cannot do without, as `bpf_kfuncs` has them: see
    /// [`include_bpf!`](crate::include_bpf).
    const KFUNCS: &'static [&'static str];

    /// Its own options, as typed.
    type Opts: Args;
    /// Its options, checked and in the kernel's units.
    type Config;
    /// Its statistics; printed as one line.
    type Stats: Stats + DeserializeOwned + Display;
    /// The scheduler while it runs.
    type Instance<'obj>: Instance<Stats = Self::Stats>;

    /// Checks the options. Called once, before anything else is done.
    ///
    /// # Errors
    ///
    /// What is wrong with them, in one line.
    fn config(opts: Self::Opts) -> Result<Self::Config>;

    /// Opens, loads and attaches the BPF side: one generation.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    fn attach<'obj>(
        start: &Start<'_>,
        config: &Self::Config,
        slot: &'obj mut Slot,
    ) -> Result<Self::Instance<'obj>>;
}

/// A scheduler that runs.
pub trait Instance {
    /// See [`Scheduler::Stats`].
    type Stats;

    /// What the half in user space does from time to time, if anything. Called at once after
    /// attaching, and then when it asks to be.
    ///
    /// # Errors
    ///
    /// What ends the scheduler.
    fn tick(&mut self) -> Result<Tick> {
        Ok(Tick::Never)
    }

    /// Something that can be read from as soon as [`tick`](Instance::tick) has something to do,
    /// or the kernel has ended the scheduler: a wait ends early then. Asked for once.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// A reader of its statistics, which only grow. Called once or twice, at the start.
    ///
    /// # Errors
    ///
    /// Why there are none. The scheduler runs without them.
    fn stats_reader(&self) -> Result<StatsReader<Self::Stats>>;

    /// Whether the kernel has ended it. Has to be cheap.
    fn exited(&self) -> bool;

    /// Gives the machine back.
    fn detach(self) -> ExitInfo;
}

/// When the half in user space has something to do again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tick {
    /// At once: the runner does not wait, and makes no system call.
    Now,
    /// After so long.
    After(Duration),
    /// Not at all.
    Never,
    /// It wants to be attached anew, for the reason given.
    Restart(&'static str),
}

/// The [`Program`] that the calling package is.
#[macro_export]
macro_rules! program {
    () => {
        $crate::runner::Program {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            about: env!("CARGO_PKG_DESCRIPTION"),
        }
    };
}

/// The main function of a scheduler.
#[must_use]
pub fn main<S: Scheduler>() -> ExitCode {
    let name = S::PROGRAM.name;
    let cli = match opts::parse::<S>(std::env::args_os()) {
        Ok(cli) => cli,
        // Not an error, but the text of --help or --version.
        Err(text) if !text.use_stderr() => return conclude(name, opts::print(&text)),
        Err(error) => return fail(name, &cli::one_line(&error)),
    };
    log::init(name, cli.common.verbose);
    conclude(name, answer::<S>(cli))
}

fn conclude(name: &str, result: Result<Status>) -> ExitCode {
    result.map_or_else(|error| fail(name, &format!("{error:#}")), ExitCode::from)
}

fn fail(name: &str, message: &str) -> ExitCode {
    // Nobody may be there to be told.
    let _ = writeln!(io::stderr(), "{name}: {message}");
    Status::Failed.into()
}

/// Does what the command line asks for.
fn answer<S: Scheduler>(cli: Cli<S::Opts>) -> Result<Status> {
    let Cli { common, own } = cli;
    if let Some(what) = common.generate {
        return opts::generate::<S>(what);
    }
    if common.manifest {
        return opts::manifest::<S>();
    }
    let config = S::config(own)?;
    if common.help_stats {
        return opts::write(&scx_stats::describe::<S::Stats>());
    }
    if let Some(format) = common.print_topology {
        return opts::print_topology(format);
    }
    let shutdown = Shutdown::on_signals()?;
    if let Some(interval) = common.monitor {
        statistics::monitor::<S>(&common, interval, &shutdown.0)?;
        return Ok(Status::Clean);
    }
    let kernel = SchedExt::new(Path::new("/"));
    let generations = Generations::<S>::new(&common, &config, &kernel, &shutdown)?;
    let btf = kernel.check()?;
    let starves_rcu = !btf.has_ext_server();
    let _boosted = starves_rcu.then(|| rcu::boost(&kernel));
    keep_small_pages();
    class_switch::start(kernel.clone())?;
    if let Some(ignored) = Ignored::find(kernel.root()) {
        tracing::warn!(
            "cpu.weight, cpu.idle and cpu.max of cgroups have no effect under this scheduler: \
             {ignored}"
        );
    }
    generations.run(Some(btf))
}

/// `khugepaged` unmaps pages while it collapses them, locked or not, and is an ordinary task:
/// neither a policy in user space nor the class-switch helper may wait for it. A kernel without
/// huge pages refuses, which is fine.
fn keep_small_pages() {
    const NONE: libc::c_ulong = 0;
    let is_disabled: libc::c_ulong = 1;
    // SAFETY: affects how the kernel maps memory, not its contents.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, is_disabled, NONE, NONE, NONE) };
}
