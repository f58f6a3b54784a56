// SPDX-License-Identifier: GPL-2.0-only
//! Runs one generation after another, until there is a reason to end.

use std::io;
use std::mem::MaybeUninit;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use anyhow::{anyhow, Context as _, Result};
use scx_stats::Access;

use super::nice::LowestNice;
use super::shutdown::Waiter;
use super::statistics::{self, Service};
use super::{CommonOpts, Instance, Scheduler, Shutdown, Start, Status, Tick, Trigger};
use crate::bpf::OpenOptions;
use crate::compat::KernelBtf;
use crate::exit_info::{ExitInfo, Outcome};
use crate::kernel::SchedExt;

/// How often to check whether the kernel has ended the scheduler, if there is nothing else to do.
const EXIT_POLL: Duration = Duration::from_millis(250);
/// How often to check whether the kernel has ended the scheduler, if its end also wakes the runner
/// ([`Instance::wake_fd`]).
const RARE_EXIT_POLL: Duration = Duration::from_secs(1);

/// Limits the rate of restarts, for example when CPUs are hotplugged repeatedly: after
/// FAST_RESTARTS consecutive generations that are shorter than SHORT_GENERATION, each further
/// restart is delayed by SLOW_RESTART.
const SHORT_GENERATION: Duration = Duration::from_secs(10);
const FAST_RESTARTS: u32 = 10;
const SLOW_RESTART: Duration = Duration::from_secs(1);

/// Why a generation is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The end of the program was requested: by a signal, or because the reader of the output has
    /// closed the pipe.
    Shutdown,
    /// The kernel has ended the scheduler.
    Exited,
    /// The scheduler requests a restart.
    Restart(&'static str),
}

/// The inputs that all generations share.
#[derive(Debug)]
pub(super) struct Generations<'a, S: Scheduler> {
    opts: &'a CommonOpts,
    config: &'a S::Config,
    kernel: &'a SchedExt,
    shutdown: &'a Shutdown,
    /// Requests the end of the program when the reader of its output closes the pipe.
    trigger: &'a Trigger,
    access: Access,
    /// Created only once, because the file of `--kconfig` may be a pipe, which has nothing left for
    /// a second read.
    open: OpenOptions,
}

impl<'a, S: Scheduler> Generations<'a, S> {
    /// # Errors
    ///
    /// If `--stats-group` is invalid, or the file of `--kconfig` cannot be read.
    pub(super) fn new(
        opts: &'a CommonOpts,
        config: &'a S::Config,
        kernel: &'a SchedExt,
        (shutdown, trigger): &'a (Shutdown, Trigger),
    ) -> Result<Self> {
        let (access, open) = (statistics::access(opts)?, opts.libbpf.open_options()?);
        Ok(Self {
            opts,
            config,
            kernel,
            shutdown,
            trigger,
            access,
            open,
        })
    }

    /// Runs until there is a reason to end. `btf` is the kernel's type information for the first
    /// generation, if it was already read.
    ///
    /// # Errors
    ///
    /// If the scheduler could not be loaded or attached.
    pub(super) fn run(&self, mut btf: Option<KernelBtf>) -> Result<Status> {
        let mut nr_fast = 0;
        for generation in 0.. {
            let begin = Instant::now();
            match self.run_one(generation, btf.take())? {
                Outcome::Restart => tracing::info!("restarting"),
                Outcome::Done => return Ok(Status::Clean),
                Outcome::Failed => return Ok(Status::Failed),
                Outcome::Ejected => return Ok(Status::Ejected),
            }
            nr_fast = if begin.elapsed() < SHORT_GENERATION {
                nr_fast + 1
            } else {
                0
            };
            let pause = if nr_fast < FAST_RESTARTS {
                Duration::ZERO
            } else {
                SLOW_RESTART
            };
            if self.shutdown.wait(pause) {
                break;
            }
        }
        Ok(Status::Clean)
    }

    fn run_one(&self, generation: u64, btf: Option<KernelBtf>) -> Result<Outcome> {
        let mut slot = MaybeUninit::uninit();
        let favoured = LowestNice::raise();
        let start = Start::new(self.opts, &self.open, self.kernel, generation, btf)?;
        let mut instance = S::attach(&start, self.config, &mut slot)?;
        // Frees the kernel's type information, several MB.
        drop(start);
        drop(favoured);
        let end = self.trigger.clone();
        let statistics = Service::start::<S>(self.opts, self.access, &instance, end);
        let end = self.watch_guarded(&mut instance);
        // Detach before waiting for the statistics thread: a user-space policy that no longer ticks
        // does not schedule the statistics thread, so the wait could time out.
        let info = instance.detach();
        drop(statistics);
        Ok(judge(end, &info, self.opts.verbose > 0))
    }

    /// Like `watch()`, but turns a panic of the user-space side into an error. A panic may leave
    /// the instance in an inconsistent state. This is safe, because the caller then only detaches
    /// the instance.
    fn watch_guarded<I: Instance>(&self, instance: &mut I) -> Result<End> {
        let watched = panic::catch_unwind(AssertUnwindSafe(|| self.watch(instance)));
        // The panic message has been printed.
        watched.unwrap_or_else(|_| Err(anyhow!("the scheduler has a defect: it panicked")))
    }

    /// Runs until there is a reason to end the generation, or the user-space side fails.
    fn watch<I: Instance>(&self, instance: &mut I) -> Result<End> {
        let wake_fd = instance.wake_fd();
        let poll = wake_fd.map_or(EXIT_POLL, |_| RARE_EXIT_POLL);
        let waiter = Waiter::new(self.shutdown, wake_fd)
            .context("cannot set up epoll for the scheduler's file descriptor")?;
        let mut tick = Tick::Now;
        let mut since = Instant::now();
        loop {
            if self.shutdown.requested() {
                return Ok(End::Shutdown);
            }
            if instance.exited() {
                return Ok(End::Exited);
            }
            // While there is work, read no clock: on some machines that takes a system call.
            if tick == Tick::Now {
                tick = instance.tick()?;
                if let Tick::After(_) = tick {
                    since = Instant::now();
                }
            }
            let left = match tick {
                Tick::Now => continue,
                Tick::Restart(reason) => return Ok(End::Restart(reason)),
                Tick::After(pause) => pause.saturating_sub(since.elapsed()),
                Tick::Never => poll,
            };
            let is_woken = waiter.wait(left.min(poll));
            if is_woken || matches!(tick, Tick::After(pause) if pause <= since.elapsed()) {
                tick = Tick::Now;
            }
        }
    }
}

/// Reports the end of a generation, and returns its consequence.
pub(super) fn judge(end: Result<End>, info: &ExitInfo, verbose: bool) -> Outcome {
    let outcome = info.outcome();
    let failed = outcome == Outcome::Failed;
    if failed {
        tracing::error!("the scheduler failed to start: {}", info.cause());
    }
    if !failed || verbose {
        // A failure to write cannot be reported.
        let _ = info.report(&mut io::stderr().lock());
    }
    match end {
        // The kernel's record has precedence.
        _ if failed || outcome == Outcome::Ejected => outcome,
        Err(error) => {
            tracing::error!("{error:#}");
            Outcome::Ejected
        }
        // A request to end has precedence over a restart.
        Ok(End::Shutdown) => Outcome::Done,
        Ok(End::Exited) => outcome,
        Ok(End::Restart(reason)) => {
            tracing::info!("{reason}");
            Outcome::Restart
        }
    }
}
