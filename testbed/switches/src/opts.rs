// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::Parser;
use scx_utils::cpumask::Cpumask;

use crate::recorder::{CommFilter, Settings, PIDS_MAX};

/// Traces which task ran where and for how long, from the kernel's context switches.
///
/// Prints a line for each run of a thread on a CPU: its start (seconds of the monotonic clock),
/// CPU, thread, name, length (us), and how it ended: "preempted" (still runnable: preempted, slice
/// expired, or yielded), "slept", "exited", or "running" at the end of the recording. Runs that
/// began before the recording are omitted. If several of --pid, --comm and --cpu are given, all
/// must match.
///
/// Prints "recording" on standard error when it starts, and at the end the number of runs that
/// were lost because the ring was full. SIGINT, SIGTERM and SIGHUP stop it; the results are
/// printed.
///
/// Exit status: 0 done, 1 recording is not possible, 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub(crate) struct Opts {
    /// Only this thread, or the threads of this process; up to 64 times
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub pid: Vec<u32>,

    /// Only threads of this name, or with this prefix if it ends with `*`
    #[arg(long, value_name = "NAME", value_parser = CommFilter::parse)]
    pub comm: Option<CommFilter>,

    /// Only these CPUs, such as 0-3,8. Once a thread has run on one of them, its wakeups are
    /// counted, on whichever CPU they occur
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpu: Option<Cpumask>,

    /// Record idle CPUs too, as threads with id 0
    #[arg(long)]
    pub idle: bool,

    /// Also count system calls, for the summary
    #[arg(long)]
    pub syscalls: bool,

    /// Print only a table of threads at the end: complete runs, their CPU time and lengths,
    /// wakeups, switches
    #[arg(long)]
    pub summary: bool,

    /// Write JSON: an object on a line for each run ("type":"run") and finally the summary
    /// ("type":"summary"); with --summary, only the summary; times in ns
    #[arg(long)]
    pub json: bool,

    /// How long to record, from 0.1 s to a week [default: until a signal]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    #[arg(value_parser = scx_utils::cli::duration)]
    pub seconds: Option<Duration>,

    /// Size of the ring, a power of two from 4 to 1048576; a run takes 64 bytes
    #[arg(
        long,
        value_name = "KIB",
        default_value = "4096",
        allow_negative_numbers = true,
        value_parser = ring_kib
    )]
    pub ring_kib: u32,
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
        let conflict = |text: String| Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        if self.pid.len() > PIDS_MAX {
            return conflict(format!("--pid can be given {PIDS_MAX} times at most\n"));
        }
        if self.syscalls && !self.summary && !self.json {
            let text = "--syscalls counts for the summary: add --summary or --json\n";
            return conflict(text.into());
        }
        Ok(self)
    }

    /// What to record.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            pids: self.pid.clone(),
            comm: self.comm.clone().unwrap_or_default(),
            cpus: self.cpu.clone(),
            idle: self.idle,
            syscalls: self.syscalls,
            ring_bytes: self.ring_kib * 1024,
        }
    }
}

/// Minimum and maximum size of the ring, KiB. The minimum is a page of 4 KiB. The maximum is 1 GiB,
/// a quarter of the range of the map's 32-bit size.
const RING_KIB: std::ops::RangeInclusive<u32> = 4..=1_048_576;

fn ring_kib(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(kib) if RING_KIB.contains(&kib) && kib.is_power_of_two() => Ok(kib),
        _ => Err(format!(
            "not a power of two from {} to {}",
            RING_KIB.start(),
            RING_KIB.end()
        )),
    }
}

fn cpus(text: &str) -> Result<Cpumask, String> {
    let nr_cpu_ids = libbpf_rs::num_possible_cpus().map_err(|error| error.to_string())?;
    let cpus = Cpumask::from_list(text, nr_cpu_ids).map_err(|error| error.to_string())?;
    if cpus.is_empty() {
        return Err("contains no CPU of this machine".into());
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Opts, String> {
        Opts::try_parse_from([&["scx_switches"], args].concat())
            .and_then(Opts::validate)
            .map_err(|error| scx_utils::cli::one_line(&error))
    }

    #[test]
    fn default_records_everything_until_a_signal() {
        let opts = parse(&[]).unwrap();
        let settings = opts.settings();
        assert_eq!(opts.seconds, None);
        assert!(settings.pids.is_empty());
        assert_eq!(settings.cpus, None);
        assert_eq!(settings.comm, CommFilter::default());
        assert!(!settings.idle && !settings.syscalls);
        assert_eq!(settings.ring_bytes, 4 << 20);
    }

    #[test]
    fn seconds_are_limited() {
        for (text, seconds) in [("0.1", 0.1), ("5", 5.0), ("604800", 604_800.0)] {
            let opts = parse(&["--seconds", text]).unwrap();
            assert_eq!(opts.seconds, Some(Duration::from_secs_f64(seconds)));
        }
        for text in ["0", "0.09", "-1", "604801", "nan", "inf", "", "1s"] {
            assert!(parse(&["--seconds", text]).is_err(), "{text}");
        }
    }

    #[test]
    fn rings_are_powers_of_two() {
        for (text, bytes) in [("4", 4096), ("1048576", 1 << 30)] {
            let opts = parse(&["--ring-kib", text]).unwrap();
            assert_eq!(opts.settings().ring_bytes, bytes);
        }
        for text in ["0", "2", "5", "-4", "2097152", "4k", "99999999999"] {
            assert!(parse(&["--ring-kib", text]).is_err(), "{text}");
        }
    }

    #[test]
    fn number_of_pids_is_limited() {
        assert_eq!(parse(&["--pid", "1", "--pid=2"]).unwrap().pid, [1, 2]);
        let some = vec!["--pid=1"; PIDS_MAX];
        assert!(parse(&some).is_ok());
        let error = parse(&[&some[..], &["--pid=1"]].concat()).unwrap_err();
        assert_eq!(error, "--pid can be given 64 times at most");
        for text in ["0", "-1", "4194305", "x"] {
            assert!(parse(&["--pid", text]).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_must_exist() {
        let cpus = parse(&["--cpu", "0"]).unwrap().cpu.unwrap();
        assert_eq!(cpus.to_list(), "0");
        for text in ["none", "", "0-", "1000000"] {
            assert!(parse(&["--cpu", text]).is_err(), "{text}");
        }
    }

    #[test]
    fn system_calls_need_a_summary() {
        assert!(parse(&["--syscalls"]).unwrap_err().contains("--summary"));
        for with in ["--summary", "--json"] {
            assert!(parse(&["--syscalls", with]).is_ok(), "{with}");
        }
    }
}
