// SPDX-License-Identifier: GPL-2.0-only
//! The D-Bus object. It authorizes callers, and passes their requests to the daemon.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use futures_channel::oneshot;
use scx_utils::manifest::Mode;
use tracing::debug;
use zbus::fdo::{Error, Result};
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{block_on, interface, Connection, DBusError as _};

use crate::authority::{Caller, Pending, RELOAD};
use crate::bus::PATH;
use crate::config::Config;
use crate::job::Job;
use crate::operations::{Operation, Operations, Stage};
use crate::registry::Registry;
use crate::supervisor::Request;
use crate::view::View;
use crate::wanted::{job_in_mode, Choice, Options, Wanted};

/// Where to send the result of a call.
pub(crate) type Answer = oneshot::Sender<std::result::Result<(), String>>;

/// A call for the daemon.
#[derive(Debug)]
pub(crate) enum Call {
    /// A request for the supervisor.
    Request(Request, Answer),
    /// Read the configuration again.
    Reload(Answer),
}

/// State that the D-Bus object and the daemon share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) config: Mutex<Config>,
    pub(crate) view: Mutex<View>,
    pub(crate) operations: Mutex<Operations>,
    pub(crate) pending: Pending,
}

impl Shared {
    pub(crate) fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn operations(&self) -> MutexGuard<'_, Operations> {
        let operations = self.operations.lock();
        operations.unwrap_or_else(PoisonError::into_inner)
    }

    fn modes(&self, scheduler: &str) -> Result<Vec<Mode>> {
        let modes = self.config().modes(&self.registry, scheduler);
        modes.map_err(|error| Error::InvalidArgs(error.to_string()))
    }

    fn job(&self, scheduler: &str, mode: u32) -> Result<Job> {
        job_in_mode(&self.config(), &self.registry, scheduler, mode)
    }

    fn request(&self, wanted: &Wanted) -> Result<Request> {
        wanted.request(&self.config(), &self.registry)
    }
}

/// Passes calls to the daemon.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) shared: Arc<Shared>,
    /// Passes a call to the daemon. Returns false if the daemon has ended.
    pub(crate) pass_on: Arc<dyn Fn(Call) -> bool + Send + Sync>,
}

impl Calls {
    /// Passes a request to the daemon, and waits for its completion. The request is converted now,
    /// because the configuration may have changed while the caller was authorized.
    async fn request(&self, wanted: &Wanted) -> Result<()> {
        let request = self.shared.request(wanted)?;
        self.call(|answer| Call::Request(request, answer)).await
    }

    /// Passes a call to the daemon, and waits for its completion.
    async fn call(&self, make: impl FnOnce(Answer) -> Call) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let gone = || Error::Failed("the loader is shutting down".into());
        if !(self.pass_on)(make(answer)) {
            return Err(gone());
        }
        answered.await.map_err(|_| gone())?.map_err(Error::Failed)
    }
}

/// The D-Bus object.
pub(crate) struct Loader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) calls: Calls,
}

impl Loader {
    /// Checks the request, and that the caller is authorized, then passes the request to the
    /// daemon.
    async fn request(&self, bus: &Connection, header: &Header<'_>, wanted: Wanted) -> Result<()> {
        // An invalid request fails before a password is asked for.
        self.shared.request(&wanted)?;
        self.authorize(bus, header, wanted.action()).await?;
        self.calls.request(&wanted).await
    }

    async fn authorize(&self, bus: &Connection, header: &Header<'_>, action: &str) -> Result<()> {
        let caller = Caller::find(bus, header).await?;
        caller.authorize(&self.shared.pending, action).await
    }
}

/// Changes an operation, and signals the change to its caller.
async fn advance(bus: &Connection, shared: &Shared, id: u32, stage: Stage, message: &str) {
    let changed = shared.operations().set(id, stage, message);
    if let Some(operation) = changed {
        signal(bus, &operation).await;
    }
}

/// Signals a change of an operation to its caller.
pub(crate) async fn signal(bus: &Connection, operation: &Operation) {
    let emit = async {
        let caller = operation.caller.to_owned().into();
        let emitter = SignalEmitter::new(bus, PATH)?.set_destination(caller);
        let (stage, message) = (operation.stage.to_string(), &operation.message);
        Loader::operation_changed(&emitter, operation.id, &stage, message).await
    };
    // Not a warning, because the caller may be gone.
    if let Err(error) = emit.await {
        debug!("operation {}: {error}", operation.id);
    }
}

/// Authorizes and runs an operation. Returns when the operation has finished, so each operation has
/// a thread of its own.
async fn run(calls: &Calls, caller: &Caller, id: u32, wanted: &Wanted) {
    let (bus, shared) = (&caller.bus, &calls.shared);
    if let Err(error) = caller.authorize(&shared.pending, wanted.action()).await {
        let text = error.description().unwrap_or_default().to_owned();
        return advance(bus, shared, id, Stage::Denied, &text).await;
    }
    advance(bus, shared, id, Stage::Running, "").await;
    match calls.request(wanted).await {
        Ok(()) => advance(bus, shared, id, Stage::Done, "").await,
        Err(error) => {
            let text = error.description().unwrap_or_default().to_owned();
            advance(bus, shared, id, Stage::Failed, &text).await;
        }
    }
}

#[interface(name = "org.scx.Loader", introspection_docs = false)]
impl Loader {
    async fn start_scheduler(
        &self,
        scheduler: &str,
        mode: u32,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        let choice = Choice::in_mode(scheduler, mode);
        self.request(bus, &header, Wanted::Start(choice)).await
    }

    async fn start_scheduler_with_args(
        &self,
        scheduler: &str,
        args: Vec<String>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        let choice = Choice::with_args(scheduler, args);
        self.request(bus, &header, Wanted::Start(choice)).await
    }

    async fn switch_scheduler(
        &self,
        scheduler: &str,
        mode: u32,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        let choice = Choice::in_mode(scheduler, mode);
        self.request(bus, &header, Wanted::Switch(choice)).await
    }

    async fn switch_scheduler_with_args(
        &self,
        scheduler: &str,
        args: Vec<String>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        let choice = Choice::with_args(scheduler, args);
        self.request(bus, &header, Wanted::Switch(choice)).await
    }

    async fn stop_scheduler(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        self.request(bus, &header, Wanted::Stop).await
    }

    async fn restart_scheduler(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        self.request(bus, &header, Wanted::Restart).await
    }

    async fn restore_default(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        self.authorize(bus, &header, Wanted::Restore.action())
            .await?;
        self.calls.request(&Wanted::Restore).await
    }

    async fn reload_configuration(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        self.authorize(bus, &header, RELOAD).await?;
        self.calls.call(Call::Reload).await
    }

    async fn run_operation(
        &self,
        operation: &str,
        options: Options,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<u32> {
        let wanted = Wanted::parse(operation, options)?;
        self.shared.request(&wanted)?;
        let caller = Caller::find(bus, &header).await?;
        let begun = self
            .shared
            .operations()
            .begin(caller.user, caller.name.clone());
        let id = begun.map_err(Error::LimitsExceeded)?;
        let calls = self.calls.clone();
        let thread = thread::Builder::new().name("operation".into());
        let started = thread.spawn(move || block_on(run(&calls, &caller, id, &wanted)));
        if let Err(error) = started {
            let text = format!("starting a thread: {error}");
            self.shared.operations().set(id, Stage::Failed, &text);
            return Err(Error::Failed(text));
        }
        Ok(id)
    }

    #[zbus(out_args("state", "message"))]
    fn operation_state(&self, id: u32) -> Result<(String, String)> {
        let operations = self.shared.operations();
        let unknown = || Error::InvalidArgs(format!("there is no operation {id}"));
        let operation = operations.get(id).ok_or_else(unknown)?;
        Ok((operation.stage.to_string(), operation.message.clone()))
    }

    #[zbus(signal)]
    async fn operation_changed(
        emitter: &SignalEmitter<'_>,
        id: u32,
        state: &str,
        message: &str,
    ) -> zbus::Result<()>;

    fn scheduler_modes(&self, scheduler: &str) -> Result<Vec<u32>> {
        let modes = self.shared.modes(scheduler)?.into_iter();
        Ok(modes.map(Mode::number).collect())
    }

    fn scheduler_mode_args(&self, scheduler: &str, mode: u32) -> Result<Vec<String>> {
        Ok(self.shared.job(scheduler, mode)?.args)
    }

    #[zbus(property)]
    fn current_scheduler(&self) -> String {
        self.shared.view().current_scheduler.clone()
    }

    #[zbus(property)]
    fn scheduler_mode(&self) -> u32 {
        self.shared.view().scheduler_mode
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn supported_schedulers(&self) -> Vec<String> {
        let all = self.shared.registry.all().iter();
        all.map(|manifest| manifest.name.clone()).collect()
    }

    #[zbus(property)]
    fn current_scheduler_args(&self) -> Vec<String> {
        self.shared.view().current_scheduler_args.clone()
    }

    #[zbus(property)]
    fn default_scheduler(&self) -> String {
        self.shared.view().default_scheduler.clone()
    }

    #[zbus(property)]
    fn default_mode(&self) -> u32 {
        self.shared.view().default_mode
    }

    #[zbus(property)]
    fn state(&self) -> String {
        self.shared.view().state.into()
    }

    #[zbus(property)]
    fn state_reason(&self) -> String {
        self.shared.view().state_reason.clone()
    }

    #[zbus(property)]
    fn stderr_tail(&self) -> Vec<String> {
        self.shared.view().stderr_tail.clone()
    }

    #[zbus(property)]
    fn scheduler_pid(&self) -> u32 {
        self.shared.view().scheduler_pid
    }

    #[zbus(property)]
    fn power_profile(&self) -> String {
        self.shared.view().power_profile.into()
    }

    #[zbus(property)]
    fn power_profile_follower(&self) -> String {
        self.shared.view().power_profile_follower.into()
    }

    #[zbus(property)]
    fn effective_mode(&self) -> u32 {
        self.shared.view().effective_mode
    }

    #[zbus(property)]
    fn since_usec(&self) -> u64 {
        self.shared.view().since_usec()
    }
}
