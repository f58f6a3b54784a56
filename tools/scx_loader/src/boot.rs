// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel was told when the machine was booted.

use std::fs;
use std::path::Path;

/// On the kernel's command line: no scheduler begins with the machine.
pub const OFF: &str = "scx=off";

/// Whether the machine with this root directory was booted with [`OFF`].
#[must_use]
pub fn is_off(root: &Path) -> bool {
    let line = fs::read_to_string(root.join("proc/cmdline")).unwrap_or_default();
    line.split_whitespace().any(|word| word == OFF)
}
