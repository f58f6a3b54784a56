// SPDX-License-Identifier: GPL-2.0-only
//! Requests to the loader.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{anyhow, bail, Result};
use scx_loader::bus::{LoaderProxy, NONE};
use scx_utils::manifest::{ops, Mode};
use serde_json::json;
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::{fdo, Connection, DBusError as _};

use crate::format::{how, known, title};
use crate::opts::{Command, How};
use crate::{operation, status};

/// The running scheduler, its mode and its arguments.
struct Current {
    scheduler: Option<String>,
    mode: u32,
    args: Vec<String>,
}

impl Current {
    async fn read(loader: &LoaderProxy<'_>) -> zbus::Result<Self> {
        Ok(Self {
            scheduler: known(loader.current_scheduler().await?),
            mode: loader.scheduler_mode().await?,
            args: loader.current_scheduler_args().await?,
        })
    }

    fn json(&self) -> serde_json::Value {
        let mode = Mode::from_number(self.mode).unwrap_or_default();
        json!({"scheduler": self.scheduler, "mode": mode, "args": self.args})
    }

    /// The text for the user, such as `Rusty in Auto mode`.
    fn text(&self) -> String {
        let name = title(self.scheduler.as_deref().unwrap_or(NONE));
        format!("{name} {}", how(self.mode, &self.args))
    }
}

/// Connects to the loader. If the loader is not running, the first call activates it.
pub(crate) async fn connect() -> Result<LoaderProxy<'static>> {
    let bus = Connection::system().await;
    // The text of this error includes its causes, so they are not added as sources.
    let bus = bus.map_err(|error| anyhow!("the system bus: {error}"))?;
    // Without a cache, a property that is read after a change has the new value.
    let loader = LoaderProxy::builder(&bus).cache_properties(CacheProperties::No);
    loader.build().await.map_err(explain)
}

/// Converts a D-Bus error to text for the user.
pub(crate) fn explain(error: zbus::Error) -> anyhow::Error {
    let zbus::Error::FDO(error) = error else {
        return anyhow!("{error}");
    };
    match *error {
        fdo::Error::ServiceUnknown(_) | fdo::Error::NameHasNoOwner(_) => {
            anyhow!("the loader is not on the system bus: start or install the service scx_loader")
        }
        fdo::Error::AccessDenied(text) | fdo::Error::InteractiveAuthorizationRequired(text) => {
            anyhow!("not allowed ({text}): run as root, or with sudo")
        }
        error => match error.description() {
            Some(text) => anyhow!("{text}"),
            None => anyhow!("{error}"),
        },
    }
}

/// Executes the command; returns the output.
pub(crate) async fn run(command: &Command, json: bool) -> Result<String> {
    let loader = connect().await?;
    match command {
        Command::Get => get(&loader, json).await,
        Command::List => list(&loader, json).await,
        Command::Modes { which } => modes(&loader, which.name(), json).await,
        Command::Status => status::status(&loader, json).await,
        command => return change(&loader, command, json).await,
    }
    .map_err(explain)
}

async fn get(loader: &LoaderProxy<'_>, json: bool) -> zbus::Result<String> {
    let current = Current::read(loader).await?;
    Ok(if json {
        format!("{}\n", current.json())
    } else if current.scheduler.is_none() {
        "no scx scheduler running\n".into()
    } else {
        format!("running {}\n", current.text())
    })
}

async fn list(loader: &LoaderProxy<'_>, json: bool) -> zbus::Result<String> {
    let schedulers = loader.supported_schedulers().await?;
    let names: Vec<_> = schedulers.iter().map(|name| ops(name)).collect();
    Ok(if json {
        format!("{}\n", json!(names))
    } else {
        format!("supported schedulers: {names:?}\n")
    })
}

async fn modes(loader: &LoaderProxy<'_>, sched: &str, json: bool) -> zbus::Result<String> {
    let mut all = Vec::new();
    for number in loader.scheduler_modes(sched).await? {
        // A newer loader may have modes that this program does not know.
        let name = Mode::from_number(number).map_or(number.to_string(), |mode| mode.to_string());
        all.push((name, loader.scheduler_mode_args(sched, number).await?));
    }
    Ok(if json {
        let all: serde_json::Map<_, _> =
            all.into_iter().map(|(n, args)| (n, json!(args))).collect();
        format!("{}\n", json!(all))
    } else {
        let line = |(name, args): (String, Vec<String>)| {
            let args = match &args[..] {
                [] => "(defaults)".into(),
                args => args.join(" "),
            };
            format!("{name:<10} {args}\n")
        };
        all.into_iter().map(line).collect()
    })
}

async fn change(loader: &LoaderProxy<'_>, command: &Command, json: bool) -> Result<String> {
    let before = Current::read(loader).await.map_err(explain)?;
    let done = match command {
        Command::Start { which, how } => {
            start(loader, which.name(), how).await?;
            "started"
        }
        Command::Switch { name, sched, how } => {
            let sched = name.as_deref().or(sched.as_deref());
            switch(loader, &before, sched, how).await?;
            "switched to"
        }
        Command::Restart => {
            call(loader, "RestartScheduler", &()).await?;
            "restarted"
        }
        Command::Restore => {
            call(loader, "RestoreDefault", &()).await?;
            "restored default scheduler"
        }
        Command::Reload => {
            call(loader, "ReloadConfiguration", &()).await?;
            return reloaded(loader).await.map_err(explain);
        }
        _ => {
            call(loader, "StopScheduler", &()).await?;
            "stopped"
        }
    };
    let now = Current::read(loader).await.map_err(explain)?;
    if matches!(command, Command::Start { .. } | Command::Switch { .. }) {
        note_missing_mode(loader, &now).await;
    }
    Ok(match command {
        _ if json => format!("{}\n", now.json()),
        Command::Stop | Command::Restart => format!("{done}\n"),
        _ => format!("{done} {}\n", now.text()),
    })
}

/// The output of `reload`. A reload does not start the default scheduler: only `restore` and the
/// start of the loader do.
async fn reloaded(loader: &LoaderProxy<'_>) -> zbus::Result<String> {
    let default = known(loader.default_scheduler().await?);
    let is_stopped = known(loader.current_scheduler().await?).is_none();
    Ok(match default.filter(|_| is_stopped) {
        Some(default) => {
            format!("reloaded; {default} does not run yet: scxctl restore starts it\n")
        }
        None => "reloaded\n".into(),
    })
}

/// Prints a note if the scheduler has no arguments of its own for the mode in which it runs.
async fn note_missing_mode(loader: &LoaderProxy<'_>, now: &Current) {
    let Some(scheduler) = now.scheduler.as_deref().filter(|_| now.args.is_empty()) else {
        return;
    };
    // A loader of an earlier version lacks this method: print no note.
    let Ok(modes) = loader.scheduler_modes(scheduler).await else {
        return;
    };
    if let Some(mode) = Mode::from_number(now.mode).filter(|_| !modes.contains(&now.mode)) {
        // If standard error is closed, the note is lost.
        let _ = writeln!(
            io::stderr(),
            "scxctl: {scheduler} has no mode {mode}: it runs with its defaults"
        );
    }
}

/// Calls a method that changes something. A password dialog is allowed only if standard input is a
/// terminal, so that scripts fail instead of blocking.
async fn call<A>(loader: &LoaderProxy<'_>, method: &str, args: &A) -> Result<()>
where
    A: serde::Serialize + zbus::DynamicType,
{
    let proxy = loader.inner();
    let done: zbus::Result<Option<()>> = proxy.call_with_flags(method, flags(), args).await;
    done.map(|_| ()).map_err(explain)
}

fn flags() -> MethodFlags {
    if io::stdin().is_terminal() {
        MethodFlags::ALLOW_INTERACTIVE_AUTH
    } else {
        MethodFlags::empty()
    }
}

async fn start(loader: &LoaderProxy<'_>, sched: &str, how: &How) -> Result<()> {
    let mode = how.mode.unwrap_or_default().number();
    run_with(loader, "start", sched, mode, how.arguments()).await
}

/// Switches to a scheduler, in a mode or with arguments. By default, keeps the current scheduler
/// and its mode. The mode of a scheduler with custom arguments is auto.
async fn switch(
    loader: &LoaderProxy<'_>,
    before: &Current,
    sched: Option<&str>,
    how: &How,
) -> Result<()> {
    let Some(running) = &before.scheduler else {
        bail!("no scheduler is running: use scxctl start");
    };
    if sched.is_none() && how.mode.is_none() && how.arguments().is_none() {
        bail!("nothing to switch to: name a scheduler, a mode or arguments");
    }
    let sched = sched.unwrap_or(running);
    let mode = how.mode.map_or(before.mode, Mode::number);
    run_with(loader, "switch", sched, mode, how.arguments()).await
}

/// Starts a scheduler or switches to it, according to `operation`. It runs with `args` if these are
/// given, otherwise in `mode`.
async fn run_with(
    loader: &LoaderProxy<'_>,
    operation: &str,
    sched: &str,
    mode: u32,
    args: Option<Vec<&str>>,
) -> Result<()> {
    if operation::is_watched() {
        let how = match &args {
            Some(args) => ("arguments", args.clone().into()),
            None => ("mode", mode.into()),
        };
        let options = HashMap::from([("scheduler", sched.into()), how]);
        if operation::run(loader, operation, options, flags()).await? {
            return Ok(());
        }
    }
    let method = match operation {
        "start" => "StartScheduler",
        _ => "SwitchScheduler",
    };
    match args {
        Some(args) => call(loader, &format!("{method}WithArgs"), &(sched, args)).await,
        None => call(loader, method, &(sched, mode)).await,
    }
}
