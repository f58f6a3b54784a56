// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's implementation of the runner's traits.

use anyhow::Result;
use scx_rustland_core::{Driver, Metrics, COMPACTION_SETTING};
use scx_utils::bpf::Slot;
use scx_utils::manifest::Modes;
use scx_utils::runner::{Program, Scheduler, Start};

use crate::opts::{Config, Opts};
use crate::policy::Fifo;

/// The scheduler.
pub(crate) struct RlFifo;

impl Scheduler for RlFifo {
    const PROGRAM: Program = scx_utils::program!();
    const DESCRIPTION: &'static str =
        "All tasks wait in one queue of a program in user space and run in FIFO order, each for \
         one slice. This scheduler is meant to be read, copied and changed. Without --weighted, \
         nice values have no effect; caches and nodes are ignored.";
    const MACHINE_SETTINGS: &'static [&'static str] = &[COMPACTION_SETTING];
    const MODES: Modes = Modes {
        gaming: &["--slice-us", "5000"],
        low_latency: &["--slice-us", "2000"],
        server: &["--builtin-idle"],
        ..Modes::NONE
    };
    const KFUNCS: &'static [&'static str] = scx_rustland_core::KFUNCS;

    type Opts = Opts;
    type Config = Config;
    type Stats = Metrics;
    type Instance<'obj> = Driver<'obj, Fifo>;

    fn config(opts: Opts) -> Result<Config> {
        Ok(opts.into())
    }

    fn attach<'obj>(
        start: &Start<'_>,
        config: &Config,
        slot: &'obj mut Slot,
    ) -> Result<Self::Instance<'obj>> {
        Driver::attach(start, &config.core, Fifo::new(config.policy), slot)
    }
}
