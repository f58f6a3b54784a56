// SPDX-License-Identifier: GPL-2.0-only
//! `scx_fake_power new|old|login`: a fake service on the system bus. It runs until it is killed.
//!
//! `new` is power-profiles-daemon since version 0.20, and `old` is an earlier version. Clients may
//! set the property ActiveProfile, which is "balanced" at first. Two additional methods set it:
//! `SetRapidly` several times, each with a signal, and `SetQuietly` without a signal.
//!
//! `login` is systemd-logind. Its method `Suspend` only sends the signal PrepareForSleep twice, as
//! before and after suspend.

#![forbid(unsafe_code)]

use std::env;
use std::thread;

use anyhow::{bail, Result};
use zbus::object_server::SignalEmitter;
use zbus::{block_on, connection, fdo, interface};

macro_rules! profiles {
    ($service:ident, $name:literal) => {
        struct $service(String);

        #[interface(name = $name)]
        impl $service {
            #[zbus(property)]
            fn active_profile(&self) -> String {
                self.0.clone()
            }

            #[zbus(property)]
            fn set_active_profile(&mut self, profile: String) {
                self.0 = profile;
            }

            async fn set_rapidly(
                &mut self,
                profiles: Vec<String>,
                #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
            ) -> fdo::Result<()> {
                for profile in profiles {
                    self.0 = profile;
                    self.active_profile_changed(&emitter).await?;
                }
                Ok(())
            }

            fn set_quietly(&mut self, profile: String) {
                self.0 = profile;
            }
        }
    };
}

profiles!(New, "org.freedesktop.UPower.PowerProfiles");
profiles!(Old, "net.hadess.PowerProfiles");

struct Login;

#[interface(name = "org.freedesktop.login1.Manager")]
impl Login {
    async fn suspend(&self, #[zbus(signal_emitter)] emitter: SignalEmitter<'_>) -> fdo::Result<()> {
        Self::prepare_for_sleep(&emitter, true).await?;
        Self::prepare_for_sleep(&emitter, false).await?;
        Ok(())
    }

    #[zbus(signal)]
    async fn prepare_for_sleep(emitter: &SignalEmitter<'_>, start: bool) -> zbus::Result<()>;
}

fn main() -> Result<()> {
    let bus = connection::Builder::system();
    let balanced = "balanced".to_owned();
    let bus = match env::args().nth(1).as_deref() {
        Some("new") => bus
            .serve_at("/org/freedesktop/UPower/PowerProfiles", New(balanced))
            .name("org.freedesktop.UPower.PowerProfiles"),
        Some("old") => bus
            .serve_at("/net/hadess/PowerProfiles", Old(balanced))
            .name("net.hadess.PowerProfiles"),
        Some("login") => bus
            .serve_at("/org/freedesktop/login1", Login)
            .name("org.freedesktop.login1"),
        _ => bail!("new, old or login"),
    };
    let _bus = block_on(bus.build())?;
    loop {
        thread::park();
    }
}
