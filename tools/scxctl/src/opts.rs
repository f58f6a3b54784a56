// SPDX-License-Identifier: GPL-2.0-only
//! Command line options.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use scx_loader::paths::DATADIR;
use scx_utils::build_id::full_version;
use scx_utils::cli::Generate;
use scx_utils::manifest::Mode;

/// Selects and recommends the CPU scheduler, shows its state, and diagnoses why schedulers cannot
/// run.
///
/// It uses the service scx_loader(8), which is activated on demand. All users may read the state;
/// changes require root, or authorization by polkit(8).
#[derive(Debug, Parser)]
#[command(name = "scxctl", version = full_version(env!("CARGO_PKG_VERSION")))]
pub(crate) struct Opts {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Write the manual page, or shell completions
    #[arg(long, hide = true, value_name = "WHAT", value_enum, exclusive = true)]
    pub(crate) generate: Option<Generate>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the running scheduler and its mode
    Get,
    /// List the schedulers that can be started
    List,
    /// Show the modes that a scheduler distinguishes, and its arguments in each
    ///
    /// If mode auto follows the power profile, the scheduler may get other arguments in this mode.
    Modes {
        #[command(flatten)]
        which: Scheduler,
    },
    /// Start a scheduler, if none is running
    Start {
        #[command(flatten)]
        which: Scheduler,
        #[command(flatten)]
        how: How,
    },
    /// Replace the running scheduler, or change its mode
    Switch {
        /// The scheduler; by default the running one
        #[arg(value_name = "SCHED")]
        name: Option<String>,
        /// The scheduler, as an option
        #[arg(short, long, value_name = "SCHED", conflicts_with = "name")]
        sched: Option<String>,
        #[command(flatten)]
        how: How,
    },
    /// Stop the scheduler; the kernel's own takes over
    Stop,
    /// Restart the running scheduler
    Restart,
    /// Switch to the configured default scheduler
    Restore,
    /// Show the state and its duration, why the last scheduler ended, and statistics
    Status,
    /// Print a line for each change, until interrupted
    Watch,
    /// Diagnose why schedulers cannot run here, and which settings they would ignore
    Check {
        /// Directory of the schedulers' descriptions
        #[arg(long, value_name = "DIR", default_value_os_t = schedulers())]
        #[arg(hide_default_value = true)]
        schedulers: PathBuf,
    },
    /// Recommend a scheduler and a mode for this machine and its present load; change nothing
    Recommend {
        /// How long to measure the load
        #[arg(long, value_name = "N", default_value_t = 2)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
        /// Directory of the schedulers' descriptions
        #[arg(long, value_name = "DIR", default_value_os_t = schedulers())]
        #[arg(hide_default_value = true)]
        schedulers: PathBuf,
    },
    /// Make the loader read its configuration again
    Reload,
}

/// The name of a scheduler, as an argument or as an option.
#[derive(Debug, Args)]
pub(crate) struct Scheduler {
    /// The scheduler, with or without scx_
    #[arg(value_name = "SCHED", required_unless_present = "sched")]
    name: Option<String>,

    /// The scheduler, as an option
    #[arg(short, long, value_name = "SCHED", conflicts_with = "name")]
    sched: Option<String>,
}

impl Scheduler {
    /// The name.
    pub(crate) fn name(&self) -> &str {
        let given = self.name.as_ref().or(self.sched.as_ref());
        given.expect("clap requires one of them")
    }
}

/// A mode, or arguments.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// The mode
    #[arg(short, long, value_name = "MODE", value_enum, ignore_case = true)]
    #[arg(conflicts_with = "args")]
    pub(crate) mode: Option<Mode>,

    /// Arguments instead of a mode, separated by commas
    #[arg(short, long, value_name = "ARGS", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true)]
    pub(crate) args: Option<Vec<String>>,

    /// Arguments instead of a mode
    #[arg(last = true, value_name = "ARG", conflicts_with_all = ["mode", "args"])]
    pub(crate) rest: Vec<String>,
}

impl How {
    /// The arguments, if given.
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
    fn options_are_consistent() {
        Opts::command().debug_assert();
    }

    #[test]
    fn both_forms_of_arguments_are_accepted() {
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
    fn scheduler_is_an_argument_or_an_option() {
        let name = |words: &[&str]| match parse(words).ok()?.command? {
            Command::Start { which, .. } | Command::Modes { which } => Some(which.name().into()),
            Command::Switch { name, sched, .. } => name.or(sched),
            command => panic!("{command:?}"),
        };
        for words in [
            ["start", "rusty"].as_slice(),
            &["start", "--sched", "rusty"],
            &["start", "-s", "rusty", "-m", "auto"],
            &["start", "rusty", "-m", "auto"],
            &["start", "rusty", "--", "-f"],
            &["start", "-m", "auto", "rusty"],
            &["modes", "rusty"],
            &["modes", "-s", "rusty"],
            &["switch", "rusty"],
            &["switch", "-s", "rusty", "--", "-f"],
        ] {
            assert_eq!(name(words), Some("rusty".to_owned()), "{words:?}");
        }
        for command in ["start", "modes"] {
            assert_eq!(name(&[command]), None);
        }
        for command in ["start", "modes", "switch"] {
            assert_eq!(name(&[command, "rusty", "-s", "rusty"]), None);
            assert_eq!(name(&[command, "rusty", "flash"]), None);
        }
    }

    #[test]
    fn measurement_has_a_length() {
        let seconds = |words: &[&str]| match parse(words).map(|opts| opts.command) {
            Ok(Some(Command::Recommend { seconds, .. })) => Some(seconds),
            _ => None,
        };
        assert_eq!(seconds(&["recommend"]), Some(2));
        assert_eq!(seconds(&["recommend", "--seconds", "10"]), Some(10));
        assert_eq!(seconds(&["recommend", "--seconds", "0"]), None);
        assert_eq!(seconds(&["recommend", "--seconds", "3601"]), None);
    }

    #[test]
    fn mode_and_arguments_are_exclusive() {
        assert!(parse(&["start", "-s", "x", "-m", "auto", "-a", "-f"]).is_err());
        assert!(parse(&["start", "-s", "x", "-m", "auto", "--", "-f"]).is_err());
        assert!(parse(&["start", "-s", "x", "-a", "-f", "--", "-f"]).is_err());
        assert!(parse(&["start"]).is_err());
        assert!(parse(&["start", "-s", "x", "-m", "turbo"]).is_err());
    }
}
