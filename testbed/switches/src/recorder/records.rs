// SPDX-License-Identifier: GPL-2.0-only
//! Records as Rust types.

use std::fmt;

use serde::{Serialize, Serializer};

use super::bpf_intf::{self, switches_counts, switches_run, SWITCHES_COMM_LEN};

/// The name of a thread: arbitrary bytes up to the first 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Comm(pub(crate) [u8; SWITCHES_COMM_LEN as usize]);

impl fmt::Display for Comm {
    /// Displays invalid UTF-8 and control characters as U+FFFD.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).replace(char::is_control, "\u{fffd}");
        f.pad(&name)
    }
}

impl Serialize for Comm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum End {
    /// The thread was still runnable: for example, it was preempted, its slice expired, or it
    /// yielded.
    Preempted,
    /// The thread went to sleep.
    Slept,
    /// The thread exited.
    Exited,
    /// The run had not ended at the end of the recording.
    Running,
}

impl End {
    /// The name of this end in the output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::Slept => "slept",
            Self::Exited => "exited",
            Self::Running => "running",
        }
    }
}

/// A run is the time from switching a thread in to switching it out.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Run {
    /// Start, ns of the monotonic clock.
    pub start_ns: u64,
    /// End, ns of the monotonic clock.
    pub stop_ns: u64,
    /// Length, ns.
    pub ran_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread.
    pub pid: u32,
    /// Its process.
    pub tgid: u32,
    /// The thread's name at the end of the run; if the run has not ended, at its start.
    pub comm: Comm,
    /// How the run ended.
    pub end: End,
    /// The kernel's priority: -1 for deadline threads, 0 to 99 for real-time threads, 120 for nice
    /// 0.
    pub prio: i32,
    /// The policy, `SCHED_*`: 0 (`SCHED_NORMAL`) for most threads, 7 for `SCHED_EXT`.
    pub policy: u32,
}

impl Run {
    /// A complete run; `None` if the record is invalid.
    pub(super) fn complete(record: &switches_run) -> Option<Self> {
        let end = match record.end {
            bpf_intf::SWITCHES_PREEMPTED => End::Preempted,
            bpf_intf::SWITCHES_SLEPT => End::Slept,
            bpf_intf::SWITCHES_EXITED => End::Exited,
            _ => return None,
        };
        Self::new(record, end, record.stop_ns)
    }

    /// A run that has not ended; `None` if the CPU has no recorded run. If the run started after
    /// `now_ns`, just before the programs were detached, its length is 0.
    pub(super) fn open(record: &switches_run, now_ns: u64) -> Option<Self> {
        let goes_on = record.end == bpf_intf::SWITCHES_RUNNING && record.start_ns > 0;
        goes_on.then(|| Self::new(record, End::Running, now_ns.max(record.start_ns)))?
    }

    fn new(record: &switches_run, end: End, stop_ns: u64) -> Option<Self> {
        Some(Self {
            start_ns: record.start_ns,
            stop_ns,
            ran_ns: stop_ns.checked_sub(record.start_ns)?,
            cpu: record.cpu,
            pid: record.task.pid,
            tgid: record.task.tgid,
            comm: Comm(record.task.comm),
            end,
            prio: record.prio,
            policy: record.policy,
        })
    }
}

/// The counters of a thread.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Thread {
    /// The thread.
    pub pid: u32,
    /// Its process.
    pub tgid: u32,
    /// The thread's last name.
    pub comm: Comm,
    /// Number of complete runs, including those that did not fit into the ring.
    pub runs: u64,
    /// Total length of the complete runs, ns.
    pub cpu_ns: u64,
    /// Number of wakeups, including the start of the thread.
    pub wakeups: u64,
    /// Number of times the thread was switched in.
    pub switches_in: u64,
    /// Number of times the thread was switched out because it slept or exited.
    pub voluntary: u64,
    /// Number of times the thread was switched out while it was runnable.
    pub involuntary: u64,
    /// Number of system calls; `None` if not counted.
    pub syscalls: Option<u64>,
}

impl Thread {
    pub(super) fn new(record: &switches_counts, syscalls: bool) -> Self {
        Self {
            pid: record.task.pid,
            tgid: record.task.tgid,
            comm: Comm(record.task.comm),
            runs: record.nr_runs,
            cpu_ns: record.cpu_ns,
            wakeups: record.nr_wakeups,
            switches_in: record.nr_switches_in,
            voluntary: record.nr_voluntary,
            involuntary: record.nr_involuntary,
            syscalls: syscalls.then_some(record.nr_syscalls),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A name of at most 16 bytes.
    pub(crate) fn comm(name: &str) -> Comm {
        let mut bytes = [0; SWITCHES_COMM_LEN as usize];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Comm(bytes)
    }

    /// A run on CPU 1 that took `ran_ns` and ended in sleep.
    pub(crate) fn run(pid: u32, name: &str, ran_ns: u64) -> Run {
        let start_ns = 3_000_004_005;
        Run {
            start_ns,
            stop_ns: start_ns + ran_ns,
            ran_ns,
            cpu: 1,
            pid,
            tgid: 10,
            comm: comm(name),
            end: End::Slept,
            prio: 120,
            policy: 0,
        }
    }

    /// A thread with two runs.
    pub(crate) fn thread(pid: u32, name: &str, cpu_ns: u64) -> Thread {
        Thread {
            pid,
            tgid: 10,
            comm: comm(name),
            runs: 2,
            cpu_ns,
            wakeups: 3,
            switches_in: 2,
            voluntary: 4,
            involuntary: 5,
            syscalls: Some(6),
        }
    }

    fn record(end: u32) -> switches_run {
        switches_run {
            start_ns: 1000,
            stop_ns: 3500,
            cpu: 3,
            end,
            ..switches_run::default()
        }
    }

    #[test]
    fn any_bytes_of_names_are_displayed() {
        assert_eq!(comm("hog").to_string(), "hog");
        assert_eq!(comm("").to_string(), "");
        assert_eq!(comm("0123456789abcdef").to_string(), "0123456789abcdef");
        assert_eq!(comm("a\nb\u{1b}[2J").to_string(), "a\u{fffd}b\u{fffd}[2J");
        let mut bytes = comm("hog\0old").0;
        assert_eq!(Comm(bytes).to_string(), "hog");
        bytes[0] = 0xff;
        assert_eq!(Comm(bytes).to_string(), "\u{fffd}og");
        assert_eq!(format!("{:<5}|", comm("hog")), "hog  |");
    }

    #[test]
    fn complete_run_has_a_length_and_an_end() {
        let run = Run::complete(&record(bpf_intf::SWITCHES_SLEPT)).unwrap();
        assert_eq!((run.ran_ns, run.cpu, run.end), (2500, 3, End::Slept));
        for nonsense in [bpf_intf::SWITCHES_UNWANTED, bpf_intf::SWITCHES_RUNNING, 99] {
            assert_eq!(Run::complete(&record(nonsense)), None);
        }
    }

    #[test]
    fn incomplete_run_ends_now() {
        let record = record(bpf_intf::SWITCHES_RUNNING);
        let run = Run::open(&record, 5000).unwrap();
        assert_eq!(
            (run.ran_ns, run.stop_ns, run.end),
            (4000, 5000, End::Running)
        );
        assert_eq!(Run::open(&record, 999).unwrap().ran_ns, 0);
        assert_eq!(Run::open(&switches_run::default(), 5000), None);
    }

    #[test]
    fn names_of_ends_are_consistent() {
        for end in [End::Preempted, End::Slept, End::Exited, End::Running] {
            let json = serde_json::to_string(&end).unwrap();
            assert_eq!(json, format!("{:?}", end.name()));
        }
    }
}
