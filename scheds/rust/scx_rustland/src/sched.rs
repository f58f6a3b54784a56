// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's implementation of the runner's trait [`Scheduler`].

use anyhow::Result;
use scx_rustland_core::{Driver, Metrics, COMPACTION_SETTING};
use scx_utils::bpf::Slot;
use scx_utils::manifest::Modes;
use scx_utils::runner::{Program, Scheduler, Start};

use crate::opts::{Config, Opts};
use crate::policy;

/// The scheduler.
pub(crate) struct Rustland;

impl Scheduler for Rustland {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str =
        "Tasks that sleep often and compute little precede those that compute, and preempt them \
         on wakeup, so that an overloaded machine stays responsive. CPU time is shared by weight \
         (nice values); weights above 1000 (nice -11 and below) count as 1000. The policy runs in \
         user space; caches and nodes are ignored.";
    const MACHINE_SETTINGS: &'static [&'static str] = &[COMPACTION_SETTING];
    const MODES: Modes = Modes {
        gaming: &["--slice-us", "3000", "--slice-boost", "40"],
        low_latency: &[
            "--slice-us",
            "1000",
            "--slice-us-min",
            "100",
            "--slice-boost",
            "100",
        ],
        power_save: &["--slice-us", "10000", "--low-power"],
        server: &[
            "--slice-us",
            "20000",
            "--slice-us-min",
            "2000",
            "--slice-boost",
            "4",
        ],
    };
    const KFUNCS: &'static [&'static str] = scx_rustland_core::KFUNCS;

    type Opts = Opts;
    type Config = Config;
    type Stats = Metrics;
    type Instance<'obj> = Driver<'obj, policy::Rustland>;

    fn config(opts: Opts) -> Result<Config> {
        opts.try_into()
    }

    fn attach<'obj>(
        start: &Start<'_>,
        config: &Config,
        slot: &'obj mut Slot,
    ) -> Result<Self::Instance<'obj>> {
        let policy = policy::Rustland::new(config.policy);
        Driver::attach(start, &config.core, policy, slot)
    }
}
