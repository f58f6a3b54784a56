// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler to run, with its arguments.

use scx_utils::manifest::{self, Mode};

/// What adapts a scheduler to the power profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Follower {
    #[default]
    None,
    /// The loader, which restarts the scheduler in another mode.
    Loader,
    /// The scheduler itself, without a restart.
    Scheduler,
}

impl Follower {
    /// Name on the bus.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loader => "loader",
            Self::Scheduler => "scheduler",
        }
    }
}

/// A scheduler to run, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// Name of the scheduler's program.
    pub(crate) scheduler: String,
    /// The requested mode; [`Mode::Auto`] with custom arguments.
    pub(crate) mode: Mode,
    /// The mode whose arguments are used; [`Mode::Auto`] with custom arguments. It differs from the
    /// requested mode only if the loader follows the power profile.
    pub(crate) effective: Mode,
    /// What adapts the scheduler to the power profile.
    pub(crate) follower: Follower,
    /// Whether the arguments are custom, not those of a mode.
    pub(crate) is_custom: bool,
    /// Command line arguments.
    pub(crate) args: Vec<String>,
}

impl Job {
    /// The name of the scheduler's `sched_ext_ops` in the kernel.
    pub(crate) fn ops(&self) -> &str {
        manifest::ops(&self.scheduler)
    }
}
