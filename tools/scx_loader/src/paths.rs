// SPDX-License-Identifier: GPL-2.0-only
//! Installation directories, set by the build.

/// Programs.
pub const BINDIR: &str = match option_env!("SCX_BINDIR") {
    Some(folder) => folder,
    None => "/usr/bin",
};

/// Architecture-independent data.
pub const DATADIR: &str = match option_env!("SCX_DATADIR") {
    Some(folder) => folder,
    None => "/usr/share",
};

/// Configuration.
pub const SYSCONFDIR: &str = match option_env!("SCX_SYSCONFDIR") {
    Some(folder) => folder,
    None => "/etc",
};
