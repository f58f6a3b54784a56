// SPDX-License-Identifier: GPL-2.0-only
//! A line for each change. Properties are read when the loader appears on the bus. After that, only
//! change signals are used, since a call would make the bus start a loader that has just shut down.

use anyhow::Result;
use futures_lite::stream::{or, StreamExt as _};
use scx_loader::bus::{NAME, PATH};
use zbus::fdo::{PropertiesChanged, PropertiesProxy};

use crate::client::{connect, explain};
use crate::status::Status;

/// An event.
enum Event {
    Changed(PropertiesChanged),
    /// Whether the loader is on the bus.
    Owner(bool),
}

/// Runs until interrupted, or the bus is lost.
pub(crate) async fn watch(json: bool) -> Result<()> {
    let loader = connect().await?;
    let bus = loader.inner().connection();
    let properties = PropertiesProxy::builder(bus)
        .destination(NAME)
        .path(PATH)
        .build()
        .await?;
    // Before the initial state, so that no change is missed.
    let changes = properties.receive_properties_changed().await?;
    let owners = loader.inner().receive_owner_changed().await?;
    let mut events = or(
        changes.map(Event::Changed),
        owners.map(|owner| Event::Owner(owner.is_some())),
    );
    let mut status = Status::read(&loader).await.map_err(explain)?;
    loop {
        let line = if json {
            serde_json::to_string(&status)?
        } else {
            status.line()
        };
        crate::write(format!("{line}\n").as_bytes())?;
        match events.next().await {
            Some(Event::Changed(signal)) => {
                for (name, value) in signal.args()?.changed_properties() {
                    status.change(name, value);
                }
            }
            Some(Event::Owner(true)) => status = Status::read(&loader).await.map_err(explain)?,
            Some(Event::Owner(false)) => status = Status::absent(),
            None => anyhow::bail!("lost the system bus"),
        }
    }
}
