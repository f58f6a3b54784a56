// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler with its arguments.

use scx_utils::manifest::{self, Mode};

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// The program.
    pub(crate) scheduler: String,
    /// The requested mode; [`Mode::Auto`] with custom arguments.
    pub(crate) mode: Mode,
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
