// SPDX-License-Identifier: GPL-2.0-only
//! Command line options.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use scx_loader::places::DATADIR;
use scx_utils::build_id::full_version;
use scx_utils::cli::Generate;
use scx_utils::manifest::Mode;

/// Chooses the CPU scheduler, shows which one runs and why, and what keeps one from running.
///
/// It asks the service scx_loader(8), which starts with the first question. Everybody may look;
/// who changes something has to be root, or to be let by polkit(8).
#[derive(Debug, Parser)]
#[command(name = "scxctl", version = full_version(env!("CARGO_PKG_VERSION")))]
pub(crate) struct Opts {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Write the manual page, or completions of a shell
    #[arg(long, hide = true, value_name = "WHAT", value_enum, exclusive = true)]
    pub(crate) generate: Option<Generate>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show which scheduler runs, and in which mode
    Get,
    /// List the schedulers that can be started
    List,
    /// Show which modes mean something to a scheduler, and what it is started with in each
    Modes {
        /// The scheduler; scx_ may be left out
        #[arg(short, long, value_name = "NAME")]
        sched: String,
    },
    /// Start a scheduler, if none runs
    Start {
        /// The scheduler; scx_ may be left out
        #[arg(short, long, value_name = "NAME")]
        sched: String,
        #[command(flatten)]
        how: How,
    },
    /// Start another scheduler instead of the one that runs, or another mode of it
    Switch {
        /// The scheduler; by default the one that runs
        #[arg(short, long, value_name = "NAME")]
        sched: Option<String>,
        #[command(flatten)]
        how: How,
    },
    /// Stop the scheduler: the kernel's own takes over
    Stop,
    /// Start the scheduler that runs anew
    Restart,
    /// Start the default scheduler of the configuration
    Restore,
    /// Show what runs, since when, why the last one ended, and statistics
    Status,
    /// Print a line whenever something changes, until interrupted
    Watch,
    /// Say what keeps schedulers from running on this machine, and what they would not honour
    Check {
        /// Where the schedulers' descriptions are
        #[arg(long, value_name = "DIR", default_value_os_t = schedulers())]
        #[arg(hide_default_value = true)]
        schedulers: PathBuf,
    },
    /// Let the loader read its configuration again
    Reload,
}

/// In a mode, or with arguments.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// What for
    #[arg(short, long, value_name = "MODE", value_enum, ignore_case = true)]
    #[arg(conflicts_with = "args")]
    pub(crate) mode: Option<Mode>,

    /// Arguments instead, with commas between them
    #[arg(short, long, value_name = "ARGS", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true)]
    pub(crate) args: Option<Vec<String>>,

    /// Arguments instead, as they are
    #[arg(last = true, value_name = "ARG", conflicts_with_all = ["mode", "args"])]
    pub(crate) rest: Vec<String>,
}

impl How {
    /// Arguments, if some were given.
    pub(crate) fn arguments(&self) -> Option<Vec<&str>> {
        let given = self
            .args
            .as_ref()
            .or(Some(&self.rest).filter(|rest| !rest.is_empty()))?;
        Some(given.iter().map(String::as_str).collect())
    }
}

fn schedulers() -> PathBuf {
    Path::new(DATADIR).join("scx/schedulers")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(words: &[&str]) -> Result<Opts, clap::Error> {
        Opts::try_parse_from([&["scxctl"], words].concat())
    }

    fn how(words: &[&str]) -> How {
        match parse(words).unwrap().command.unwrap() {
            Command::Start { how, .. } | Command::Switch { how, .. } => how,
            command => panic!("{command:?}"),
        }
    }

    #[test]
    fn definition_of_the_options_is_sound() {
        Opts::command().debug_assert();
    }

    #[test]
    fn arguments_can_be_given_in_two_ways() {
        let commas = how(&["start", "-s", "rusty", "-a", "-u,100,--kthreads-local"]);
        assert_eq!(
            commas.arguments().unwrap(),
            ["-u", "100", "--kthreads-local"]
        );
        let rest = how(&["switch", "--", "-C", "0,1", "2"]);
        assert_eq!(rest.arguments().unwrap(), ["-C", "0,1", "2"]);
        assert_eq!(
            how(&["start", "-s", "x", "-m", "powersave"]).mode,
            Some(Mode::PowerSave)
        );
        assert_eq!(
            how(&["switch", "-m", "PowerSave"]).mode,
            Some(Mode::PowerSave)
        );
        assert_eq!(how(&["switch"]).arguments(), None);
    }

    #[test]
    fn a_mode_and_arguments_exclude_each_other() {
        assert!(parse(&["start", "-s", "x", "-m", "auto", "-a", "-f"]).is_err());
        assert!(parse(&["start", "-s", "x", "-m", "auto", "--", "-f"]).is_err());
        assert!(parse(&["start", "-s", "x", "-a", "-f", "--", "-f"]).is_err());
        assert!(parse(&["start"]).is_err());
        assert!(parse(&["start", "-s", "x", "-m", "turbo"]).is_err());
    }
}
