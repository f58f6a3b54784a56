// SPDX-License-Identifier: GPL-2.0-only
//! Prints a line for each change of the state. Properties are read at the start, and when the
//! loader appears on the bus. Otherwise, only change signals are used, since a call would make the
//! bus start a loader that has just shut down.

use std::future::Future;

use anyhow::Result;
use futures_lite::stream::{or, Stream, StreamExt as _};
use scx_loader::bus::{NAME, PATH};
use zbus::fdo::{PropertiesChanged, PropertiesProxy};

use crate::client::{connect, explain};
use crate::status::Status;

/// What changes the state that is shown.
enum Event {
    Changed(PropertiesChanged),
    /// The loader has appeared on the bus (true), or has left the bus (false).
    Owner(bool),
}

/// Runs until it is interrupted or loses the connection to the bus.
pub(crate) async fn watch(json: bool) -> Result<()> {
    let loader = connect().await?;
    let bus = loader.inner().connection();
    let properties = PropertiesProxy::builder(bus)
        .destination(NAME)
        .path(PATH)
        .build()
        .await?;
    // Subscribe before the initial state is read, so that no change is missed.
    let changes = properties.receive_properties_changed().await?;
    let owners = loader.inner().receive_owner_changed().await?;
    let events = or(
        changes.map(Event::Changed),
        owners.map(|owner| Event::Owner(owner.is_some())),
    );
    let first = Status::read(&loader).await.map_err(explain)?;
    let read = || Status::read(&loader);
    follow(events, first, read, |status| print(status, json)).await?;
    anyhow::bail!("lost the system bus")
}

fn print(status: &Status, json: bool) -> Result<()> {
    let line = if json {
        serde_json::to_string(status)?
    } else {
        status.line()
    };
    crate::write(format!("{line}\n").as_bytes())
}

/// Calls `show` with the first status, and with each status that differs from the previous one. The
/// first signals may report changes that the first status already includes.
async fn follow<F: Future<Output = zbus::Result<Status>>>(
    mut events: impl Stream<Item = Event> + Unpin,
    mut status: Status,
    read: impl Fn() -> F,
    mut show: impl FnMut(&Status) -> Result<()>,
) -> Result<()> {
    show(&status)?;
    while let Some(event) = events.next().await {
        let before = status.clone();
        match event {
            Event::Changed(signal) => {
                for (name, value) in signal.args()?.changed_properties() {
                    status.change(name, value);
                }
            }
            // Reading fails if the loader has left the bus again, as the next event will report.
            Event::Owner(true) => status = read().await.unwrap_or_else(|_| Status::absent()),
            Event::Owner(false) => status = Status::absent(),
        }
        if !status.is_same(&before) {
            show(&status)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use futures_lite::stream;
    use zbus::wire::Variant;
    use zbus::{block_on, Message};

    use super::*;

    fn changed(changes: &[(&str, Variant<'_>)]) -> Event {
        let changes: HashMap<_, _> = changes.iter().map(|(name, value)| (*name, value)).collect();
        let none: [&str; 0] = [];
        let signal = Message::signal(PATH, "org.freedesktop.DBus.Properties", "PropertiesChanged");
        let message = signal.build(&(NAME, changes, &none[..])).unwrap();
        Event::Changed(PropertiesChanged::from_message(message).unwrap())
    }

    /// The lines that are printed for these events, if the first state is "stopped" and each
    /// attempt to read the status fails.
    fn lines(events: Vec<Event>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut first = Status::absent();
        first.change("State", &"stopped".into());
        let read = || async { Err(zbus::Error::InvalidReply) };
        let watched = follow(stream::iter(events), first, read, |status| {
            lines.push(status.line());
            Ok(())
        });
        block_on(watched).unwrap();
        lines
    }

    #[test]
    fn lines_are_not_repeated() {
        let events = vec![
            changed(&[("State", "stopped".into()), ("SinceUsec", 7_u64.into())]),
            changed(&[("State", "starting".into())]),
            changed(&[("State", "starting".into())]),
            changed(&[("State", "running".into())]),
        ];
        assert_eq!(lines(events), ["stopped", "starting", "running"]);
    }

    #[test]
    fn loader_that_disappears_at_once_does_not_end_it() {
        let events = vec![
            Event::Owner(false),
            Event::Owner(true),
            Event::Owner(false),
            changed(&[("State", "stopped".into())]),
        ];
        assert_eq!(lines(events), ["stopped", "absent", "stopped"]);
    }
}
