// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler as it is to be started.

use scx_utils::manifest::{self, Mode};

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// The program.
    pub(crate) scheduler: String,
    /// The one asked for; [`Mode::Auto`] if arguments were.
    pub(crate) mode: Mode,
    /// Whether somebody chose the arguments, and not a mode.
    pub(crate) is_custom: bool,
    /// What it is started with.
    pub(crate) args: Vec<String>,
}

impl Job {
    /// What it calls itself in the kernel.
    pub(crate) fn ops(&self) -> &str {
        manifest::ops(&self.scheduler)
    }
}
