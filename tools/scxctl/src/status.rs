// SPDX-License-Identifier: GPL-2.0-only
//! Shows the state of the loader and how long it has lasted, why the last scheduler ended, and the
//! statistics of a running scheduler.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scx_loader::bus::LoaderProxy;
use scx_stats::{Client, ClientError};
use scx_utils::manifest::Mode;
use serde::Serialize;
use serde_json::Value;
use zbus::wire::Variant;

use crate::format::{how, known};

/// How long to wait for the scheduler's statistics.
const STATS_TIMEOUT: Duration = Duration::from_secs(5);

/// The loader's properties, and the statistics of its scheduler.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(crate) struct Status {
    state: String,
    scheduler: Option<String>,
    mode: Mode,
    args: Vec<String>,
    pid: Option<u32>,
    /// Time of the last change of state, scheduler or process, in us since the epoch.
    since_usec: u64,
    reason: String,
    stderr_tail: Vec<String>,
    default: Option<String>,
    /// Empty if the profile is unknown, or if the loader is not configured to follow it, is absent,
    /// or is of an earlier version.
    power_profile: String,
    /// What follows the power profile: `none`, `loader` or `scheduler`. Empty if the loader is
    /// absent, or of an earlier version.
    power_profile_follower: String,
    effective_mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Value>,
    /// Why there are no statistics, if the user can change that.
    #[serde(skip)]
    no_stats: Option<String>,
}

impl Status {
    /// The status while the loader is not on the bus.
    pub(crate) fn absent() -> Self {
        Self {
            state: "absent".into(),
            ..Self::default()
        }
    }

    /// Updates a property. Unknown properties of a newer loader are ignored.
    pub(crate) fn change(&mut self, name: &str, value: &Variant<'_>) {
        let text = || String::try_from(value).unwrap_or_default();
        let number = || u32::try_from(value).unwrap_or_default();
        let texts = || {
            value
                .try_clone()
                .and_then(Vec::try_from)
                .unwrap_or_default()
        };
        match name {
            "State" => self.state = text(),
            "CurrentScheduler" => self.scheduler = known(text()),
            "SchedulerMode" => self.mode = Mode::from_number(number()).unwrap_or_default(),
            "CurrentSchedulerArgs" => self.args = texts(),
            "SchedulerPid" => self.pid = Some(number()).filter(|pid| *pid != 0),
            "SinceUsec" => self.since_usec = u64::try_from(value).unwrap_or_default(),
            "StateReason" => self.reason = text(),
            "StderrTail" => self.stderr_tail = texts(),
            "DefaultScheduler" => self.default = known(text()),
            "PowerProfile" => self.power_profile = text(),
            "PowerProfileFollower" => self.power_profile_follower = text(),
            "EffectiveMode" => {
                self.effective_mode = Mode::from_number(number()).unwrap_or_default()
            }
            _ => {}
        }
    }

    pub(crate) async fn read(loader: &LoaderProxy<'_>) -> zbus::Result<Self> {
        let pid = loader.scheduler_pid().await?;
        Ok(Self {
            state: loader.state().await?,
            scheduler: known(loader.current_scheduler().await?),
            mode: Mode::from_number(loader.scheduler_mode().await?).unwrap_or_default(),
            args: loader.current_scheduler_args().await?,
            pid: (pid != 0).then_some(pid),
            since_usec: loader.since_usec().await?,
            reason: loader.state_reason().await?,
            stderr_tail: loader.stderr_tail().await?,
            default: known(loader.default_scheduler().await?),
            // A loader of an earlier version, which may still run, lacks these properties.
            power_profile: loader.power_profile().await.unwrap_or_default(),
            power_profile_follower: loader.power_profile_follower().await.unwrap_or_default(),
            effective_mode: Mode::from_number(loader.effective_mode().await.unwrap_or_default())
                .unwrap_or_default(),
            stats: None,
            no_stats: None,
        })
    }

    /// Whether this status equals `other` except for `since_usec`. The loader computes that time
    /// anew for each read, so its last digits vary.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let since_usec = other.since_usec;
        let same_time = Self {
            since_usec,
            ..self.clone()
        };
        same_time == *other
    }

    /// The status in one line, without statistics.
    pub(crate) fn line(&self) -> String {
        let mut line = self.state.clone();
        if let Some(scheduler) = &self.scheduler {
            let _ = write!(line, " {scheduler} {}", how(self.mode.number(), &self.args));
        }
        if !self.reason.is_empty() {
            let _ = write!(line, ": {}", self.reason);
        }
        line
    }

    /// The power profile, and what follows it. `None` if nothing follows it.
    fn following(&self) -> Option<String> {
        let profile = match self.power_profile.as_str() {
            "" => "unknown",
            profile => profile,
        };
        match self.power_profile_follower.as_str() {
            "loader" => Some(format!("{profile}, effective mode {}", self.effective_mode)),
            "scheduler" => Some(format!("{profile}, which the scheduler follows itself")),
            _ => None,
        }
    }

    fn text(&self, now: SystemTime) -> String {
        let since = UNIX_EPOCH + Duration::from_micros(self.since_usec);
        let ago = now.duration_since(since).unwrap_or_default();
        let mut text = format!("{}\n", self.line());
        let _ = writeln!(text, "  since:      {} ago", lasting(ago));
        if let Some(pid) = self.pid {
            let _ = writeln!(text, "  process:    {pid}");
        }
        if let Some(default) = &self.default {
            let _ = writeln!(text, "  default:    {default}");
        }
        if let Some(following) = self.following() {
            let _ = writeln!(text, "  profile:    {following}");
        }
        if self.pid.is_none() && self.scheduler.is_none() && !self.stderr_tail.is_empty() {
            let _ = writeln!(text, "  standard error:");
            for line in &self.stderr_tail {
                let _ = writeln!(text, "    {line}");
            }
        }
        if let Some(why) = &self.no_stats {
            let _ = writeln!(text, "  statistics: {why}");
        }
        let numbers = self.stats.as_ref().and_then(Value::as_object);
        for (name, value) in numbers.into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                let _ = writeln!(text, "  {name:<24} {number}");
            }
        }
        text
    }
}

/// A duration in its two largest units, such as `3 d 4 h` or `5 min 6 s`.
fn lasting(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [
        (seconds / 86400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let shown = units.iter().skip_while(|(count, _)| *count == 0).take(2);
    let shown: Vec<_> = shown
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if shown.is_empty() {
        return "0 s".into();
    }
    shown.join(" ")
}

pub(crate) async fn status(loader: &LoaderProxy<'_>, json: bool) -> zbus::Result<String> {
    let mut status = Status::read(loader).await?;
    if status.state == "running" {
        match statistics() {
            Ok(stats) => status.stats = Some(stats),
            Err(ClientError::PermissionDenied { readers, .. }) => {
                status.no_stats = Some(format!("for {readers}"));
            }
            Err(_) => {}
        }
    }
    Ok(if json {
        format!("{}\n", serde_json::to_string(&status).unwrap_or_default())
    } else {
        status.text(SystemTime::now())
    })
}

fn statistics() -> Result<Value, ClientError> {
    Client::connect(scx_stats::DEFAULT_PATH, STATS_TIMEOUT)?.stats_total()
}

#[cfg(test)]
mod tests {
    use scx_loader::bus::NONE;

    use super::*;

    fn status() -> Status {
        Status {
            state: "failed".into(),
            scheduler: None,
            mode: Mode::Auto,
            args: Vec::new(),
            pid: None,
            since_usec: 1_000_000,
            reason: "ended with status 2".into(),
            stderr_tail: vec!["EXIT: stalled".into()],
            default: Some("scx_rusty".into()),
            power_profile: String::new(),
            power_profile_follower: "none".into(),
            effective_mode: Mode::Auto,
            stats: None,
            no_stats: None,
        }
    }

    #[test]
    fn reason_of_the_last_end_is_shown() {
        let now = UNIX_EPOCH + Duration::from_secs(3600 + 61);
        let text = status().text(now);
        assert_eq!(
            text,
            "failed: ended with status 2\n  since:      1 h 1 min ago\n  \
             default:    scx_rusty\n  standard error:\n    EXIT: stalled\n"
        );
    }

    #[test]
    fn statistics_of_the_running_scheduler_are_shown() {
        let running = Status {
            state: "running".into(),
            scheduler: Some("scx_rusty".into()),
            mode: Mode::Gaming,
            pid: Some(7),
            reason: String::new(),
            stats: Some(serde_json::json!({"load": 1.5, "nodes": {"0": 1}})),
            ..status()
        };
        let text = running.text(UNIX_EPOCH);
        assert!(
            text.starts_with("running scx_rusty in Gaming mode\n"),
            "{text}"
        );
        assert!(text.contains("  process:    7\n"));
        assert!(text.contains("load                     1.5\n"));
        assert!(!text.contains("nodes") && !text.contains("standard error"));
        let denied = Status {
            stats: None,
            no_stats: Some("for root only".into()),
            ..running
        };
        let text = denied.text(UNIX_EPOCH);
        assert!(text.ends_with("  statistics: for root only\n"), "{text}");
    }

    #[test]
    fn what_follows_the_power_profile_is_shown() {
        let mut status = status();
        assert!(!status.text(UNIX_EPOCH).contains("profile"));
        status.change("PowerProfile", &"power-saver".into());
        status.change("PowerProfileFollower", &"loader".into());
        status.change("EffectiveMode", &2_u32.into());
        let line = "  profile:    power-saver, effective mode powersave\n";
        assert!(status.text(UNIX_EPOCH).contains(line));
        status.change("PowerProfileFollower", &"scheduler".into());
        let line = "  profile:    power-saver, which the scheduler follows itself\n";
        assert!(status.text(UNIX_EPOCH).contains(line));
    }

    #[test]
    fn changes_are_applied_by_property_name() {
        let mut status = status();
        status.change("State", &"running".into());
        status.change("CurrentScheduler", &"scx_rusty".into());
        status.change("SchedulerMode", &3_u32.into());
        status.change("SchedulerPid", &7_u32.into());
        status.change("StateReason", &"".into());
        status.change("CurrentSchedulerArgs", &vec!["-f".to_owned()].into());
        status.change("SomethingNew", &true.into());
        assert_eq!(status.line(), "running scx_rusty with arguments \"-f\"");
        assert_eq!((status.mode, status.pid), (Mode::LowLatency, Some(7)));
        status.change("CurrentScheduler", &NONE.into());
        status.change("SchedulerPid", &0_u32.into());
        assert_eq!((status.scheduler, status.pid), (None, None));
    }

    #[test]
    fn durations_have_two_units() {
        let text = |seconds| lasting(Duration::from_secs(seconds));
        assert_eq!(text(0), "0 s");
        assert_eq!(text(59), "59 s");
        assert_eq!(text(61), "1 min 1 s");
        assert_eq!(text(86400 * 3 + 3600 * 4 + 59), "3 d 4 h");
    }
}
