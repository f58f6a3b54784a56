// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler with its arguments.

use scx_utils::manifest::{self, Mode};

/// What changes with the power profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Follower {
    #[default]
    None,
    /// The loader switches modes.
    Loader,
    /// The scheduler itself, without a restart.
    Scheduler,
}

impl Follower {
    /// Its name on the bus.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loader => "loader",
            Self::Scheduler => "scheduler",
        }
    }
}

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// The program.
    pub(crate) scheduler: String,
    /// The requested mode; [`Mode::Auto`] with custom arguments.
    pub(crate) mode: Mode,
    /// The mode of the arguments: another one than the requested mode auto if the loader follows
    /// the power profile.
    pub(crate) effective: Mode,
    /// What follows the power profile.
    pub(crate) follower: Follower,
    /// Whether the arguments are custom, not those of a mode.
    pub(crate) is_custom: bool,
    /// Command line arguments.
    pub(crate) args: Vec<String>,
}

impl Job {
    /// The scheduler's ops name in the kernel.
    pub(crate) fn ops(&self) -> &str {
        manifest::ops(&self.scheduler)
    }
}
