// SPDX-License-Identifier: GPL-2.0-only
//! The power profile that schedulers in the mode auto follow: the profile of power-profiles-daemon
//! or, without that daemon, whether the machine runs on battery.

use std::time::Duration;

use scx_utils::manifest::Mode;
use scx_utils::power::{Profile, Supply};

use crate::supervisor::Time;

/// How long a new profile must remain the same before it is followed.
const SETTLED: Duration = Duration::from_secs(1);
/// How often the power supply is read if there is no daemon. The supply's files in sysfs do not
/// report changes.
const SUPPLY_INTERVAL: Duration = Duration::from_secs(5);

/// The power profile, and where it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Source {
    /// There is neither a daemon nor a battery, or the profile is not followed.
    #[default]
    None,
    Daemon(Profile),
    Supply(Supply),
}

impl Source {
    /// Name on the bus.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Daemon(Profile::PowerSave) => "power-saver",
            Self::Daemon(Profile::Performance) => "performance",
            Self::Daemon(_) => "balanced",
            Self::Supply(Supply::Battery) => "battery",
            Self::Supply(Supply::Mains) => "mains",
        }
    }

    /// The mode for this profile. The mode for the profile performance is configurable, and passed
    /// in `performance`.
    pub(crate) fn mode(self, performance: Mode) -> Mode {
        match self {
            Self::Daemon(Profile::PowerSave) | Self::Supply(Supply::Battery) => Mode::PowerSave,
            Self::Daemon(Profile::Performance) => performance,
            _ => Mode::Auto,
        }
    }

    /// Whether a scheduler that follows the profile itself can know this profile. Schedulers do not
    /// check whether the machine runs on battery.
    pub(crate) fn is_known_to_schedulers(self) -> bool {
        self != Self::Supply(Supply::Battery)
    }
}

/// The current profile, and when to follow it.
#[derive(Debug)]
pub(crate) struct Profiles {
    source: Source,
    daemon: Option<Profile>,
    read_supply_at: Time,
    /// When to follow the profile. `None` if it has been followed.
    due_at: Option<Time>,
}

impl Profiles {
    /// Starts without a profile.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            source: Source::None,
            daemon: None,
            read_supply_at: now,
            due_at: Some(now + SETTLED),
        }
    }

    pub(crate) fn source(&self) -> Source {
        self.source
    }

    /// Sets the daemon's profile; `None` if there is no daemon. Without a daemon, the next tick
    /// reads the power supply, which may have changed during suspend.
    pub(crate) fn report(&mut self, now: Time, daemon: Option<Profile>) {
        self.daemon = daemon;
        self.read_supply_at = now;
    }

    /// Updates the profile at the time `now`. `read` reads the power supply.
    pub(crate) fn tick(&mut self, now: Time, read: impl FnOnce() -> Option<Supply>) {
        let source = match self.daemon {
            Some(profile) => Source::Daemon(profile),
            None if now < self.read_supply_at => return,
            None => {
                self.read_supply_at = now + SUPPLY_INTERVAL;
                read().map_or(Source::None, Source::Supply)
            }
        };
        if source != self.source {
            self.source = source;
            self.due_at = Some(now + SETTLED);
        }
    }

    /// Makes the profile due to be followed, even if it has not changed.
    pub(crate) fn follow_again(&mut self, now: Time) {
        self.due_at = Some(now);
    }

    /// Whether to follow the profile now. True once when the profile has remained the same for
    /// [`SETTLED`] since the start or a change, and once after a call of [`Self::follow_again`].
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.due_at.is_some_and(|at| at <= now);
        if is_due {
            self.due_at = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Time = Time::from_millis(1);

    /// Creates [`Profiles`] whose profile was followed long before the returned time.
    fn settled(daemon: Option<Profile>) -> (Profiles, Time) {
        let mut profiles = Profiles::new(Time::ZERO);
        profiles.report(Time::ZERO, daemon);
        profiles.tick(Time::ZERO, || None);
        assert!(!profiles.is_due(900 * MS));
        assert!(profiles.is_due(1000 * MS));
        (profiles, Time::from_secs(60))
    }

    #[test]
    fn profiles_have_modes() {
        let mode = |source: Source| source.mode(Mode::Server);
        assert_eq!(mode(Source::Daemon(Profile::PowerSave)), Mode::PowerSave);
        assert_eq!(mode(Source::Daemon(Profile::BalancedPower)), Mode::Auto);
        assert_eq!(mode(Source::Daemon(Profile::Performance)), Mode::Server);
        assert_eq!(mode(Source::Supply(Supply::Battery)), Mode::PowerSave);
        assert_eq!(mode(Source::Supply(Supply::Mains)), Mode::Auto);
        assert_eq!(mode(Source::None), Mode::Auto);
    }

    #[test]
    fn rapid_changes_are_followed_once() {
        let (mut profiles, mut now) = settled(Some(Profile::BalancedPerformance));
        for turn in 0..10 {
            now += 500 * MS;
            let profile = [Profile::PowerSave, Profile::Performance][turn % 2];
            profiles.report(now, Some(profile));
            profiles.tick(now, || None);
            assert!(!profiles.is_due(now), "turn {turn}");
        }
        assert!(!profiles.is_due(now + 999 * MS));
        assert!(profiles.is_due(now + 1000 * MS));
        assert!(!profiles.is_due(now + 5000 * MS), "twice");
        assert_eq!(profiles.source().name(), "performance");
    }

    #[test]
    fn same_profile_is_not_followed_again() {
        let (mut profiles, now) = settled(Some(Profile::PowerSave));
        profiles.report(now, Some(Profile::PowerSave));
        profiles.tick(now, || None);
        assert!(!profiles.is_due(now + 5000 * MS));
        profiles.follow_again(now);
        assert!(profiles.is_due(now));
    }

    #[test]
    fn power_supply_counts_without_a_daemon() {
        let (mut profiles, now) = settled(None);
        profiles.tick(now, || Some(Supply::Battery));
        assert_eq!(profiles.source(), Source::Supply(Supply::Battery));
        profiles.tick(now + 4999 * MS, || panic!("read too often"));
        profiles.tick(now + 5000 * MS, || Some(Supply::Mains));
        assert_eq!(profiles.source(), Source::Supply(Supply::Mains));
        // After a report, as on resume, the power supply is read without waiting for the interval.
        profiles.report(now + 5001 * MS, None);
        profiles.tick(now + 5001 * MS, || Some(Supply::Battery));
        assert_eq!(profiles.source(), Source::Supply(Supply::Battery));
        profiles.report(now + 5002 * MS, Some(Profile::Performance));
        profiles.tick(now + 5002 * MS, || panic!("there is a daemon"));
        assert_eq!(profiles.source(), Source::Daemon(Profile::Performance));
        assert!(profiles.is_due(now + 6002 * MS));
    }
}
