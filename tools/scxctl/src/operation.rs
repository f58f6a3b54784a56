// SPDX-License-Identifier: GPL-2.0-only
//! Starts and switches schedulers, and prints the progress on a terminal.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{anyhow, bail, Result};
use futures_lite::stream::{or, StreamExt as _};
use scx_loader::bus::LoaderProxy;
use zbus::proxy::MethodFlags;
use zbus::wire::Variant;
use zbus::{fdo, Message};

use crate::client::explain;

/// What can happen during an operation.
enum Event {
    Changed(Message),
    LoaderGone,
}

/// Whether to print the progress: only if standard error is a terminal.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Runs an operation of the loader, and prints its progress. Returns false if the loader does not
/// know operations. This is possible if a loader of an earlier version is still running.
pub(crate) async fn run(
    loader: &LoaderProxy<'_>,
    name: &str,
    options: HashMap<&str, Variant<'_>>,
    flags: MethodFlags,
) -> Result<bool> {
    let proxy = loader.inner();
    // Subscribe before the call, since the first signal may precede the reply to the call.
    let changes = proxy
        .receive_signal("OperationChanged")
        .await
        .map_err(explain)?;
    let owners = proxy.receive_owner_changed().await.map_err(explain)?;
    let gone = owners.filter_map(|owner| owner.is_none().then_some(Event::LoaderGone));
    let mut events = or(changes.map(Event::Changed), gone);
    let begun: zbus::Result<Option<u32>> = proxy
        .call_with_flags("RunOperation", flags, &(name, options))
        .await;
    let id = match begun {
        Ok(id) => id.unwrap_or_default(),
        Err(zbus::Error::FDO(error)) if matches!(*error, fdo::Error::UnknownMethod(_)) => {
            return Ok(false);
        }
        Err(error) => return Err(explain(error)),
    };
    while let Some(event) = events.next().await {
        let Event::Changed(signal) = event else {
            bail!("the loader has ended");
        };
        let body = signal.body();
        let (changed, state, message): (u32, &str, &str) = body.deserialize()?;
        if changed == id {
            match state {
                "done" => return Ok(true),
                "failed" => return Err(anyhow!("{message}")),
                "denied" => {
                    return Err(explain(fdo::Error::AccessDenied(message.into()).into()));
                }
                _ => progress(message),
            }
        }
    }
    bail!("lost the system bus")
}

fn progress(message: &str) {
    if !message.is_empty() {
        // If standard error is closed, the message is lost.
        let _ = writeln!(io::stderr(), "{message} …");
    }
}
