//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::Parser;

use crate::locks::Sharing;

/// A mixed load that measures how it is scheduled.
///
/// Runs CPU hogs, sleepers, pairs that pass a byte through pipes, a thread that starts processes,
/// and optionally fork storms, periodic work, servers, clients of a server process, groups that
/// send messages and threads that change affinities, in parallel, and prints the figures of each.
/// A kind with count 0 is omitted. SIGINT and SIGTERM stop the run early; the figures are printed
/// even then.
///
/// Exit status: 0 done, 1 a load failed, 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub(crate) struct Opts {
    /// Threads that burn CPU all the time [default: one per CPU that this process
    /// may use]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=4096))]
    pub hogs: Option<u32>,

    /// Nice values of the hogs, separated by commas, used cyclically [default: that of this
    /// process]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    #[arg(value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub hog_nices: Vec<i32>,

    /// Threads that alternate between sleep and work
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=4096))]
    pub sleepers: u32,

    /// How long a sleeper sleeps
    #[arg(
        long,
        value_name = "US",
        default_value = "5000",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sleep_us: u32,

    /// How much CPU time a sleeper uses between two sleeps
    #[arg(
        long,
        value_name = "US",
        default_value = "200",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub work_us: u32,

    /// Pairs of threads that pass one byte back and forth through pipes
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1024))]
    pub pipes: u32,

    /// Pin both threads of each --pipes pair to one CPU
    #[arg(long)]
    pub pin_pipes: bool,

    /// Processes to start per second, one after the other; fewer if one takes longer
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub forks_per_s: u32,

    /// The program that --forks-per-s and --fork-storms start, without arguments [default: this
    /// one, which exits at once]
    #[arg(long, value_name = "PROGRAM")]
    pub fork_program: Option<PathBuf>,

    /// Threads that start processes one after the other, as fast as possible
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1024))]
    pub fork_storms: u32,

    /// Threads with a fixed amount of work in each period, such as the frames of a game
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1024))]
    pub periodic: u32,

    /// Period of the --periodic threads; 60 frames per second are 16667
    #[arg(
        long,
        value_name = "US",
        default_value = "16667",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub period_us: u32,

    /// CPU time that a --periodic thread uses in each period
    #[arg(
        long,
        value_name = "US",
        default_value = "6000",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub period_work_us: u32,

    /// Threads that serve requests of one client thread
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1024))]
    pub workers: u32,

    /// The CPU time of a request
    #[arg(
        long,
        value_name = "US",
        default_value = "1000",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub request_us: u32,

    /// Which workers share a lock; a request takes it five times, each time for a fifth of its CPU
    /// time
    #[arg(long, value_name = "SHARING", default_value = "none", value_enum)]
    pub locks: Sharing,

    /// Threads that send requests over Unix sockets to a server process
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=64))]
    pub clients: u32,

    /// The CPU time of a client per request
    #[arg(
        long,
        value_name = "US",
        default_value = "300",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub client_work_us: u32,

    /// The CPU time of the server per request
    #[arg(
        long,
        value_name = "US",
        default_value = "200",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub server_work_us: u32,

    /// Clients wait for a reply; by default, they send until the socket is full
    #[arg(long)]
    pub client_waits: bool,

    /// A client sends a request each period, and waits for the reply; 0: one after the other
    #[arg(
        long,
        value_name = "US",
        default_value = "0",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub client_period_us: u32,

    /// Groups of 4 senders and 4 receivers; each sender writes to each receiver of its group
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=256))]
    pub groups: u32,

    /// Threads that keep moving each other to other CPUs
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(..=4096))]
    pub movers: u32,

    /// How long to run, from 0.1 s to a week
    #[arg(
        long,
        value_name = "S",
        default_value = "10",
        allow_negative_numbers = true
    )]
    #[arg(value_parser = scx_utils::cli::duration)]
    pub seconds: Duration,

    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

impl Opts {
    /// Parses the command line.
    ///
    /// # Errors
    /// Errors of clap; also a request for the help text or the version.
    pub(crate) fn from_command_line() -> Result<Self, clap::Error> {
        Self::try_parse().and_then(Self::validate)
    }

    fn validate(self) -> Result<Self, clap::Error> {
        let counts = [
            self.sleepers,
            self.pipes,
            self.forks_per_s,
            self.fork_storms,
            self.periodic,
            self.workers,
            self.clients,
            self.groups,
            self.movers,
        ];
        if self.hogs == Some(0) && counts == [0; 9] {
            let text = "nothing to run: every count is 0\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use scx_utils::cli::one_line;

    use super::*;

    fn parse(args: &[&str]) -> Result<Opts, String> {
        Opts::try_parse_from([&["scx_load"], args].concat())
            .and_then(Opts::validate)
            .map_err(|error| one_line(&error))
    }

    #[test]
    fn options_are_consistent() {
        use clap::CommandFactory;
        Opts::command().debug_assert();
    }

    #[test]
    fn seconds_may_be_fractions() {
        let opts = parse(&["--seconds", "0.5"]).unwrap();
        assert_eq!(opts.seconds, Duration::from_millis(500));
    }

    #[test]
    fn values_out_of_range_are_errors_of_one_line() {
        for option in [
            "--hogs",
            "--sleepers",
            "--sleep-us",
            "--work-us",
            "--pipes",
            "--forks-per-s",
            "--hog-nices",
            "--fork-storms",
            "--periodic",
            "--period-us",
            "--period-work-us",
            "--workers",
            "--request-us",
            "--clients",
            "--client-work-us",
            "--server-work-us",
            "--client-period-us",
            "--groups",
            "--seconds",
        ] {
            for value in ["-21", "NaN", "inf", "1e30", "99999999999999999999", "x", ""] {
                let error = parse(&[option, value]).unwrap_err();
                assert!(error.contains(option), "{option} {value}: {error}");
                assert!(!error.contains('\n'), "{error}");
            }
        }
        for args in [["--seconds", "0"], ["--sleep-us", "0"], ["--hogs", "4097"]] {
            assert!(parse(&args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn empty_load_is_an_error() {
        let mut args = vec!["--hogs=0", "--sleepers=0", "--pipes=0", "--forks-per-s=0"];
        let error = parse(&args).unwrap_err();
        assert_eq!(error, "nothing to run: every count is 0");
        args.pop();
        assert!(parse(&args).is_ok());
    }
}
