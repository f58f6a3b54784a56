// SPDX-License-Identifier: GPL-2.0-only
//! The options common to all Rust schedulers, combined with the scheduler's own.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, Context as _, Result};
use clap::{Args, Command, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};

use super::{Scheduler, Status};
use crate::bpf::OpenOptions;
use crate::build_id::full_version;
use crate::cli::{self, Generate, Section};
use crate::hotplug::HotplugToken;
use crate::manifest::Manifest;
use crate::topology::Topology;

/// The maximum of `--exit-dump-len`, in bytes: 512 times the kernel's default. The kernel may fail
/// to allocate even less than that.
const EXIT_DUMP_LEN_MAX: i64 = 16 << 20;

/// A command line.
#[derive(Debug, Parser)]
pub(super) struct Cli<O: Args> {
    #[command(flatten)]
    pub(super) own: O,
    #[command(flatten)]
    pub(super) common: CommonOpts,
}

/// Options of every scheduler.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every scheduler")]
pub struct CommonOpts {
    /// Print statistics every SEC seconds, 0.1 to 86400
    #[arg(long, value_name = "SEC", value_parser = cli::interval, allow_negative_numbers = true)]
    pub stats: Option<Duration>,

    /// Load no scheduler, but print the statistics of the running one every SEC seconds
    #[arg(long, value_name = "SEC", value_parser = cli::interval, allow_negative_numbers = true)]
    #[arg(conflicts_with = "stats")]
    pub monitor: Option<Duration>,

    /// Describe the statistics and exit
    #[arg(long)]
    pub help_stats: bool,

    /// The socket of the statistics
    #[arg(long, value_name = "PATH", default_value = scx_stats::DEFAULT_PATH)]
    pub stats_socket: PathBuf,

    /// A group that may read the statistics, in addition to root
    #[arg(long, value_name = "GROUP")]
    pub stats_group: Option<String>,

    /// Print the detected CPUs, caches and nodes, and exit
    #[arg(long, value_name = "FORMAT", value_enum, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "text")]
    pub print_topology: Option<TopologyFormat>,

    /// Schedule only tasks of the policy SCHED_EXT
    #[arg(short, long)]
    pub partial: bool,

    /// Keep LEN bytes of debug dump when ejected, 0 for the kernel's default
    #[arg(long, value_name = "LEN", default_value = "0")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=EXIT_DUMP_LEN_MAX))]
    #[arg(allow_negative_numbers = true)]
    pub exit_dump_len: u32,

    /// Print each step, including libbpf's messages
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Options of libbpf.
    #[command(flatten)]
    pub libbpf: LibbpfOpts,

    /// Write the manual page, or completions of a shell
    #[arg(long, hide = true, value_name = "WHAT", value_enum)]
    pub generate: Option<Generate>,

    /// Describe the scheduler to scx_loader, as JSON
    #[arg(long, hide = true)]
    pub manifest: bool,
}

/// Options for opening the BPF object.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of libbpf")]
pub struct LibbpfOpts {
    /// Ignore unknown fields of map definitions
    #[arg(long)]
    pub relaxed_maps: bool,

    /// Find pinned maps below PATH, and pin maps there
    #[arg(long, value_name = "PATH")]
    pub pin_root_path: Option<PathBuf>,

    /// Read the kernel's configuration (CONFIG_*) from PATH
    #[arg(long, value_name = "PATH")]
    pub kconfig: Option<PathBuf>,

    /// Relocate the BPF programs with the type information in PATH
    #[arg(long, value_name = "PATH")]
    pub btf_custom_path: Option<PathBuf>,

    /// Load with a BPF token of the BPF file system at PATH
    #[arg(long, value_name = "PATH")]
    pub bpf_token_path: Option<PathBuf>,
}

/// The output format of a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopologyFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl LibbpfOpts {
    /// Converts the options, and reads the file of `--kconfig`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not UTF-8.
    pub fn open_options(&self) -> Result<OpenOptions> {
        let kconfig = self.kconfig.as_ref().map(|path| {
            fs::read_to_string(path).with_context(|| format!("--kconfig {}", path.display()))
        });
        Ok(OpenOptions {
            relaxed_maps: self.relaxed_maps,
            pin_root_path: self.pin_root_path.clone(),
            btf_custom_path: self.btf_custom_path.clone(),
            bpf_token_path: self.bpf_token_path.clone(),
            kconfig: kconfig.transpose()?,
        })
    }
}

/// The definition of a scheduler's command line.
pub(super) fn command<S: Scheduler>() -> Command {
    Cli::<S::Opts>::command()
        .name(S::PROGRAM.name)
        .version(full_version(S::PROGRAM.version))
        .about(S::PROGRAM.about)
        .long_about(format!("{}.\n\n{}", S::PROGRAM.about, S::DESCRIPTION))
        .after_help("Exit status: 0 ended or unregistered, 1 not loaded, 2 ejected for an error.")
}

/// Parses a command line. The error may also be the text of `--help` or `--version`.
pub(super) fn parse<S: Scheduler>(
    args: impl IntoIterator<Item = OsString>,
) -> Result<Cli<S::Opts>, clap::Error> {
    let matches = command::<S>().try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches)
}

/// Writes to standard output, for options that only print.
pub(super) fn write(text: &str) -> Result<Status> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        // `| head`: the reader has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Status::Clean),
        result => result.map(|()| Status::Clean).context("standard output"),
    }
}

/// Prints the text of `--help` or `--version`, in colour if clap enables it.
pub(super) fn print(text: &clap::Error) -> Result<Status> {
    match text.print() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Status::Clean),
        result => result.map(|()| Status::Clean).context("standard output"),
    }
}

/// What the run loop itself changes on the machine: see `rcu.rs` and `class_switch.rs`.
const RCU_SETTING: &str =
    "Where the kernel reserves no CPU time for sched_ext tasks (6.12 does not, 7.2 does), its \
     thread rcu_preempt or rcu_sched runs as SCHED_FIFO with priority 1 while the scheduler is \
     loaded, as with the boot option rcutree.kthread_prio=1. Otherwise tasks that are forked \
     while the scheduler is being enabled or disabled could hang the machine. After kill -9 the \
     thread stays real-time. For the same reason, on every kernel, a thread of the scheduler \
     switches the tasks to their new class itself if the kernel takes longer than a second.";

pub(super) fn generate<S: Scheduler>(what: Generate) -> Result<Status> {
    let settings = [S::MACHINE_SETTINGS, &[RCU_SETTING]].concat();
    let sections: [Section<'_>; 5] = [
        (
            "CPU HOTPLUG",
            &[
                "When a CPU goes offline or online, a scheduler that cannot handle it while \
               attached restarts itself, with the same options. In between, the kernel's scheduler \
               runs all tasks.",
            ],
        ),
        (
            "EXIT STATUS",
            &[
                "0: Ended by SIGINT, SIGTERM or SIGHUP, by the kernel's SysRq-S, or otherwise \
                 unregistered.",
                "1: Wrong usage, or the scheduler could not be loaded. One line on standard \
                 error says why.",
                "2: Ended with an error while it ran. The kernel's debug dump and the reason are \
                 on standard error.",
            ],
        ),
        ("MACHINE SETTINGS", &settings),
        (
            "EMERGENCY EXIT",
            &[
                "SysRq-S, the capital letter (echo S > /proc/sysrq-trigger, or Alt-SysRq-Shift-S \
               at the keyboard), unloads any sched_ext scheduler at once.",
            ],
        ),
        ("SEE ALSO", &["sched(7), nice(1)"]),
    ];
    let mut text = Vec::new();
    cli::generate(what, &mut command::<S>(), "8", &sections, &mut text)?;
    write(&String::from_utf8_lossy(&text))
}

/// The common options that scx_loader may pass to a scheduler. Most of the other options open files
/// or sockets, print, or do not run the scheduler.
const PASSED: [&str; 2] = ["partial", "verbose"];

/// Prints the description for scx_loader and scxctl. As a check, this parses the arguments of all
/// modes, and those for following the power profile.
pub(super) fn manifest<S: Scheduler>() -> Result<Status> {
    let own = S::Opts::augment_args(Command::new(""));
    let common = CommonOpts::augment_args(Command::new(""));
    let passed = common
        .get_arguments()
        .filter(|arg| PASSED.contains(&arg.get_id().as_str()));
    let manifest = Manifest {
        name: S::PROGRAM.name.to_owned(),
        options: own.get_arguments().chain(passed).map(Into::into).collect(),
        modes: S::MODES.into(),
        power_profile_args: S::POWER_PROFILE_ARGS
            .map(|args| args.iter().map(ToString::to_string).collect()),
        kfuncs: S::KFUNCS.iter().map(ToString::to_string).collect(),
    };
    for (mode, args) in &manifest.modes {
        check::<S>(args).with_context(|| format!("the mode {mode}"))?;
    }
    // scx_loader adds these arguments to those of the mode auto, which has none.
    check::<S>(manifest.power_profile_args.iter().flatten()).context("power_profile_args")?;
    write(&(serde_json::to_string_pretty(&manifest)? + "\n"))
}

/// Checks arguments with the scheduler's own parser and [`Scheduler::config`].
fn check<'a, S: Scheduler>(args: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let line = std::iter::once(S::PROGRAM.name.into()).chain(args.into_iter().map(Into::into));
    let cli = parse::<S>(line).map_err(|error| anyhow!(cli::one_line(&error)))?;
    S::config(cli.own).map(drop)
}

pub(super) fn print_topology(format: TopologyFormat) -> Result<Status> {
    let topology = Topology::read(&HotplugToken::read(Path::new("/"))?)?;
    write(&match format {
        TopologyFormat::Text => topology.to_string(),
        TopologyFormat::Json => serde_json::to_string_pretty(&topology)? + "\n",
    })
}
