// SPDX-License-Identifier: GPL-2.0-only
//! The kernel command line.

use std::fs;
use std::path::Path;

/// With this word on the kernel command line, scx_loader starts without its default scheduler.
pub const OFF: &str = "scx=off";

/// Whether [`OFF`] is in `proc/cmdline` below the directory `root`.
#[must_use]
pub fn is_off(root: &Path) -> bool {
    let line = fs::read_to_string(root.join("proc/cmdline")).unwrap_or_default();
    line.split_whitespace().any(|word| word == OFF)
}
