// SPDX-License-Identifier: GPL-2.0-only
//! The D-Bus object: authorization, and conversion of calls to requests for the supervisor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;
use scx_utils::manifest::Mode;
use tracing::warn;
use zbus::fdo::{DBusProxy, Error, Result};
use zbus::message::{Flags, Header};
use zbus::proxy::CacheProperties;
use zbus::{interface, Connection};
use zbus_polkit::policykit1::{AuthorityProxy, CheckAuthorizationFlags, Subject};

use crate::config::Config;
use crate::job::Job;
use crate::registry::{check_args, Registry};
use crate::supervisor::Request;
use crate::view::View;

/// Polkit actions; `services/polkit/org.scx.Loader.policy` has the defaults.
const MANAGE: &str = "org.scx.loader.manage-schedulers";
const PASS_ARGUMENTS: &str = "org.scx.loader.pass-arguments";
const RELOAD: &str = "org.scx.loader.reload-configuration";

/// Maximum number of pending polkit requests per user, so that one user cannot exhaust the bus's
/// limit for the loader's pending calls, which is a little above a hundred.
const ASKING_MAX: usize = 8;

/// The result of a call.
pub(crate) type Answer = oneshot::Sender<std::result::Result<(), String>>;

/// A call for the daemon.
#[derive(Debug)]
pub(crate) enum Call {
    /// For the supervisor.
    Request(Request, Answer),
    /// Read the configuration again.
    Reload(Answer),
}

/// State of the object.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) config: Mutex<Config>,
    pub(crate) view: Mutex<View>,
    /// Pending polkit requests of each user.
    pub(crate) asking: Mutex<HashMap<u32, usize>>,
}

impl Shared {
    pub(crate) fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn modes(&self, scheduler: &str) -> Result<Vec<Mode>> {
        let modes = self.config().modes(&self.registry, scheduler);
        modes.map_err(|error| Error::InvalidArgs(error.to_string()))
    }

    fn job(&self, scheduler: &str, mode: u32) -> Result<Job> {
        let mode = Mode::from_number(mode).ok_or_else(|| {
            Error::InvalidArgs(format!("there is no mode {mode}: modes are 0 to 4"))
        })?;
        let job = self.config().job(&self.registry, scheduler, mode);
        job.map_err(|error| Error::InvalidArgs(error.to_string()))
    }

    fn job_with(&self, scheduler: &str, args: Vec<String>) -> Result<Job> {
        let manifest = self.registry.find(scheduler);
        let checked = manifest.and_then(|manifest| {
            check_args(manifest, &args)?;
            Ok(manifest.name.clone())
        });
        Ok(Job {
            scheduler: checked.map_err(|error| Error::InvalidArgs(error.to_string()))?,
            mode: Mode::Auto,
            is_custom: true,
            args,
        })
    }
}

/// See the [module](self).
pub(crate) struct Loader {
    pub(crate) shared: Arc<Shared>,
    /// Passes a call to the daemon. Returns whether the daemon is still running.
    pub(crate) pass_on: Box<dyn Fn(Call) -> bool + Send + Sync>,
}

impl Loader {
    /// Passes a call to the daemon, and waits for its completion.
    async fn call(&self, make: impl FnOnce(Answer) -> Call) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let gone = || Error::Failed("the loader is shutting down".into());
        if !(self.pass_on)(make(answer)) {
            return Err(gone());
        }
        answered.await.map_err(|_| gone())?.map_err(Error::Failed)
    }

    /// Like [`Self::call`], for a request that needs authorization for `action`.
    async fn request(&self, caller: Caller<'_>, action: &str, request: Request) -> Result<()> {
        authorize(&self.shared, &caller, action).await?;
        self.call(|answer| Call::Request(request, answer)).await
    }
}

/// Sender of a call, and the bus to look it up.
struct Caller<'a> {
    bus: &'a Connection,
    header: Header<'a>,
}

/// A pending polkit request.
struct Asking<'a> {
    shared: &'a Shared,
    user: u32,
}

impl<'a> Asking<'a> {
    fn begin(shared: &'a Shared, user: u32) -> Result<Self> {
        let mut asking = shared.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asking.entry(user).or_default();
        if *count >= ASKING_MAX {
            let text = format!("too many requests of user {user} await authorization: {count}");
            return Err(Error::LimitsExceeded(text));
        }
        *count += 1;
        Ok(Self { shared, user })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let asking = &self.shared.asking;
        let mut asking = asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = asking.get_mut(&self.user) {
            *count -= 1;
        }
        asking.retain(|_, count| *count > 0);
    }
}

/// Authorizes the caller. Root is always authorized, even without polkit.
async fn authorize(shared: &Shared, caller: &Caller<'_>, action: &str) -> Result<()> {
    let Caller { bus, header } = caller;
    let denied = |why: String| Error::AccessDenied(format!("{action}: {why}"));
    let sender = header
        .sender()
        .ok_or_else(|| denied("the call has no sender".into()))?;
    // Without a cache of properties: to fill it, zbus would make calls whose errors are not those
    // of the request, and which have no timeout.
    let user = DBusProxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await?
        .get_connection_unix_user(sender.to_owned().into())
        .await
        // Without a connection, the caller's user cannot be determined.
        .inspect_err(|_| warn!("{sender} left the bus before it could be authorized"))?;
    if user == 0 {
        return Ok(());
    }
    let _asking = Asking::begin(shared, user)?;
    let subject = Subject::new_for_message_header(header).map_err(|e| denied(e.to_string()))?;
    let polkit = AuthorityProxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    let flags = interaction(header);
    let asked = polkit
        .check_authorization(&subject, action, &HashMap::new(), flags, "")
        .await;
    match asked {
        Ok(result) if result.is_authorized => Ok(()),
        Ok(result) if result.is_challenge && flags.is_empty() => {
            let text = format!("{action}: a password is needed, but the call is not interactive");
            Err(Error::InteractiveAuthorizationRequired(text))
        }
        Ok(_) => Err(denied("not allowed".into())),
        Err(error) => Err(denied(format!("polkit does not answer: {error}"))),
    }
}

/// Lets polkit ask for a password, which keeps the caller waiting, only if the message allows it.
fn interaction(header: &Header<'_>) -> CheckAuthorizationFlags {
    let flags = header.primary().flags();
    if flags.contains(Flags::ALLOW_INTERACTIVE_AUTH) {
        CheckAuthorizationFlags::ALLOW_USER_INTERACTION
    } else {
        CheckAuthorizationFlags::empty()
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
        let request = Request::Start(self.shared.job(scheduler, mode)?);
        self.request(Caller { bus, header }, MANAGE, request).await
    }

    async fn start_scheduler_with_args(
        &self,
        scheduler: &str,
        args: Vec<String>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        let request = Request::Start(self.shared.job_with(scheduler, args)?);
        self.request(Caller { bus, header }, PASS_ARGUMENTS, request)
            .await
    }

    async fn switch_scheduler(
        &self,
        scheduler: &str,
        mode: u32,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        let request = Request::Switch(self.shared.job(scheduler, mode)?);
        self.request(Caller { bus, header }, MANAGE, request).await
    }

    async fn switch_scheduler_with_args(
        &self,
        scheduler: &str,
        args: Vec<String>,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        let request = Request::Switch(self.shared.job_with(scheduler, args)?);
        self.request(Caller { bus, header }, PASS_ARGUMENTS, request)
            .await
    }

    async fn stop_scheduler(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        self.request(Caller { bus, header }, MANAGE, Request::Stop)
            .await
    }

    async fn restart_scheduler(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        self.request(Caller { bus, header }, MANAGE, Request::Restart)
            .await
    }

    async fn restore_default(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        authorize(&self.shared, &Caller { bus, header }, MANAGE).await?;
        let default = self.shared.config().default.clone();
        let none = || Error::Failed("no default scheduler is configured".into());
        let request = Request::Switch(default.ok_or_else(none)?);
        self.call(|answer| Call::Request(request, answer)).await
    }

    async fn reload_configuration(
        &self,
        #[zbus(connection)] bus: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<()> {
        authorize(&self.shared, &Caller { bus, header }, RELOAD).await?;
        self.call(Call::Reload).await
    }

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
    fn since_usec(&self) -> u64 {
        self.shared.view().since_usec()
    }
}
