// SPDX-License-Identifier: GPL-2.0-only
//! The power mode, which determines the active CPUs.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use scx_utils::bpf::Words;
use scx_utils::power::{Profile, ProfileSource};
use scx_utils::runner::Tick;

use crate::bpf_intf;

/// How often the power profile is read.
const INTERVAL: Duration = Duration::from_secs(1);

/// Options of the power mode.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(crate) struct ModeOpts {
    /// Choose powersave, balanced or performance mode by the load. This is the default
    #[arg(long)]
    autopilot: bool,

    /// Choose the mode by the power profile of the machine
    #[arg(long)]
    autopower: bool,

    /// Use all CPUs, but little ones last
    #[arg(long)]
    performance: bool,

    /// Use as many CPUs as the load needs, and one thread of each core first
    #[arg(long)]
    balanced: bool,

    /// Use as many CPUs as the load needs, whole cores first; within a cache, little ones first
    #[arg(long)]
    powersave: bool,

    /// Use all CPUs; a task prefers the kind that suits it
    #[arg(long)]
    no_core_compaction: bool,
}

impl ModeOpts {
    /// The mode at the start, one of `LAVD_*`.
    fn mode(&self) -> u32 {
        match self {
            Self {
                performance: true, ..
            } => bpf_intf::LAVD_PERFORMANCE,
            Self { balanced: true, .. } => bpf_intf::LAVD_BALANCED,
            Self {
                powersave: true, ..
            } => bpf_intf::LAVD_POWERSAVE,
            Self {
                no_core_compaction: true,
                ..
            } => bpf_intf::LAVD_NO_COMPACTION,
            // This is for --autopilot, which is the default, and for --autopower until the profile
            // is known.
            _ => bpf_intf::LAVD_AUTO,
        }
    }
}

/// The name of a mode (`LAVD_*`) in the statistics. Without compaction, and before the first round,
/// this is "performance".
pub(crate) fn name(mode: u64) -> &'static str {
    if mode == u64::from(bpf_intf::LAVD_BALANCED) {
        "balanced"
    } else if mode == u64::from(bpf_intf::LAVD_POWERSAVE) {
        "powersave"
    } else {
        "performance"
    }
}

fn of_profile(profile: Profile) -> u32 {
    match profile {
        Profile::PowerSave => bpf_intf::LAVD_POWERSAVE,
        Profile::BalancedPower | Profile::BalancedPerformance => bpf_intf::LAVD_BALANCED,
        Profile::Performance => bpf_intf::LAVD_PERFORMANCE,
    }
}

/// Sets the mode of a running scheduler.
#[derive(Debug)]
pub(crate) struct ModeSetter {
    /// `struct lavd_control`.
    control: Words,
    /// Where to read the power profile; `None` without `--autopower`.
    source: Option<ProfileSource>,
    profile: Option<Profile>,
}

impl ModeSetter {
    /// Sets the mode that the options request. `root` is the directory below which the power
    /// profile is found.
    pub(crate) fn new(opts: &ModeOpts, root: &Path, control: Words) -> Self {
        control.set(0, opts.mode().into());
        Self {
            control,
            source: opts.autopower.then(|| ProfileSource::new(root)),
            profile: None,
        }
    }

    /// Follows the power profile, if `--autopower` was given. The mode does not change if the
    /// profile cannot be read.
    pub(crate) fn tick(&mut self) -> Tick {
        let Some(source) = &mut self.source else {
            return Tick::Never;
        };
        let profile = source.read();
        if profile.is_some() && profile != self.profile {
            self.profile = profile;
            if let Some(profile) = profile {
                tracing::info!("power profile {profile}");
                self.control.set(0, of_profile(profile).into());
            }
        }
        Tick::After(INTERVAL)
    }
}
