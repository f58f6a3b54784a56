// SPDX-License-Identifier: GPL-2.0-only
//! The profile of power-profiles-daemon, or of another service with its interface, over D-Bus.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use futures_lite::future;
use futures_lite::stream::{or, StreamExt as _};
use zbus::fdo::{DBusProxy, PropertiesProxy};
use zbus::message::Type;
use zbus::names::{BusName, InterfaceName};
use zbus::proxy::CacheProperties;
use zbus::{block_on, connection, Connection, MatchRule, MessageStream};

use super::Profile;

/// The name of the service, which is also the name of its interface, and the path of its object.
/// The first name is for power-profiles-daemon since version 0.20, the second name for earlier
/// versions. Other services with this interface, such as tuned-ppd, use the same names.
const NAMES: [(&str, &str); 2] = [
    (
        "org.freedesktop.UPower.PowerProfiles",
        "/org/freedesktop/UPower/PowerProfiles",
    ),
    ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"),
];
const PROPERTY: &str = "ActiveProfile";

/// How long to wait after a failure of the bus, which may not exist.
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

    /// The number 0 stands for an unknown profile. Any other number is the index of the profile in
    /// [`Self::PROFILES`] plus one.
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

/// Reports the profile of power-profiles-daemon, or of another service with its interface.
///
/// A thread listens to the system bus, and ends after the watch is dropped. A service that does not
/// run is not started.
#[derive(Debug)]
pub struct Watch {
    _end: End,
}

/// Ends the thread when this guard is dropped: `_bus` ends a wait for the bus, and `_retry` ends
/// the pause before a retry.
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

impl Watch {
    /// For the bus of the machine with this root directory: "/", except in tests.
    ///
    /// The thread calls `report` soon with the current profile, or `None` if no service has one,
    /// and again at each possible change, such as resume from suspend. If the bus fails, the thread
    /// reports `None`.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        root: &Path,
        report: impl FnMut(Option<Profile>) + Send + 'static,
    ) -> io::Result<Self> {
        let (bus, bus_ended) = oneshot::channel();
        let (retry, retry_ended) = mpsc::channel();
        let ended = Ended {
            bus: bus_ended,
            retry: retry_ended,
        };
        let root = root.to_owned();
        let thread = thread::Builder::new().name("power-profile".into());
        thread.spawn(move || run(&root, report, ended))?;
        Ok(Self {
            _end: End {
                _bus: bus,
                _retry: retry,
            },
        })
    }
}

/// The latest profile of a [`Watch`].
#[derive(Debug)]
pub(super) struct Daemon {
    latest: Arc<Latest>,
    _watch: Option<Watch>,
}

impl Daemon {
    /// For the bus of the machine with this root directory.
    pub(super) fn start(root: &Path) -> Self {
        let latest = Arc::new(Latest::default());
        let ours = Arc::clone(&latest);
        let watch = Watch::start(root, move |profile| ours.set(profile));
        Self {
            latest,
            _watch: watch
                .inspect_err(|error| {
                    tracing::debug!("no thread to ask for the power profile: {error}");
                })
                .ok(),
        }
    }

    pub(super) fn profile(&self) -> Option<Profile> {
        self.latest.get()
    }
}

fn run(root: &Path, mut report: impl FnMut(Option<Profile>), mut ended: Ended) {
    loop {
        let lost = future::or(
            async {
                // Nothing is ever sent: the wait ends when `End` is dropped.
                let _ = (&mut ended.bus).await;
                None
            },
            async { Some(follow(root, &mut report).await) },
        );
        match block_on(lost) {
            None => return,
            Some(Ok(())) => tracing::debug!("the power profile: the bus is gone"),
            Some(Err(error)) => tracing::debug!("the power profile: {error}"),
        }
        report(None);
        if ended.retry.recv_timeout(RETRY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Reports the profile until the bus is gone.
async fn follow(root: &Path, report: &mut impl FnMut(Option<Profile>)) -> zbus::Result<()> {
    let bus = connect(root).await?;
    let [new, old] = NAMES.map(|(name, _)| name);
    // Subscribe before the profile is read, so that no change is missed.
    let properties = or(changes(&bus, new).await?, changes(&bus, old).await?);
    let owners = or(owners(&bus, new).await?, owners(&bus, old).await?);
    // Services do not always report what has changed during suspend.
    let mut events = or(or(properties, owners), resumes(&bus).await?);
    report(profile(&bus).await);
    while let Some(event) = events.next().await {
        event?;
        // Read the value even if the signal contains it: changes are rare.
        report(profile(&bus).await);
    }
    Ok(())
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

/// The signals by which a service reports that its properties have changed.
async fn changes(bus: &Connection, name: &str) -> zbus::Result<MessageStream> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(name)
        .interface("org.freedesktop.DBus.Properties")
        .member("PropertiesChanged")
        .arg(0, name);
    MessageStream::for_match_rule(rule.build()?, bus, None).await
}

/// The signals by which the bus reports that a service has started or ended.
async fn owners(bus: &Connection, name: &str) -> zbus::Result<MessageStream> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender("org.freedesktop.DBus")
        .interface("org.freedesktop.DBus")
        .member("NameOwnerChanged")
        .arg(0, name);
    MessageStream::for_match_rule(rule.build()?, bus, None).await
}

/// The signals of systemd-logind before suspend, and after it.
async fn resumes(bus: &Connection) -> zbus::Result<MessageStream> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender("org.freedesktop.login1")
        .interface("org.freedesktop.login1.Manager")
        .member("PrepareForSleep");
    MessageStream::for_match_rule(rule.build()?, bus, None).await
}

/// The profile of the first service that answers. `None` if no service answers, or if [`Profile`]
/// has no equivalent.
async fn profile(bus: &Connection) -> Option<Profile> {
    for (name, path) in NAMES {
        match ask(bus, name, path).await {
            Ok(Some(word)) => return Profile::from_daemon(&word),
            Ok(None) => {}
            Err(error) => tracing::debug!("the power profile of {name}: {error}"),
        }
    }
    None
}

/// Returns the profile of a service, `None` if the service does not run. The service is not
/// started: a machine that uses profiles has started it already.
async fn ask(bus: &Connection, name: &str, path: &str) -> zbus::Result<Option<String>> {
    let driver = DBusProxy::builder(bus).cache_properties(CacheProperties::No);
    if !driver
        .build()
        .await?
        .name_has_owner(BusName::try_from(name)?)
        .await?
    {
        return Ok(None);
    }
    read(bus, name, path).await.map(Some)
}

/// Reads the profile. The call does not have the flag NO_AUTO_START, because zbus applies no
/// timeout to calls with flags.
async fn read(bus: &Connection, name: &str, path: &str) -> zbus::Result<String> {
    let service = PropertiesProxy::builder(bus)
        .destination(name)
        .path(path)
        .cache_properties(CacheProperties::No);
    let value = service
        .build()
        .await?
        .get(InterfaceName::try_from(name)?, PROPERTY)
        .await?;
    String::try_from(value)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use zbus::Guid;

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

    /// A service that never answers.
    struct Silent;

    #[zbus::interface(name = "net.hadess.PowerProfiles")]
    impl Silent {
        #[zbus(property)]
        async fn active_profile(&self) -> String {
            future::pending().await
        }
    }

    #[test]
    fn service_that_does_not_answer_is_given_up() {
        let (near, far) = UnixStream::pair().unwrap();
        let (name, path) = NAMES[1];
        let result = block_on(async {
            let server = connection::Builder::unix_stream(far)
                .server(Guid::generate())
                .p2p()
                .serve_at(path, Silent);
            let client = connection::Builder::unix_stream(near)
                .p2p()
                .method_timeout(Duration::from_millis(50));
            let (_server, client) = future::zip(server.build(), client.build()).await;
            read(&client.unwrap(), name, path).await
        });
        assert!(result.is_err(), "{result:?}");
    }
}
