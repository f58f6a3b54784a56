// SPDX-License-Identifier: GPL-2.0-only
//! Command line options.

use std::path::{Path, PathBuf};

use clap::Parser;
use scx_utils::build_id::full_version;
use scx_utils::cli::Generate;

/// Starts, switches and supervises schedulers on request over D-Bus.
///
/// It is the service org.scx.Loader on the system bus, used by scxctl(1) and desktop tools. A
/// scheduler that fails is restarted with increasing delays; after repeated failures it is
/// replaced by a fallback, or the kernel's own. When the service ends, it stops its scheduler.
#[derive(Debug, Parser)]
#[command(name = "scx_loader", version = full_version(env!("CARGO_PKG_VERSION")))]
pub(crate) struct Opts {
    /// Configuration file to read instead of the default ones
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Directory of the schedulers' programs
    #[arg(long, value_name = "DIR", default_value = crate::paths::BINDIR)]
    #[arg(hide_default_value = true)]
    pub(crate) programs: PathBuf,

    /// Directory of the schedulers' descriptions
    #[arg(long, value_name = "DIR", default_value_os_t = schedulers())]
    #[arg(hide_default_value = true)]
    pub(crate) schedulers: PathBuf,

    /// Log each step
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Write the manual page, or shell completions
    #[arg(long, hide = true, value_name = "WHAT", value_enum)]
    pub(crate) generate: Option<Generate>,
}

fn schedulers() -> PathBuf {
    Path::new(crate::paths::DATADIR).join("scx/schedulers")
}
