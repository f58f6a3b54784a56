// SPDX-License-Identifier: GPL-2.0-only
//! The run loop of all Rust schedulers.
//!
//! A scheduler's `main.rs` consists of its modules and `fn main() -> ExitCode {
//! runner::main::<sched::Fifo>() }`. The scheduler implements two traits: [`Scheduler`] turns
//! options into a [`Config`](Scheduler::Config), and the `Config` into an attached scheduler, an
//! [`Instance`]. The runner does the rest: common options, signals, restarts, statistics, the
//! report at the end and the exit status.
//!
//! The lifetime of an instance is a *generation*. The kernel may end it with a restart code after
//! CPU hotplug, or the scheduler requests a restart. The next generation starts from the same
//! configuration, but reads all properties of the machine again: do not keep any of them in a
//! static.

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
pub use statistics::{client_error, follow};

use std::fmt::Display;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use scx_stats::{ServerBuilder, Stats};
use serde::de::DeserializeOwned;

use crate::bpf::Slot;
use crate::cgroups::{self, Control, Ignored};
use crate::exit_info::ExitInfo;
use crate::kernel::SchedExt;
use crate::manifest::Modes;
use crate::{cli, log};
use generations::Generations;
use opts::Cli;

/// Exit statuses, the same for every scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// 0: the scheduler was ended by SIGINT, SIGTERM, SIGHUP or `SysRq-S`, was otherwise
    /// unregistered, or ended because the reader of the output closed the pipe. Also after a
    /// command that succeeds.
    Clean,
    /// 1: wrong usage, the scheduler could not be loaded, or a command failed.
    Failed,
    /// 2: the scheduler ended with an error while it ran.
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

/// A program's name, version and description. Created by [`program!`](crate::program) from
/// `Cargo.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The name, such as `scx_fifo`.
    pub name: &'static str,
    /// The package's version.
    pub version: &'static str,
    /// The package's description: one line, without a final full stop.
    pub about: &'static str,
}

/// A function that reads statistics. It runs on another thread and owns its sources, such as file
/// descriptors of maps, so no request for statistics can delay a scheduling decision.
pub type StatsReader<T> = Box<dyn FnMut() -> Result<T> + Send>;

/// A scheduler.
pub trait Scheduler: 'static {
    /// The program's name, version and description.
    const PROGRAM: Program;
    /// Paragraphs for `--help` and the manual page.
    const DESCRIPTION: &'static str;
    /// The machine settings that the scheduler changes while it runs, for the manual page. The
    /// settings that the run loop changes are added automatically.
    const MACHINE_SETTINGS: &'static [&'static str] = &[];
    /// The scheduler's arguments in each mode of scx_loader.
    const MODES: Modes = Modes::NONE;
    /// See [`Manifest`](crate::manifest::Manifest::power_profile_args).
    const POWER_PROFILE_ARGS: Option<&'static [&'static str]> = None;
    /// The kfuncs that the scheduler requires, from `bpf_kfuncs`: see
    /// [`include_bpf!`](crate::include_bpf).
    const KFUNCS: &'static [&'static str];

    /// The scheduler's own options, as given on the command line.
    type Opts: Args;
    /// The validated options. This may be the type [`Opts`](Self::Opts) itself.
    type Config;
    /// The scheduler's statistics, which are printed as one line.
    type Stats: Stats + DeserializeOwned + Display;
    /// A running scheduler.
    type Instance<'obj>: Instance<Stats = Self::Stats>;

    /// Checks the options, before anything is loaded. `--manifest` calls this for the arguments of
    /// each mode, and for [`POWER_PROFILE_ARGS`](Self::POWER_PROFILE_ARGS).
    ///
    /// # Errors
    ///
    /// One line that says which option is invalid, and why.
    fn config(opts: Self::Opts) -> Result<Self::Config>;

    /// The cgroup controls that the scheduler implements with these options. The runner warns of
    /// other controls that are set.
    fn cgroup_controls(_config: &Self::Config) -> &'static [Control] {
        &[]
    }

    /// Executes a command that an option requests, such as printing further statistics of the
    /// running scheduler. Returns `None` if no option requests a command: the runner then runs the
    /// scheduler.
    fn command(
        _config: &Self::Config,
        _common: &CommonOpts,
        _shutdown: &Shutdown,
    ) -> Option<Result<()>> {
        None
    }

    /// Begins a generation: opens, loads and attaches the BPF side.
    ///
    /// # Errors
    ///
    /// If the BPF side cannot be opened, loaded or attached.
    fn attach<'obj>(
        start: &Start<'_>,
        config: &Self::Config,
        slot: &'obj mut Slot,
    ) -> Result<Self::Instance<'obj>>;
}

/// A running scheduler.
pub trait Instance {
    /// See [`Scheduler::Stats`].
    type Stats;

    /// The work of the user-space side, if any. Called right after attaching, then as the returned
    /// [`Tick`] requests, and when [`wake_fd`](Self::wake_fd) becomes readable.
    ///
    /// # Errors
    ///
    /// Any error ends the scheduler, with [`Status::Ejected`].
    fn tick(&mut self) -> Result<Tick> {
        Ok(Tick::Never)
    }

    /// A file descriptor that becomes readable when [`tick`](Instance::tick) has work, or when the
    /// kernel has ended the scheduler. The runner then stops waiting. Called once.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// A reader of the statistics, whose counters are monotonic. Called once or twice, right after
    /// attaching.
    ///
    /// # Errors
    ///
    /// If there are no statistics. The scheduler then runs without them.
    fn stats_reader(&self) -> Result<StatsReader<Self::Stats>>;

    /// Adds further targets to the scheduler's statistics server.
    ///
    /// # Errors
    ///
    /// If they cannot be added. The statistics are then not served on the socket.
    fn more_stats(&self, server: ServerBuilder) -> Result<ServerBuilder> {
        Ok(server)
    }

    /// Whether the kernel has ended the scheduler. This is called often, so it must be cheap.
    fn exited(&self) -> bool;

    /// Detaches the scheduler, and returns how it ended.
    fn detach(self) -> ExitInfo;
}

/// What the runner does after [`Instance::tick`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tick {
    /// Calls `tick` again at once, without waiting and without a system call.
    Now,
    /// Calls `tick` again after this time, or earlier if [`Instance::wake_fd`] becomes readable.
    After(Duration),
    /// Calls `tick` again only if [`Instance::wake_fd`] becomes readable.
    Never,
    /// Restarts the scheduler, for the given reason.
    Restart(&'static str),
}

/// The [`Program`] of the calling package.
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
        // Not an error, but the output of --help or --version.
        Err(text) if !text.use_stderr() => return conclude(name, opts::print(&text)),
        Err(error) => return fail(name, &cli::one_line(&error)),
    };
    log::init(name, cli.common.verbose);
    conclude(name, execute::<S>(cli))
}

fn conclude(name: &str, result: Result<Status>) -> ExitCode {
    result.map_or_else(|error| fail(name, &format!("{error:#}")), ExitCode::from)
}

fn fail(name: &str, message: &str) -> ExitCode {
    // A failure to write cannot be reported.
    let _ = writeln!(io::stderr(), "{name}: {message}");
    Status::Failed.into()
}

/// Executes the command line.
fn execute<S: Scheduler>(cli: Cli<S::Opts>) -> Result<Status> {
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
    if let Some(result) = S::command(&config, &common, &shutdown.0) {
        return result.map(|()| Status::Clean);
    }
    let kernel = SchedExt::new(Path::new("/"));
    let generations = Generations::<S>::new(&common, &config, &kernel, &shutdown)?;
    let btf = kernel.check()?;
    let starves_rcu = !btf.has_ext_server();
    let _boosted = starves_rcu.then(|| rcu::boost(&kernel));
    keep_small_pages();
    return_freed_blocks();
    class_switch::start(kernel.clone())?;
    let implemented = S::cgroup_controls(&config);
    warn_of_cgroups(&Control::without_effect(implemented, &btf), &kernel);
    generations.run(Some(btf))
}

fn warn_of_cgroups(without_effect: &[Control], kernel: &SchedExt) {
    if let Some(ignored) = Ignored::find(kernel.root(), without_effect) {
        let controls = cgroups::list(without_effect);
        let verb = if without_effect.len() == 1 {
            "has"
        } else {
            "have"
        };
        tracing::warn!("{controls} of cgroups {verb} no effect under this scheduler: {ignored}");
    }
}

/// Disables transparent huge pages for this process. `khugepaged` unmaps pages, even locked ones,
/// while it collapses them. Without `--partial`, `khugepaged` is a task of the ext class. The
/// thread of a user-space policy and the class-switch helper must not fault on such a page: they
/// would wait for `khugepaged`, which may itself need them to get a CPU. On a kernel without huge
/// pages, the call has no effect.
fn keep_small_pages() {
    const NONE: libc::c_ulong = 0;
    let is_disabled: libc::c_ulong = 1;
    // SAFETY: affects how the kernel maps memory, not its contents.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, is_disabled, NONE, NONE, NONE) };
}

/// Makes glibc return each large block of memory to the kernel when it is freed. By default, glibc
/// raises the limit above which a block counts as large: when a large block is freed, the limit
/// becomes the size of this block. After a restart, the process would keep up to 10 MB that libbpf
/// had needed for the kernel's type information.
fn return_freed_blocks() {
    /// glibc's initial limit (mallopt(3)). Setting the limit disables its adjustment.
    #[cfg(target_env = "gnu")]
    const LARGE_BYTES: libc::c_int = 128 << 10;
    // SAFETY: affects where memory is allocated, not its contents.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES)
    };
}
