// SPDX-License-Identifier: GPL-2.0-only
//! The state machine that supervises the scheduler: events and the current time go in, actions come
//! out. It does not block, read clocks or start processes.
//!
//! Every request is answered: at once if it is refused, else when it has completed or failed. An
//! accepted request supersedes the pending requests, which fail with an error that says so.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::config::Supervision;
use crate::job::Job;

/// Time since an arbitrary epoch.
pub(crate) type Time = Duration;

/// After a scheduler has run for this time, earlier failures are forgotten.
const HEALTHY: Duration = Duration::from_secs(60);

/// How long the process of a scheduler may take to exit after the kernel has ejected the scheduler.
/// Also, a scheduler that the kernel unloads within this time after CPU hotplug is expected to load
/// itself again, so it does not count as ejected.
const LOST: Duration = Duration::from_secs(10);

/// Identifies a caller that waits for an answer. Assigned by the daemon.
pub(crate) type Caller = u64;

/// A request of a caller. All requests are refused while the loader shuts down. While an external
/// scheduler is running (one that another program has started), only a [`Request::Stop`] that
/// cancels a restart is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Starts a scheduler. Refused if a scheduler is starting or running.
    Start(Job),
    /// Starts a scheduler, and stops the running scheduler before that, if there is one.
    Switch(Job),
    /// Stops the scheduler, or cancels its pending restart. Succeeds without a scheduler, too.
    Stop,
    /// Restarts the scheduler that is running, or will run after the pending requests and restarts.
    /// Refused if there is none.
    Restart,
}

/// State of sched_ext in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Kernel {
    /// Name of the enabled scheduler; empty if none is.
    pub(crate) ops: String,
    /// Number of schedulers enabled since boot.
    pub(crate) enable_seq: u64,
    /// Number of CPU hotplug events since boot; `None` if unknown.
    pub(crate) hotplug_seq: Option<u64>,
}

/// What the daemon reports to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The default scheduler is to be started. There is no caller.
    Begin(Job),
    /// A request of a caller.
    Request(Caller, Request),
    /// The running scheduler is to be restarted with the arguments of this job, because the power
    /// profile or the configuration has changed.
    Follow(Job),
    /// The process was started.
    Spawned { pid: u32 },
    /// The process could not be started.
    NotSpawned(String),
    /// The process has ended.
    Exited(Exit),
    /// The kernel's state was read.
    Kernel(Kernel),
    /// Time has passed.
    Tick,
    /// The loader shuts down.
    Shutdown,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Whether the exit status is 0.
    pub(crate) well: bool,
    /// How the process ended, such as "with status 2" or "by signal 9".
    pub(crate) how: String,
    /// The tail of the process's standard error.
    pub(crate) stderr_tail: Vec<String>,
}

/// Signals to stop a process, in the order in which they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
    Kill,
}

impl Signal {
    /// The signal to send next if the process does not exit.
    fn stronger(self) -> Self {
        match self {
            Self::Interrupt => Self::Terminate,
            Self::Terminate | Self::Kill => Self::Kill,
        }
    }
}

/// What the daemon is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start a scheduler; the result is [`Event::Spawned`] or [`Event::NotSpawned`].
    Spawn(Job),
    /// Signal the process.
    Signal(Signal),
    /// Answer the caller.
    Reply(Caller, Result<(), String>),
    /// Write a message to the log.
    Log(String),
    /// The loader may exit: its scheduler has ended.
    Quit,
}

/// The phase of the supervised scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// There is no process.
    Stopped,
    /// There is no process, because the scheduler failed to start or was given up.
    Failed,
    /// A process whose scheduler is not enabled in the kernel yet. The process was started at
    /// `since`, when the kernel had enabled `enable_seq` schedulers since boot. `callers` wait for
    /// the scheduler; if it fails to start, `back_to` is started.
    Starting {
        since: Time,
        enable_seq: u64,
        callers: Vec<Caller>,
        back_to: Option<Job>,
    },
    /// A process whose scheduler was enabled at `since`. If `lost_at` is set, the kernel has
    /// unloaded the scheduler, which was detected at that time.
    Running { since: Time, lost_at: Option<Time> },
    /// A process that was signalled. If it has not exited by `until`, the next signal is sent.
    Stopping {
        signal: Signal,
        until: Time,
        then: Then,
    },
    /// There is no process. The scheduler is restarted at `until`.
    BackingOff { until: Time },
}

/// What to do after a process has exited.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Then {
    Stop(Vec<Caller>),
    /// Start `job`. If that fails, return to `back_to`, if any, which ran before.
    Start {
        job: Job,
        callers: Vec<Caller>,
        back_to: Option<Job>,
    },
    /// Handle a failed start: the scheduler took too long to start. Return to `back_to`, if any.
    GiveUp {
        callers: Vec<Caller>,
        back_to: Option<Job>,
    },
    /// Handle a failure: the kernel unloaded the scheduler, and its process neither exited nor
    /// loaded it again.
    Fail,
    Quit,
}

/// The state as seen by clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Stopped,
    Starting,
    Running,
    Stopping,
    BackingOff,
    Failed,
    External,
}

impl State {
    /// Name on the bus.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::BackingOff => "backing-off",
            Self::Failed => "failed",
            Self::External => "external",
        }
    }
}

/// The state of the supervision.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    config: Supervision,
    /// The scheduler that replaces `job` after repeated failures.
    fallback: Option<Job>,
    phase: Phase,
    /// The scheduler that was started last, even if it failed or has ended. `None` before the
    /// first.
    job: Option<Job>,
    pid: Option<u32>,
    /// Number of failures in a row. A run of at least [`HEALTHY`], or an accepted request, resets
    /// it.
    failures: u32,
    reason: String,
    stderr_tail: Vec<String>,
    kernel: Kernel,
    /// When the last CPU hotplug event was detected.
    hotplug_at: Option<Time>,
}

impl Supervisor {
    pub(crate) fn new(config: Supervision, fallback: Option<Job>) -> Self {
        Self {
            config,
            fallback,
            phase: Phase::Stopped,
            job: None,
            pid: None,
            failures: 0,
            reason: String::new(),
            stderr_tail: Vec::new(),
            kernel: Kernel::default(),
            hotplug_at: None,
        }
    }

    /// Changes the configuration without a restart of the scheduler. The new start timeout also
    /// applies to a scheduler that is starting now.
    pub(crate) fn configure(&mut self, config: Supervision, fallback: Option<Job>) {
        self.config = config;
        self.fallback = fallback;
    }

    pub(crate) fn state(&self) -> State {
        match self.phase {
            Phase::Stopped | Phase::Failed if self.external().is_some() => State::External,
            Phase::Stopped => State::Stopped,
            Phase::Failed => State::Failed,
            Phase::Starting { .. } => State::Starting,
            Phase::Running { lost_at: None, .. } => State::Running,
            Phase::Running {
                lost_at: Some(at), ..
            } if self.is_restart(at) => State::Starting,
            Phase::Running { .. } => State::Stopping,
            Phase::Stopping { .. } => State::Stopping,
            Phase::BackingOff { .. } => State::BackingOff,
        }
    }

    /// The scheduler that is starting, running, stopping, or waiting to be restarted.
    pub(crate) fn job(&self) -> Option<&Job> {
        match self.phase {
            Phase::Stopped | Phase::Failed => None,
            _ => self.job.as_ref(),
        }
    }

    /// Ops name of the enabled scheduler while the loader has no process: another program has
    /// started that scheduler.
    pub(crate) fn external(&self) -> Option<&str> {
        let ours = self.pid.is_some();
        (!ours && !self.kernel.ops.is_empty()).then_some(self.kernel.ops.as_str())
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Why the last scheduler ended, was unloaded, or failed to start. Empty once a scheduler runs.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// The tail of the standard error of the process that ended last. Empty if a later
    /// process could not be started.
    pub(crate) fn stderr_tail(&self) -> &[String] {
        &self.stderr_tail
    }

    /// When the next [`Event::Tick`] is due; `None` if nothing is to time out.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Starting { since, .. } => Some(since + self.config.start_timeout),
            Phase::Stopping { until, .. } | Phase::BackingOff { until } => Some(until),
            Phase::Running { lost_at, .. } => lost_at.map(|at| {
                at + if self.is_restart(at) {
                    self.config.start_timeout
                } else {
                    LOST
                }
            }),
            Phase::Stopped | Phase::Failed => None,
        }
    }

    /// Whether a scheduler that the kernel unloaded at `lost_at` is expected to load itself again.
    /// Schedulers do that only after CPU hotplug, so this is true if a hotplug event was detected
    /// at most [`LOST`] before `lost_at`, or after it. Otherwise, the scheduler was ejected, and
    /// its process is about to exit.
    fn is_restart(&self, lost_at: Time) -> bool {
        self.hotplug_at.is_some_and(|at| at + LOST >= lost_at)
    }

    /// Whether to poll the kernel's state frequently.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(
            self.phase,
            Phase::Starting { .. }
                | Phase::Running {
                    lost_at: Some(_),
                    ..
                }
        )
    }

    /// Handles an event. Nothing else changes the phase.
    pub(crate) fn handle(&mut self, now: Time, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Begin(job) if self.external().is_none() => {
                self.start(now, job, Vec::new(), None, &mut out);
            }
            Event::Begin(job) => out.push(Action::Log(format!(
                "{} is not started: another scheduler is running",
                job.scheduler
            ))),
            Event::Request(caller, request) => self.request(now, caller, request, &mut out),
            Event::Follow(job) => self.follow(now, job, &mut out),
            Event::Spawned { pid } => self.pid = Some(pid),
            Event::NotSpawned(why) => {
                self.stderr_tail.clear();
                self.ended(now, &why, &mut out);
            }
            Event::Exited(exit) => self.exited(now, exit, &mut out),
            Event::Kernel(kernel) => self.kernel_says(now, kernel, &mut out),
            Event::Tick => self.tick(now, &mut out),
            Event::Shutdown => self.then(now, Then::Quit, &mut out),
        }
        out
    }

    fn request(&mut self, now: Time, caller: Caller, request: Request, out: &mut Vec<Action>) {
        if let Err(refusal) = self.admit(&request) {
            out.push(Action::Reply(caller, Err(refusal)));
            return;
        }
        let callers = vec![caller];
        let back_to = self.known_good();
        // Failures before the request do not count.
        self.failures = 0;
        match request {
            Request::Stop => self.then(now, Then::Stop(callers), out),
            Request::Start(job) | Request::Switch(job) => {
                let then = Then::Start {
                    job,
                    callers,
                    back_to,
                };
                self.then(now, then, out);
            }
            Request::Restart => {
                // admit() has checked that there is a scheduler to restart.
                let Some(job) = self.meant() else { return };
                let then = Then::Start {
                    job,
                    callers,
                    back_to,
                };
                self.then(now, then, out);
            }
        }
    }

    /// Restarts the running scheduler with the arguments of `job`. If it does not start with these
    /// arguments, it is started again with its previous arguments.
    fn follow(&mut self, now: Time, job: Job, out: &mut Vec<Action>) {
        if self.state() != State::Running {
            return;
        }
        let then = Then::Start {
            job,
            callers: Vec::new(),
            back_to: self.known_good(),
        };
        self.then(now, then, out);
    }

    fn admit(&self, request: &Request) -> Result<(), String> {
        if matches!(&self.phase, Phase::Stopping { then, .. } if *then == Then::Quit) {
            return Err("the loader is shutting down".into());
        }
        let gives_up = *request == Request::Stop && matches!(self.phase, Phase::BackingOff { .. });
        if let Some(ops) = self.external().filter(|_| !gives_up) {
            return Err(format!(
                "the scheduler '{ops}' is running and was not started by the loader: \
                 end its process first"
            ));
        }
        match request {
            Request::Start(_) if self.is_up() => Err(format!(
                "{} is already running: switch instead",
                self.job
                    .as_ref()
                    .map_or("a scheduler", |job| &job.scheduler)
            )),
            Request::Restart if self.meant().is_none() => Err("no scheduler is running".into()),
            _ => Ok(()),
        }
    }

    fn is_up(&self) -> bool {
        match self.phase {
            Phase::Starting { .. } => true,
            Phase::Running { lost_at, .. } => lost_at.is_none_or(|at| self.is_restart(at)),
            _ => false,
        }
    }

    /// The scheduler that will run when all pending requests are done.
    fn meant(&self) -> Option<Job> {
        match &self.phase {
            Phase::Stopped | Phase::Failed => None,
            Phase::Stopping { then, .. } => match then {
                Then::Start { job, .. } => Some(job.clone()),
                Then::GiveUp { back_to, .. } => back_to.clone(),
                Then::Fail => self.job.clone(),
                Then::Stop(_) | Then::Quit => None,
            },
            _ => self.job.clone(),
        }
    }

    /// The scheduler to return to if a switch fails: the running scheduler or, if another switch is
    /// pending, the scheduler that the pending switch replaces. `None` if there is none.
    fn known_good(&self) -> Option<Job> {
        match &self.phase {
            Phase::Running { .. } => self.job.clone(),
            Phase::Starting { back_to, .. }
            | Phase::Stopping {
                then: Then::Start { back_to, .. } | Then::GiveUp { back_to, .. },
                ..
            } => back_to.clone(),
            _ => None,
        }
    }

    /// Stops the process, if there is one, and continues with `then` once it has exited.
    fn then(&mut self, now: Time, then: Then, out: &mut Vec<Action>) {
        self.overtake(out);
        let (signal, until) = match self.phase {
            Phase::Stopped | Phase::Failed | Phase::BackingOff { .. } => {
                return self.go_on(now, then, out);
            }
            // The process was signalled before: do not send a weaker signal or extend the deadline.
            Phase::Stopping { signal, until, .. } => (signal, until),
            Phase::Starting { .. } | Phase::Running { .. } => {
                out.push(Action::Signal(Signal::Interrupt));
                (Signal::Interrupt, now + self.config.stop_timeout)
            }
        };
        self.phase = Phase::Stopping {
            signal,
            until,
            then,
        };
    }

    /// Fails the pending requests, because a later request supersedes them.
    fn overtake(&mut self, out: &mut Vec<Action>) {
        let callers = match &mut self.phase {
            Phase::Starting { callers, .. } => std::mem::take(callers),
            Phase::Stopping { then, .. } => match then {
                Then::Stop(callers)
                | Then::Start { callers, .. }
                | Then::GiveUp { callers, .. } => std::mem::take(callers),
                Then::Fail | Then::Quit => Vec::new(),
            },
            _ => Vec::new(),
        };
        reply(callers, &Err("superseded by a later request".into()), out);
    }

    /// Continues with `then`. The process, if there was one, has exited.
    fn go_on(&mut self, now: Time, then: Then, out: &mut Vec<Action>) {
        match then {
            Then::Stop(callers) => {
                self.phase = Phase::Stopped;
                self.reason = "stopped by request".into();
                reply(callers, &Ok(()), out);
            }
            Then::Start {
                job,
                callers,
                back_to,
            } => self.start(now, job, callers, back_to, out),
            Then::GiveUp { callers, back_to } => {
                let seconds = self.config.start_timeout.as_secs_f64();
                let why = format!("did not come up within {seconds} s");
                self.not_up(now, &why, callers, back_to, out);
            }
            Then::Fail => self.fail(now, "was unloaded by the kernel, and did not exit", out),
            Then::Quit => {
                self.phase = Phase::Stopped;
                out.push(Action::Quit);
            }
        }
    }

    fn start(
        &mut self,
        now: Time,
        job: Job,
        callers: Vec<Caller>,
        back_to: Option<Job>,
        out: &mut Vec<Action>,
    ) {
        out.push(Action::Spawn(job.clone()));
        self.job = Some(job);
        self.phase = Phase::Starting {
            since: now,
            enable_seq: self.kernel.enable_seq,
            callers,
            back_to,
        };
    }

    fn exited(&mut self, now: Time, exit: Exit, out: &mut Vec<Action>) {
        self.stderr_tail = exit.stderr_tail;
        let last = self.stderr_tail.last();
        let why = match last {
            Some(line) => format!("ended {}: {line}", exit.how),
            None => format!("ended {}", exit.how),
        };
        if exit.well && matches!(self.phase, Phase::Running { .. }) {
            // Exit status 0: a user has ended the scheduler, for example by SysRq-S. Do not
            // restart it.
            self.pid = None;
            self.kernel.ops.clear();
            self.phase = Phase::Stopped;
            self.reason = why;
            out.push(Action::Log(self.about_job()));
            return;
        }
        self.ended(now, &why, out);
    }

    /// The process has exited, or could not be started.
    fn ended(&mut self, now: Time, why: &str, out: &mut Vec<Action>) {
        self.pid = None;
        // The kernel has unloaded the scheduler, or will soon: do not report it as external.
        self.kernel.ops.clear();
        match std::mem::replace(&mut self.phase, Phase::Stopped) {
            Phase::Stopping { then, .. } => self.go_on(now, then, out),
            Phase::Starting {
                callers, back_to, ..
            } => self.not_up(now, why, callers, back_to, out),
            Phase::Running { since, .. } => {
                self.forget_failures(now, since);
                self.fail(now, why, out);
            }
            phase => self.phase = phase,
        }
    }

    /// Failures before a run of at least [`HEALTHY`] do not count.
    fn forget_failures(&mut self, now: Time, running_since: Time) {
        if now.saturating_sub(running_since) >= HEALTHY {
            self.failures = 0;
        }
    }

    /// The scheduler failed to start.
    fn not_up(
        &mut self,
        now: Time,
        why: &str,
        callers: Vec<Caller>,
        back_to: Option<Job>,
        out: &mut Vec<Action>,
    ) {
        // An automatic start, such as a restart after a failure: no caller waits for the result,
        // and there is no previous scheduler to return to.
        if callers.is_empty() && back_to.is_none() {
            return self.fail(now, why, out);
        }
        self.reason = why.into();
        let about = self.about_job();
        out.push(Action::Log(about.clone()));
        // Return to the previous scheduler, unless it is the one that has just failed.
        match back_to.filter(|job| self.job.as_ref() != Some(job)) {
            Some(job) => {
                let told = format!("{about}; {} is started again", job.scheduler);
                reply(callers, &Err(told), out);
                self.start(now, job, Vec::new(), None, out);
            }
            None => {
                self.phase = Phase::Failed;
                reply(callers, &Err(about), out);
            }
        }
    }

    /// The scheduler failed, and no caller waits for it. Restarts it after a delay, starts the
    /// fallback, or gives up.
    fn fail(&mut self, now: Time, why: &str, out: &mut Vec<Action>) {
        self.failures += 1;
        self.reason = why.into();
        out.push(Action::Log(self.about_job()));
        if self.failures < self.config.max_failures {
            let until = now + self.config.backoff(self.failures);
            self.phase = Phase::BackingOff { until };
            return;
        }
        let fallback = self.fallback.clone();
        match fallback.filter(|job| self.job.as_ref() != Some(job)) {
            Some(job) => {
                out.push(Action::Log(format!("{} replaces it", job.scheduler)));
                // The fallback is given up after one failure, unless it has run for HEALTHY.
                self.failures = self.config.max_failures - 1;
                self.start(now, job, Vec::new(), None, out);
            }
            None => self.phase = Phase::Failed,
        }
    }

    fn kernel_says(&mut self, now: Time, kernel: Kernel, out: &mut Vec<Action>) {
        let seqs = self.kernel.hotplug_seq.zip(kernel.hotplug_seq);
        if seqs.is_some_and(|(before, now)| before != now) {
            self.hotplug_at = Some(now);
        }
        self.kernel = kernel;
        let job = self.job.as_ref();
        let is_ours = self.pid.is_some() && job.is_some_and(|job| job.ops() == self.kernel.ops);
        match &mut self.phase {
            // Compare enable_seq, because a previous scheduler with the same name may still be
            // enabled.
            Phase::Starting {
                enable_seq,
                callers,
                ..
            } if is_ours && self.kernel.enable_seq > *enable_seq => {
                reply(std::mem::take(callers), &Ok(()), out);
                self.reason.clear();
                self.phase = Phase::Running {
                    since: now,
                    lost_at: None,
                };
            }
            // The process has loaded its scheduler again, as some do after CPU hotplug.
            Phase::Running { lost_at, .. } if is_ours && lost_at.is_some() => {
                *lost_at = None;
                self.reason.clear();
            }
            Phase::Running { .. } if is_ours => {}
            Phase::Running { lost_at, .. } if lost_at.is_none() => {
                *lost_at = Some(now);
                self.reason = "the kernel has unloaded it".into();
            }
            _ => {}
        }
    }

    fn tick(&mut self, now: Time, out: &mut Vec<Action>) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match &mut self.phase {
            Phase::Starting {
                callers, back_to, ..
            } => {
                let then = Then::GiveUp {
                    callers: std::mem::take(callers),
                    back_to: back_to.take(),
                };
                self.then(now, then, out);
            }
            Phase::Stopping { signal, until, .. } => {
                *signal = signal.stronger();
                *until = now + self.config.stop_timeout;
                out.push(Action::Signal(*signal));
            }
            Phase::BackingOff { .. } => {
                if let Some(ops) = self.external() {
                    self.reason = format!("replaced by '{ops}', which the loader did not start");
                    out.push(Action::Log(self.about_job()));
                    self.phase = Phase::Failed;
                } else if let Some(job) = self.job.clone() {
                    self.start(now, job, Vec::new(), None, out);
                }
            }
            Phase::Running { since, .. } => {
                let since = *since;
                self.forget_failures(now, since);
                self.then(now, Then::Fail, out);
            }
            Phase::Stopped | Phase::Failed => {}
        }
    }

    fn about_job(&self) -> String {
        let name = self.job.as_ref().map_or("", |job| &job.scheduler);
        format!("{name} {}", self.reason)
    }
}

fn reply(callers: Vec<Caller>, result: &Result<(), String>, out: &mut Vec<Action>) {
    out.extend(
        callers
            .into_iter()
            .map(|caller| Action::Reply(caller, result.clone())),
    );
}
