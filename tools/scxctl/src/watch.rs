// SPDX-License-Identifier: GPL-2.0-only
//! A line for each change. After the first look the loader is not asked any more: what has changed
//! is in its signals, and a question would start one that is about to end.

use anyhow::Result;
use futures_lite::stream::{or, StreamExt as _};
use scx_loader::bus::{NAME, PATH};
use zbus::fdo::{PropertiesChanged, PropertiesProxy};

use crate::ask::{connect, explain};
use crate::status::Status;

/// What is waited for.
enum Event {
    Changed(PropertiesChanged),
    /// Whether there is one now.
    Owner(bool),
}

/// Until it is interrupted, or the bus is gone.
pub(crate) async fn watch(json: bool) -> Result<()> {
    let loader = connect().await?;
    let bus = loader.inner().connection();
    let properties = PropertiesProxy::builder(bus)
        .destination(NAME)
        .path(PATH)
        .build()
        .await?;
    // Before the first look, so that no change is missed between.
    let changes = properties.receive_properties_changed().await?;
    let owners = loader.inner().receive_owner_changed().await?;
    let mut events = or(
        changes.map(Event::Changed),
        owners.map(|owner| Event::Owner(owner.is_some())),
    );
    let mut status = Status::ask(&loader).await.map_err(explain)?;
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
            Some(Event::Owner(true)) => status = Status::ask(&loader).await.map_err(explain)?,
            Some(Event::Owner(false)) => status = Status::absent(),
            None => anyhow::bail!("lost the system bus"),
        }
    }
}
