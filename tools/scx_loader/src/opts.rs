// SPDX-License-Identifier: GPL-2.0-only
//! Command line options.

use std::path::{Path, PathBuf};

use clap::Parser;
use scx_utils::build_id::full_version;
use scx_utils::cli::Generate;

/// Starts, switches and supervises schedulers, by request over D-Bus.
///
/// It is the service org.scx.Loader of the system bus: scxctl(1) asks it, and desktop tools do. A
/// scheduler that fails is started again, later each time; one that fails again and again is
/// replaced by another, or by the kernel's own. When the service ends, so does its scheduler.
#[derive(Debug, Parser)]
#[command(name = "scx_loader", version = full_version(env!("CARGO_PKG_VERSION")))]
pub(crate) struct Opts {
    /// Read the configuration from this file, and no other
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where the schedulers' programs are
    #[arg(long, value_name = "DIR", default_value = crate::places::BINDIR)]
    #[arg(hide_default_value = true)]
    pub(crate) programs: PathBuf,

    /// Where the schedulers' descriptions are
    #[arg(long, value_name = "DIR", default_value_os_t = schedulers())]
    #[arg(hide_default_value = true)]
    pub(crate) schedulers: PathBuf,

    /// Print what happens, step by step
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Write the manual page, or completions of a shell
    #[arg(long, hide = true, value_name = "WHAT", value_enum)]
    pub(crate) generate: Option<Generate>,
}

fn schedulers() -> PathBuf {
    Path::new(crate::places::DATADIR).join("scx/schedulers")
}
