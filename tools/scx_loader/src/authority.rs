// SPDX-License-Identifier: GPL-2.0-only
//! Authorization of callers by polkit. Root is always authorized, even without polkit.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::warn;
use zbus::fdo::{DBusProxy, Error, Result};
use zbus::message::{Flags, Header};
use zbus::names::OwnedUniqueName;
use zbus::proxy::CacheProperties;
use zbus::Connection;
use zbus_polkit::policykit1::{
    AuthorityProxy, AuthorizationResult, CheckAuthorizationFlags, Subject,
};

/// Polkit actions. Their defaults are in `services/polkit/org.scx.Loader.policy`.
pub(crate) const MANAGE: &str = "org.scx.loader.manage-schedulers";
pub(crate) const PASS_ARGUMENTS: &str = "org.scx.loader.pass-arguments";
pub(crate) const RELOAD: &str = "org.scx.loader.reload-configuration";

/// Maximum number of pending polkit requests, and of unfinished operations, per user other than
/// root. The bus limits the loader's pending calls, to 128 by default in dbus-daemon. One user must
/// not be able to exhaust that limit.
pub(crate) const ASKING_MAX: usize = 8;

/// The number of pending polkit requests by user id.
#[derive(Debug, Default)]
pub(crate) struct Pending(Mutex<HashMap<u32, usize>>);

/// A pending polkit request. It is counted until it is dropped.
struct Asking<'a> {
    pending: &'a Pending,
    user: u32,
}

impl Pending {
    fn counts(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, user: u32) -> Result<Asking<'_>> {
        let mut counts = self.counts();
        let count = counts.entry(user).or_default();
        if *count >= ASKING_MAX {
            let text = format!("too many requests of user {user} await authorization: {count}");
            return Err(Error::LimitsExceeded(text));
        }
        *count += 1;
        Ok(Asking {
            pending: self,
            user,
        })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut counts = self.pending.counts();
        if let Some(count) = counts.get_mut(&self.user) {
            *count -= 1;
        }
        counts.retain(|_, count| *count > 0);
    }
}

/// The sender of a call.
pub(crate) struct Caller {
    pub(crate) bus: Connection,
    pub(crate) name: OwnedUniqueName,
    pub(crate) user: u32,
    subject: Subject,
    flags: CheckAuthorizationFlags,
    /// Identifies the check of this call's authorization, so that it can be cancelled.
    check: String,
}

impl Caller {
    pub(crate) async fn find(bus: &Connection, header: &Header<'_>) -> Result<Self> {
        let denied = |why: &str| Error::AccessDenied(why.into());
        let sender = header.sender().ok_or_else(|| denied("no sender"))?;
        // No properties are read, so there are none to cache.
        let user = DBusProxy::builder(bus)
            .cache_properties(CacheProperties::No)
            .build()
            .await?
            .get_connection_unix_user(sender.to_owned().into())
            .await
            // The bus does not know the user of a caller that has disconnected.
            .inspect_err(|_| warn!("{sender} left the bus before it could be authorized"))?;
        let subject = Subject::new_for_message_header(header);
        Ok(Self {
            bus: bus.clone(),
            name: sender.to_owned().into(),
            user,
            subject: subject.map_err(|error| denied(&error.to_string()))?,
            flags: interaction(header),
            check: format!("{sender} {}", header.primary().serial_num()),
        })
    }

    /// Checks that the caller may do `action`.
    pub(crate) async fn authorize(&self, pending: &Pending, action: &str) -> Result<()> {
        if self.user == 0 {
            return Ok(());
        }
        let denied = |why: String| Error::AccessDenied(format!("{action}: {why}"));
        let _asking = pending.begin(self.user)?;
        let polkit = AuthorityProxy::builder(&self.bus)
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        match check(&polkit, &self.subject, action, self.flags, &self.check).await {
            Ok(result) if result.is_authorized => Ok(()),
            Ok(result) if result.is_challenge && self.flags.is_empty() => {
                let text =
                    format!("{action}: a password is needed, but the call is not interactive");
                Err(Error::InteractiveAuthorizationRequired(text))
            }
            Ok(_) => Err(denied("not allowed".into())),
            Err(error) => Err(denied(format!("polkit does not answer: {error}"))),
        }
    }
}

/// Lets polkit ask for a password only if the message allows it, because the call does not return
/// before the user has answered.
fn interaction(header: &Header<'_>) -> CheckAuthorizationFlags {
    let flags = header.primary().flags();
    if flags.contains(Flags::ALLOW_INTERACTIVE_AUTH) {
        CheckAuthorizationFlags::ALLOW_USER_INTERACTION
    } else {
        CheckAuthorizationFlags::empty()
    }
}

/// Asks polkit. After a timeout the check is cancelled, which closes the password dialog.
async fn check(
    polkit: &AuthorityProxy<'_>,
    subject: &Subject,
    action: &str,
    flags: CheckAuthorizationFlags,
    id: &str,
) -> zbus::Result<AuthorizationResult> {
    let asked = polkit
        .check_authorization(subject, action, &HashMap::new(), flags, id)
        .await;
    if asked.as_ref().is_err_and(is_timeout) {
        if let Err(error) = polkit.cancel_check_authorization(id).await {
            warn!("polkit does not cancel a check: {error}");
        }
    }
    asked
}

fn is_timeout(error: &zbus::Error) -> bool {
    match error {
        zbus::Error::InputOutput(error) => error.kind() == ErrorKind::TimedOut,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::future;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use zbus::{block_on, connection, interface, Guid, OwnedVariant};

    use super::*;

    type Texts = HashMap<String, String>;

    /// A fake polkit whose user never answers. Records the ids of all checks, and of those that
    /// were cancelled.
    #[derive(Default, Clone)]
    struct Silent(Arc<Mutex<[Vec<String>; 2]>>);

    #[interface(name = "org.freedesktop.PolicyKit1.Authority")]
    impl Silent {
        async fn check_authorization(
            &self,
            _subject: (String, HashMap<String, OwnedVariant>),
            _action: String,
            _details: Texts,
            _flags: u32,
            id: String,
        ) -> (bool, bool, Texts) {
            self.0.lock().unwrap()[0].push(id);
            future::pending().await
        }

        fn cancel_check_authorization(&self, id: String) {
            self.0.lock().unwrap()[1].push(id);
        }
    }

    #[test]
    fn check_is_cancelled_after_a_timeout() {
        let (near, far) = UnixStream::pair().unwrap();
        let silent = Silent::default();
        let service = silent.clone();
        let server = thread::spawn(move || {
            let server = connection::Builder::unix_stream(far)
                .server(Guid::generate())
                .p2p()
                .serve_at("/org/freedesktop/PolicyKit1/Authority", service);
            block_on(server.build()).unwrap()
        });
        let client = connection::Builder::unix_stream(near)
            .p2p()
            .method_timeout(Duration::from_millis(500));
        let client = block_on(client.build()).unwrap();
        let _server = server.join().unwrap();
        let polkit = AuthorityProxy::builder(&client).cache_properties(CacheProperties::No);
        let subject = Subject::new_for_pid(1, Some(1), Some(1000)).unwrap();
        let flags = CheckAuthorizationFlags::ALLOW_USER_INTERACTION;
        let result = block_on(async {
            check(&polkit.build().await?, &subject, MANAGE, flags, ":1.7 12").await
        });
        assert!(result.is_err());
        let ids = vec![":1.7 12".to_owned()];
        assert_eq!(*silent.0.lock().unwrap(), [ids.clone(), ids]);
    }
}
