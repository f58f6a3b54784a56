// SPDX-License-Identifier: GPL-2.0-only
//! The service: one thread that waits for events, passes them to the supervisor, and executes
//! the actions that the supervisor returns.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, Context as _, Result};
use clap::Parser as _;
use scx_utils::cli;
use scx_utils::kernel::SchedExt;
use scx_utils::power::{Profile, Supply, Watch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{debug, error, info, warn};
use zbus::fdo::{Properties, RequestNameFlags};
use zbus::names::InterfaceName;
use zbus::object_server::SignalEmitter;
use zbus::{block_on, connection, Connection};

use crate::authority::Pending;
use crate::boot::{self, OFF};
use crate::bus::{NAME, NONE, PATH};
use crate::child::Child;
use crate::config::{self, Config};
use crate::job::{Follower, Job};
use crate::opts::Opts;
use crate::paths::{DATADIR, SYSCONFDIR};
use crate::profile::{Profiles, Source};
use crate::registry::Registry;
use crate::service::{self, Answer, Call, Calls, Loader, Shared};
use crate::supervisor::{Action, Caller, Event, Exit, Kernel, Request, State, Supervisor};
use crate::view::View;

/// Poll interval of the kernel's state while a scheduler starts, and after the kernel has unloaded
/// a scheduler whose process still runs.
const POLL_STARTING: Duration = Duration::from_millis(100);
/// Poll interval of the kernel's state otherwise, to detect external schedulers, CPU hotplug, and
/// that the kernel has unloaded the scheduler. The sysfs files of sched_ext do not support poll(2).
const POLL: Duration = Duration::from_secs(1);

/// Timeout of the loader's D-Bus calls. Before polkit replies, a user may have to type a password.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// How long to wait for the first power profile before the default scheduler is started.
const FIRST_PROFILE: Duration = Duration::from_secs(1);

/// An event for the main thread.
#[derive(Debug)]
enum Happened {
    Called(Call),
    /// The profile of the power profile daemon may have changed, or the machine has resumed. `None`
    /// if there is no such daemon.
    Profile(Option<Profile>),
    /// The scheduler's process has ended. The loader has at most one process at a time.
    Ended(Exit),
    Reload,
    Shutdown,
    BusLost,
}

/// The main function of the program.
#[must_use]
pub fn main() -> ExitCode {
    let opts = match Opts::try_parse() {
        Ok(opts) => opts,
        // This is the text of --help or --version, not an error.
        Err(text) if !text.use_stderr() => return status(text.print().context("standard output")),
        Err(error) => return status(Err(anyhow!(cli::one_line(&error)))),
    };
    status(run(&opts))
}

fn status(result: Result<()>) -> ExitCode {
    match result {
        Err(error) if !cli::is_closed_pipe(&error) => {
            // Ignore errors: standard error may be closed.
            let _ = writeln!(io::stderr(), "scx_loader: {error:#}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn run(opts: &Opts) -> Result<()> {
    if let Some(what) = opts.generate {
        return cli::print(&crate::man::generate(what)?).context("standard output");
    }
    scx_utils::log::init("scx_loader", opts.verbose);
    let registry = Registry::read(&opts.schedulers)?;
    let config = read_config(opts, &registry).unwrap_or_else(|error| {
        // Start nevertheless: only a running service can report the error to `scxctl reload`.
        let error = format!("{error:#}: continuing without a configuration");
        error!("{error}");
        Config::rejected(error)
    });
    let (happened, wait) = mpsc::channel();
    watch_signals(happened.clone())?;
    let kernel = SchedExt::new(Path::new("/"));
    let follows = config.auto.follows;
    let mut supervisor = Supervisor::new(config.supervision.clone(), config.fallback.clone());
    // Read the kernel's state first: clients may read the properties as soon as the object is on
    // the bus, and the default scheduler must not be started if another program has started one.
    supervisor.handle(Duration::ZERO, Event::Kernel(ask(&kernel)));
    let shared = Arc::new(Shared {
        view: Mutex::new(View::new(&supervisor, &config, &registry, Source::None)),
        config: Mutex::new(config),
        registry,
        operations: Mutex::default(),
        pending: Pending::default(),
    });
    let bus = serve(&shared, &happened)?;
    let mut daemon = Daemon {
        opts,
        supervisor,
        shared,
        bus,
        happened,
        kernel,
        began: Instant::now(),
        child: None,
        power: None,
        callers: HashMap::new(),
        nr_callers: 0,
        answers: Vec::new(),
        is_over: false,
        outcome: Ok(()),
    };
    if follows {
        daemon.watch_profile(FIRST_PROFILE);
    }
    daemon.begin();
    daemon.show();
    daemon.serve(&wait)
}

fn read_config(opts: &Opts, registry: &Registry) -> Result<Config> {
    let found = || config::find(Path::new(SYSCONFDIR), Path::new(DATADIR));
    let path: Option<PathBuf> = opts.config.clone().or_else(found);
    let config = config::read(path.as_deref(), registry)?;
    for warning in &config.warnings {
        warn!(
            "{}: {warning}",
            path.as_deref().unwrap_or(Path::new("")).display()
        );
    }
    Ok(config)
}

fn watch_signals(happened: Sender<Happened>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals")?;
    let watch = move || {
        for signal in signals.forever() {
            let what = if signal == SIGHUP {
                Happened::Reload
            } else {
                Happened::Shutdown
            };
            if happened.send(what).is_err() {
                break;
            }
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .context("starting a thread")?;
    Ok(())
}

/// Connects to the system bus, and exports the object.
fn serve(shared: &Arc<Shared>, happened: &Sender<Happened>) -> Result<Connection> {
    let calls = happened.clone();
    let loader = Loader {
        shared: Arc::clone(shared),
        calls: Calls {
            shared: Arc::clone(shared),
            pass_on: Arc::new(move |call| calls.send(Happened::Called(call)).is_ok()),
        },
    };
    let connect = async {
        let bus = connection::Builder::system()
            .serve_at(PATH, loader)
            .method_timeout(ANSWER_TIMEOUT)
            .build()
            .await?;
        // Request the name after the object is exported, because calls may arrive at once.
        bus.request_name_with_flags(NAME, RequestNameFlags::DO_NOT_QUEUE)
            .await?;
        Ok(bus)
    };
    let bus = block_on(connect).map_err(|error| match error {
        zbus::Error::NameTaken => anyhow!("another scx_loader is on the bus already"),
        error => anyhow!("the system bus: {error}"),
    })?;
    let (watched, lost) = (bus.clone(), happened.clone());
    let watch = move || {
        block_on(watched.closed());
        let _ = lost.send(Happened::BusLost);
    };
    let thread = thread::Builder::new().name("bus".into());
    thread.spawn(watch).context("starting a thread")?;
    Ok(bus)
}

/// Reads the current state of sched_ext in the kernel.
fn ask(kernel: &SchedExt) -> Kernel {
    let enabled = kernel.state() == "enabled";
    Kernel {
        ops: if enabled { kernel.ops() } else { String::new() },
        enable_seq: kernel.enable_seq(),
        hotplug_seq: kernel.hotplug_seq(),
    }
}

struct Daemon<'a> {
    opts: &'a Opts,
    supervisor: Supervisor,
    shared: Arc<Shared>,
    bus: Connection,
    happened: Sender<Happened>,
    kernel: SchedExt,
    began: Instant,
    child: Option<Child>,
    /// The power profile, and the watch that reports its changes. `None` if it is not followed.
    power: Option<(Profiles, Watch)>,
    /// Where to send the replies to waiting callers.
    callers: HashMap<Caller, Answer>,
    nr_callers: Caller,
    /// Replies to be sent after the properties are updated.
    answers: Vec<(Answer, Result<(), String>)>,
    /// Whether the shutdown is complete: the scheduler has ended.
    is_over: bool,
    /// What the daemon returns: an error if it shuts down because it lost the system bus.
    outcome: Result<()>,
}

impl Daemon<'_> {
    /// Starts the default scheduler, if configured and possible.
    fn begin(&mut self) {
        let Some(job) = self.shared.config().default.clone() else {
            return;
        };
        if boot::is_off(Path::new("/")) {
            info!("{OFF} on the kernel's command line: no scheduler is started");
            return;
        }
        if self.kernel.state().is_empty() {
            warn!("this kernel has no sched_ext: no scheduler is started");
            return;
        }
        let job = self.followed(&job);
        self.tell(Event::Begin(job));
    }

    /// Starts to follow the power profile. Waits at most `timeout` for the first report.
    fn watch_profile(&mut self, timeout: Duration) {
        let happened = self.happened.clone();
        let (first, known) = mpsc::channel();
        let report = move |profile| {
            // Only the first report is received from this channel.
            let _ = first.send(profile);
            let _ = happened.send(Happened::Profile(profile));
        };
        let watch = match Watch::start(Path::new("/"), report) {
            Ok(watch) => watch,
            Err(error) => return error!("cannot follow the power profile: {error}"),
        };
        let now = self.began.elapsed();
        let mut profiles = Profiles::new(now);
        profiles.report(now, known.recv_timeout(timeout).ok().flatten());
        profiles.tick(now, || Supply::read(Path::new("/")));
        self.power = Some((profiles, watch));
    }

    fn profile(&self) -> Source {
        let power = self.power.as_ref();
        power.map_or(Source::None, |(profiles, _)| profiles.source())
    }

    /// Adapts `job` to the power profile: see [`Config::follow`].
    fn followed(&self, job: &Job) -> Job {
        let (config, profile) = (self.shared.config(), self.profile());
        let job = config.follow(&self.shared.registry, job, profile);
        let wanted = profile.mode(config.auto.performance);
        if job.follower == Follower::Loader && job.effective != wanted {
            let name = &job.scheduler;
            info!("{name} has no mode {wanted} for the power profile: its mode is auto");
        }
        job
    }

    /// Adapts the running scheduler, unless it is the fallback, once after each change of the power
    /// profile and each reload of the configuration.
    fn follow(&mut self) {
        let now = self.began.elapsed();
        let Some((profiles, _)) = &mut self.power else {
            return;
        };
        profiles.tick(now, || Supply::read(Path::new("/")));
        if self.supervisor.state() != State::Running || !profiles.is_due(now) {
            return;
        }
        let Some(job) = self.supervisor.job().cloned() else {
            return;
        };
        if self.shared.config().fallback.as_ref() == Some(&job) {
            return;
        }
        let wanted = self.followed(&job);
        if (wanted.effective, wanted.follower) != (job.effective, job.follower) {
            let profile = self.profile().name();
            info!(
                "power profile {profile}: effective mode {}",
                wanted.effective
            );
            self.tell(Event::Follow(wanted));
        }
    }

    fn serve(&mut self, wait: &Receiver<Happened>) -> Result<()> {
        loop {
            match wait.recv_timeout(self.pause()) {
                Ok(happened) => self.happened(happened),
                Err(RecvTimeoutError::Timeout) => self.ask_kernel(),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the daemon holds a sender"),
            }
            self.tell(Event::Tick);
            self.follow();
            self.show();
            for (answer, result) in self.answers.drain(..) {
                // Ignore errors: the caller may be gone.
                let _ = answer.send(result);
            }
            if self.is_over {
                return std::mem::replace(&mut self.outcome, Ok(()));
            }
        }
    }

    fn pause(&self) -> Duration {
        let poll = if self.supervisor.is_starting() {
            POLL_STARTING
        } else {
            POLL
        };
        let deadline = self.supervisor.deadline();
        let rest = deadline.map(|at| at.saturating_sub(self.began.elapsed()));
        rest.map_or(poll, |rest| rest.min(poll))
    }

    fn happened(&mut self, happened: Happened) {
        match happened {
            Happened::Called(Call::Request(request, answer)) => self.request(request, answer),
            Happened::Called(Call::Reload(answer)) => {
                let result = self.reload();
                self.answers.push((answer, result));
            }
            Happened::Profile(profile) => {
                if let Some((profiles, _)) = &mut self.power {
                    profiles.report(self.began.elapsed(), profile);
                }
                // The kernel may have ejected the scheduler during suspend.
                self.ask_kernel();
            }
            Happened::Ended(exit) => {
                self.child = None;
                self.tell(Event::Exited(exit));
            }
            Happened::Reload => {
                if let Err(error) = self.reload() {
                    error!("{error}");
                }
            }
            Happened::Shutdown => self.tell(Event::Shutdown),
            Happened::BusLost => self.reconnect(),
        }
    }

    /// Connects to the bus again, or shuts down if that fails. zbus closes the connection when it
    /// receives a message that it cannot parse, such as a message with an unknown header field.
    /// Some buses forward such messages from any user.
    fn reconnect(&mut self) {
        // Close the old connection, because it could keep the name on the bus otherwise.
        let _ = block_on(self.bus.clone().close());
        match serve(&self.shared, &self.happened) {
            Ok(bus) => {
                warn!("the connection to the system bus was lost: connected again");
                self.bus = bus;
            }
            Err(error) => {
                self.outcome = Err(error.context("lost the system bus"));
                self.tell(Event::Shutdown);
            }
        }
    }

    fn request(&mut self, request: Request, answer: Answer) {
        self.nr_callers += 1;
        self.callers.insert(self.nr_callers, answer);
        // An external scheduler that was started since the last poll must not be disturbed.
        self.ask_kernel();
        let request = match request {
            Request::Start(job) => Request::Start(self.followed(&job)),
            Request::Switch(job) => Request::Switch(self.followed(&job)),
            request => request,
        };
        self.tell(Event::Request(self.nr_callers, request));
    }

    fn reload(&mut self) -> Result<(), String> {
        let config = read_config(self.opts, &self.shared.registry);
        let config = config.map_err(|error| format!("{error:#}"))?;
        let (supervision, fallback) = (config.supervision.clone(), config.fallback.clone());
        self.supervisor.configure(supervision, fallback);
        let follows = config.auto.follows;
        *self.shared.config() = config;
        match &mut self.power {
            Some((profiles, _)) if follows => profiles.follow_again(self.began.elapsed()),
            None if follows => self.watch_profile(Duration::ZERO),
            _ => self.power = None,
        }
        info!("the configuration was read");
        Ok(())
    }

    fn ask_kernel(&mut self) {
        self.tell(Event::Kernel(ask(&self.kernel)));
    }

    fn tell(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            if !matches!(event, Event::Tick | Event::Kernel(_)) {
                debug!("{event:?}");
            }
            for action in self.supervisor.handle(self.began.elapsed(), event) {
                debug!("{action:?}");
                events.extend(self.act(action));
            }
        }
    }

    /// Executes an action. Returns the resulting event, if any.
    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Spawn(job) => {
                let happened = self.happened.clone();
                let ended = move |exit| {
                    let _ = happened.send(Happened::Ended(exit));
                };
                info!("starting {} {}", job.scheduler, job.args.join(" "));
                return Some(match Child::spawn(&self.opts.programs, &job, ended) {
                    Ok(child) => {
                        let pid = child.pid;
                        self.child = Some(child);
                        Event::Spawned { pid }
                    }
                    Err(error) => Event::NotSpawned(format!("{error:#}")),
                });
            }
            Action::Signal(signal) => {
                if let Some(child) = &self.child {
                    child.signal(signal);
                }
            }
            Action::Reply(caller, result) => {
                if let Some(answer) = self.callers.remove(&caller) {
                    self.answers.push((answer, result));
                }
            }
            Action::Log(text) => warn!("{text}"),
            Action::Quit => self.is_over = true,
        }
        None
    }

    /// Updates the properties and emits change signals.
    fn show(&mut self) {
        let shared = Arc::clone(&self.shared);
        let before = shared.view().clone();
        let view = View::new(
            &self.supervisor,
            &shared.config(),
            &shared.registry,
            self.profile(),
        );
        let view = view.follow(&before);
        if view == before {
            return;
        }
        *shared.view() = view.clone();
        if view.state != before.state {
            match view.current_scheduler.as_str() {
                NONE => info!("{}", view.state),
                name => info!("{name} {}", view.state),
            }
        }
        if let Some(job) = self.supervisor.job() {
            let progress = format!("{} {}", view.state, job.scheduler);
            for operation in shared.operations().progress(&progress) {
                block_on(service::signal(&self.bus, &operation));
            }
        }
        let signal = async {
            let emitter = SignalEmitter::new(&self.bus, PATH)?;
            let name = InterfaceName::try_from(NAME)?;
            let changed = view.changes(&before);
            Properties::properties_changed(&emitter, name, changed, Cow::Borrowed(&[])).await
        };
        if let Err(error) = block_on(signal) {
            warn!("cannot emit change signals: {error}");
        }
    }
}
