// SPDX-License-Identifier: GPL-2.0-only
//! Where things are installed, as the build was told.

/// Programs.
pub const BINDIR: &str = match option_env!("SCX_BINDIR") {
    Some(folder) => folder,
    None => "/usr/bin",
};

/// What does not depend on the machine.
pub const DATADIR: &str = match option_env!("SCX_DATADIR") {
    Some(folder) => folder,
    None => "/usr/share",
};

/// What the administrator sets.
pub const SYSCONFDIR: &str = match option_env!("SCX_SYSCONFDIR") {
    Some(folder) => folder,
    None => "/etc",
};
