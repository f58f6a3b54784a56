// SPDX-License-Identifier: GPL-2.0-only
//! The kernel command line.

use std::fs;
use std::path::Path;

/// On the kernel command line, this word prevents the start of a scheduler at boot.
pub const OFF: &str = "scx=off";

/// Whether [`OFF`] is in `proc/cmdline` below the directory `root`.
#[must_use]
pub fn is_off(root: &Path) -> bool {
    let line = fs::read_to_string(root.join("proc/cmdline")).unwrap_or_default();
    line.split_whitespace().any(|word| word == OFF)
}
