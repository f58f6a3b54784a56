// SPDX-License-Identifier: GPL-2.0-only
//! The profile of power-profiles-daemon, or of another service with its interface, over D-Bus.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use futures_lite::future;
use futures_lite::stream::{or, StreamExt as _};
use zbus::fdo::{PropertiesChanged, PropertiesProxy};
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::{block_on, connection, Connection, OwnedVariant, Proxy};

use super::Profile;

/// The name that the service and its interface share, with the path of the object: as of version
/// 0.20, and before.
const NAMES: [(&str, &str); 2] = [
    (
        "org.freedesktop.UPower.PowerProfiles",
        "/org/freedesktop/UPower/PowerProfiles",
    ),
    ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"),
];
const PROPERTY: &str = "ActiveProfile";

/// How long to wait after a failure of the bus or of the service, either of which may not exist.
const RETRY: Duration = Duration::from_secs(10);
/// Timeout of a call. Answers take milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The socket of the bus, below a root directory other than "/".
const SOCKET: &str = "run/dbus/system_bus_socket";

/// The latest profile that the thread has read.
#[derive(Debug, Default)]
struct Latest(AtomicU8);

impl Latest {
    const PROFILES: [Profile; 4] = [
        Profile::PowerSave,
        Profile::BalancedPower,
        Profile::BalancedPerformance,
        Profile::Performance,
    ];

    /// 0 is unknown, and each profile its index plus one.
    fn get(&self) -> Option<Profile> {
        let number = self.0.load(Ordering::Relaxed);
        let index = usize::from(number).checked_sub(1)?;
        Self::PROFILES.get(index).copied()
    }

    fn set(&self, profile: Option<Profile>) {
        let numbers = (1..).zip(Self::PROFILES);
        let number = profile.and_then(|profile| numbers.clone().find(|(_, p)| *p == profile));
        self.0
            .store(number.map_or(0, |(number, _)| number), Ordering::Relaxed);
    }
}

/// A thread that follows the daemon. It ends after this is dropped.
#[derive(Debug)]
pub(super) struct Daemon {
    latest: Arc<Latest>,
    _end: End,
}

/// Dropping it ends the thread: `_bus` ends a wait for the bus, `_retry` the pause before a retry.
#[derive(Debug)]
struct End {
    _bus: oneshot::Sender<()>,
    _retry: Sender<()>,
}

/// The thread's side of [`End`].
struct Ended {
    bus: oneshot::Receiver<()>,
    retry: Receiver<()>,
}

impl Daemon {
    /// For the bus of the machine with this root directory.
    pub(super) fn start(root: &Path) -> Self {
        let latest = Arc::new(Latest::default());
        let (bus, bus_ended) = oneshot::channel();
        let (retry, retry_ended) = mpsc::channel();
        let ended = Ended {
            bus: bus_ended,
            retry: retry_ended,
        };
        let (root, ours) = (root.to_owned(), Arc::clone(&latest));
        let thread = thread::Builder::new().name("power-profile".into());
        if let Err(error) = thread.spawn(move || run(&root, &ours, ended)) {
            tracing::debug!("no thread to ask for the power profile: {error}");
        }
        Self {
            latest,
            _end: End {
                _bus: bus,
                _retry: retry,
            },
        }
    }

    pub(super) fn profile(&self) -> Option<Profile> {
        self.latest.get()
    }
}

fn run(root: &Path, latest: &Latest, mut ended: Ended) {
    loop {
        let lost = future::or(
            async {
                // The other side never sends.
                let _ = (&mut ended.bus).await;
                None
            },
            async { Some(follow(root, latest).await) },
        );
        match block_on(lost) {
            None => return,
            Some(Ok(())) => tracing::debug!("the power profile: the service is gone"),
            Some(Err(error)) => tracing::debug!("the power profile: {error}"),
        }
        latest.set(None);
        if ended.retry.recv_timeout(RETRY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Stores the profile, until the service or the bus is gone.
async fn follow(root: &Path, latest: &Latest) -> zbus::Result<()> {
    let bus = connect(root).await?;
    let mut result = Ok(());
    for (name, path) in NAMES {
        result = follow_name(&bus, name, path, latest).await;
        // The service is gone or failed: its profile does not count while the next name is tried.
        latest.set(None);
    }
    result
}

async fn connect(root: &Path) -> zbus::Result<Connection> {
    let bus = if root == Path::new("/") {
        connection::Builder::system()
    } else {
        let socket: PathBuf = root.join(SOCKET);
        let address = format!("unix:path={}", socket.display());
        connection::Builder::address(address.as_str())
    };
    bus.method_timeout(ANSWER_TIMEOUT).build().await
}

enum Event {
    Changed(PropertiesChanged),
    OwnerChanged,
}

async fn follow_name(
    bus: &Connection,
    name: &str,
    path: &str,
    latest: &Latest,
) -> zbus::Result<()> {
    let service = PropertiesProxy::builder(bus)
        .destination(name)
        .path(path)
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    // Subscribe before the profile is read, so that no change is missed.
    let changes = service.receive_properties_changed().await?;
    let owners = service.inner().receive_owner_changed().await?;
    let mut events = or(
        changes.map(Event::Changed),
        owners.map(|_| Event::OwnerChanged),
    );
    latest.set(ask(service.inner(), name).await?);
    while let Some(Event::Changed(signal)) = events.next().await {
        let args = signal.args()?;
        if args.interface_name().as_str() != name {
            continue;
        }
        // Read the value even if the signal contains it: changes are rare.
        let is_ours = |property: &str| property == PROPERTY;
        let changed = args.changed_properties().keys().any(|p| is_ours(p));
        if changed || args.invalidated_properties().iter().any(|p| is_ours(p)) {
            latest.set(ask(service.inner(), name).await?);
        }
    }
    Ok(())
}

/// Asks for the profile without starting the service: a machine that uses profiles has started it.
async fn ask(service: &Proxy<'_>, name: &str) -> zbus::Result<Option<Profile>> {
    let flags = MethodFlags::NO_AUTO_START;
    let property = (name, PROPERTY);
    let reply = service.call_with_flags("Get", flags, &property);
    let value: Option<OwnedVariant> = reply.await?;
    let word = value.and_then(|value| String::try_from(value).ok());
    Ok(word.and_then(|word| Profile::from_daemon(&word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_can_be_stored() {
        let latest = Latest::default();
        assert_eq!(latest.get(), None);
        for profile in Latest::PROFILES {
            latest.set(Some(profile));
            assert_eq!(latest.get(), Some(profile));
        }
        latest.set(None);
        assert_eq!(latest.get(), None);
    }
}
