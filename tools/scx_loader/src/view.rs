// SPDX-License-Identifier: GPL-2.0-only
//! A snapshot of the properties.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{clock_gettime, ClockId};
use scx_utils::manifest::Mode;
use zbus::wire::Variant;

use crate::bus::NONE;
use crate::config::Config;
use crate::job::Follower;
use crate::profile::Source;
use crate::registry::Registry;
use crate::supervisor::{State, Supervisor};

/// The properties that change. The fields have their D-Bus names in snake case, except `since`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) current_scheduler: String,
    pub(crate) scheduler_mode: u32,
    pub(crate) current_scheduler_args: Vec<String>,
    pub(crate) default_scheduler: String,
    pub(crate) default_mode: u32,
    pub(crate) state: &'static str,
    pub(crate) state_reason: String,
    pub(crate) stderr_tail: Vec<String>,
    pub(crate) scheduler_pid: u32,
    pub(crate) power_profile: &'static str,
    pub(crate) power_profile_follower: &'static str,
    pub(crate) effective_mode: u32,
    /// When state, scheduler or pid last changed, by CLOCK_BOOTTIME, which includes time in suspend
    /// and does not jump when the wall clock is set.
    pub(crate) since: Duration,
}

impl View {
    pub(crate) fn new(
        supervisor: &Supervisor,
        config: &Config,
        registry: &Registry,
        profile: Source,
    ) -> Self {
        let job = supervisor.job();
        let of_mode = job.filter(|job| !job.is_custom);
        let args = job.filter(|job| job.is_custom);
        let external = supervisor.external().map(|ops| {
            let known = registry.of_ops(ops);
            known.map_or_else(|| ops.to_owned(), |manifest| manifest.name.clone())
        });
        let reason = match supervisor.state() {
            State::External => "not started by the loader".into(),
            State::Starting | State::Running => String::new(),
            _ if supervisor.reason().is_empty() => config.error.clone(),
            _ => supervisor.reason().to_owned(),
        };
        let default = config.default.as_ref();
        // A reload that disables following does not change the job, so the follower of the job is
        // outdated then.
        let follower = job.filter(|_| config.auto.follows);
        let follower = follower.map_or(Follower::None, |job| job.follower);
        Self {
            current_scheduler: job
                .map(|job| job.scheduler.clone())
                .or(external)
                .unwrap_or_else(|| NONE.into()),
            scheduler_mode: of_mode.map_or(Mode::Auto, |job| job.mode).number(),
            current_scheduler_args: args.map_or_else(Vec::new, |job| job.args.clone()),
            default_scheduler: default.map_or_else(|| NONE.into(), |job| job.scheduler.clone()),
            default_mode: config.default_mode.number(),
            state: supervisor.state().name(),
            state_reason: reason,
            stderr_tail: supervisor.stderr_tail().to_vec(),
            scheduler_pid: supervisor.pid().unwrap_or(0),
            power_profile: profile.name(),
            power_profile_follower: follower.name(),
            effective_mode: of_mode.map_or(Mode::Auto, |job| job.effective).number(),
            since: boottime(),
        }
    }

    /// Keeps the time of the previous snapshot if state, scheduler and pid are unchanged.
    pub(crate) fn follow(mut self, before: &Self) -> Self {
        let same = (self.state, &self.current_scheduler, self.scheduler_pid)
            == (
                before.state,
                &before.current_scheduler,
                before.scheduler_pid,
            );
        if same {
            self.since = before.since;
        }
        self
    }

    /// `since` in microseconds since the epoch, by the current wall clock.
    pub(crate) fn since_usec(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let ago = boottime().saturating_sub(self.since);
        let then = now.unwrap_or_default().saturating_sub(ago);
        u64::try_from(then.as_micros()).unwrap_or(u64::MAX)
    }

    /// The properties that differ from `before`, by their D-Bus names.
    pub(crate) fn changes(&self, before: &Self) -> HashMap<&'static str, Variant<'_>> {
        let mut changed = HashMap::new();
        macro_rules! compare {
            ($($field:ident => $name:literal),* $(,)?) => {
                $(if self.$field != before.$field {
                    changed.insert($name, Variant::from(self.$field.clone()));
                })*
            };
        }
        compare! {
            current_scheduler => "CurrentScheduler",
            scheduler_mode => "SchedulerMode",
            current_scheduler_args => "CurrentSchedulerArgs",
            default_scheduler => "DefaultScheduler",
            default_mode => "DefaultMode",
            state => "State",
            state_reason => "StateReason",
            stderr_tail => "StderrTail",
            scheduler_pid => "SchedulerPid",
            power_profile => "PowerProfile",
            power_profile_follower => "PowerProfileFollower",
            effective_mode => "EffectiveMode",
        }
        if self.since != before.since {
            changed.insert("SinceUsec", Variant::from(self.since_usec()));
        }
        changed
    }
}

fn boottime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}
