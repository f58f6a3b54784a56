// SPDX-License-Identifier: GPL-2.0-only
//! A recording, independent of where the records come from.
//!
//! ```ignore
//! let output = Output::create(path)?;
//! let mut recording = Recording::new(Machine::now(), Limits::default());
//! let lost = programs.lost_events()?;
//! programs.set_tracing(true)?;
//! loop {
//!     programs.events(&mut events);
//!     recording.push(&events, programs.lost_events()? - lost);
//!     recording.sample(monotonic_ns()?, sampler.sample());
//! }
//! programs.set_tracing(false)?;
//! let summary = recording.finish(output)?;
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::bpf::top_event;

use super::contents::Contents;
use super::counters::Counters;
use super::event::comm;
use super::machine::Machine;
use super::output::Output;
use super::proto::{TracePacket, Value};
use super::samples::Sample;
use super::tracks::Track;
use super::wakeups::Wakeups;
use super::window::{Window, RECORDS_MAX};

/// How much of a recording is kept, and which wakeup ends it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Length of the trace. Older records are forgotten. `None` if no record is to be forgotten.
    pub window: Option<Duration>,
    /// The latency beyond which a wakeup ends the recording. `None` if no wakeup is to end it.
    pub latency: Option<Duration>,
}

/// A wakeup that took too long.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Late {
    pub time_ns: u64,
    pub cpu: u32,
    pub pid: u32,
    pub comm: String,
    pub latency_ns: u64,
}

impl Late {
    /// An event on scxtop's own track at the end of the latency.
    pub(super) fn packet(&self) -> TracePacket {
        let instant = Track::Own.instant("late wakeup");
        let instant = instant.with("task", Value::String(self.comm.clone()));
        let instant = instant.with("pid", Value::Uint(self.pid.into()));
        let instant = instant.with("cpu", Value::Uint(self.cpu.into()));
        let instant = instant.with("latency_ns", Value::Uint(self.latency_ns));
        instant.at(self.time_ns)
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { comm, pid, cpu, .. } = self;
        let ms = self.latency_ns as f64 / 1e6;
        write!(
            f,
            "{comm} ({pid}) waited {ms:.3} ms for CPU {cpu} after its wakeup"
        )
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    /// Records in the trace.
    pub events: usize,
    /// Records that are missing from the trace, because they were lost.
    pub lost: u64,
    /// Size of the file.
    pub bytes: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, lost, .. } = self;
        let mib = self.bytes as f64 / (1 << 20) as f64;
        write!(f, "{events} events, {lost} lost, {mib:.1} MiB")
    }
}

/// A recording.
#[derive(Debug)]
pub(crate) struct Recording {
    machine: Machine,
    window: Window,
    counters: Counters,
    notices: Vec<String>,
    nr_lost: u64,
    watch: Watch,
}

impl Recording {
    /// Begins a recording of `machine`.
    pub(crate) fn new(machine: Machine, limits: Limits) -> Self {
        Self {
            machine,
            window: Window::new(limits.window.map(ns)),
            counters: Counters::default(),
            notices: Vec::new(),
            nr_lost: 0,
            watch: Watch {
                limit_ns: limits.latency.map(ns),
                ..Watch::default()
            },
        }
    }

    /// Adds what the trace cannot show, and why.
    pub(crate) fn notice(&mut self, notices: &[String]) {
        self.notices.extend_from_slice(notices);
    }

    /// Adds the records of one reading of the rings. `nr_lost` records have been lost since the
    /// recording began.
    pub(crate) fn push(&mut self, records: &[top_event], nr_lost: u64) {
        let before_ns = self.window.newest_ns();
        self.window.add(records, |event| self.watch.take(event));
        if nr_lost > self.nr_lost {
            let newest_ns = self.window.newest_ns();
            self.watch.gaps_ns.push_back((before_ns, newest_ns));
            self.window.add_gap(before_ns, nr_lost - self.nr_lost);
            self.nr_lost = nr_lost;
        }
    }

    /// Adds sampled values, unless there are too many.
    pub(crate) fn sample(&mut self, time_ns: u64, sample: Sample) {
        if self.counters.len() < RECORDS_MAX {
            self.counters.add(time_ns, sample);
        }
        self.counters.forget_before(self.window.start_ns());
    }

    /// The first wakeup that took longer than the limit.
    pub(crate) fn late(&self) -> Option<&Late> {
        self.watch.late.as_ref()
    }

    /// Whether a new record was dropped because there was no room for it.
    pub(crate) fn is_full(&self) -> bool {
        self.window.is_full()
    }

    /// Writes the trace.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(crate) fn finish(self, output: Output) -> Result<Summary> {
        let contents = self.contents();
        let bytes = output.finish(|encoder| contents.write(Path::new("/"), encoder))?;
        Ok(Summary {
            events: contents.events.len(),
            lost: contents.nr_lost(),
            bytes,
        })
    }

    pub(super) fn contents(self) -> Contents {
        let (events, gaps) = self.window.finish();
        Contents {
            machine: self.machine,
            events,
            gaps,
            counters: self.counters,
            late: self.watch.late,
            notices: self.notices,
        }
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Finds the first late wakeup.
#[derive(Debug, Default)]
struct Watch {
    limit_ns: Option<u64>,
    wakeups: Wakeups<()>,
    /// Start and end of each period in which records were lost, and tasks may have run unseen.
    gaps_ns: VecDeque<(u64, u64)>,
    late: Option<Late>,
}

impl Watch {
    fn take(&mut self, event: &top_event) {
        let Some(limit_ns) = self.limit_ns.filter(|_| self.late.is_none()) else {
            return;
        };
        while let Some(&(start_ns, stop_ns)) = self.gaps_ns.front() {
            if event.time_ns <= start_ns {
                break;
            }
            self.wakeups.forget();
            if event.time_ns <= stop_ns {
                break;
            }
            self.gaps_ns.pop_front();
        }
        let woken = self.wakeups.take((), event);
        let Some(woken) = woken.filter(|woken| woken.latency_ns > limit_ns) else {
            return;
        };
        self.late = Some(Late {
            time_ns: event.time_ns,
            cpu: event.cpu,
            pid: event.other.pid,
            comm: comm(&event.other),
            latency_ns: woken.latency_ns,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{switch, waking};
    use super::*;

    const MS: u64 = 1_000_000;

    fn watching(window_ms: u64, limit_ms: u64) -> Recording {
        let limits = Limits {
            window: Some(Duration::from_millis(window_ms)),
            latency: Some(Duration::from_millis(limit_ms)),
        };
        Recording::new(Machine::default(), limits)
    }

    fn late_wakeup(nr_lost: u64) -> Option<Late> {
        let mut recording = watching(1000, 20);
        recording.push(&[switch(MS, 0, 0, 0, 9), waking(2 * MS, 0, 7, 9)], nr_lost);
        recording.push(&[switch(30 * MS, 0, 9, 0, 7)], nr_lost);
        assert_eq!(recording.late(), None);
        recording.push(&[], nr_lost);
        recording.late().cloned()
    }

    #[test]
    fn late_wakeups_are_found() {
        let late = late_wakeup(0).unwrap();
        let expected = "task7 (7) waited 28.000 ms for CPU 0 after its wakeup";
        assert_eq!(late.to_string(), expected);
        assert_eq!(late.time_ns, 30 * MS);
    }

    #[test]
    fn lost_records_do_not_make_a_wakeup_late() {
        assert_eq!(late_wakeup(1), None);
    }

    #[test]
    fn short_latencies_are_not_late() {
        let mut recording = watching(1000, 20);
        let events = [waking(2 * MS, 0, 7, 9), switch(22 * MS, 0, 9, 0, 7)];
        recording.push(&events, 0);
        recording.push(&[], 0);
        assert_eq!(recording.late(), None);
    }

    #[test]
    fn losses_outside_the_window_do_not_count() {
        let mut recording = watching(100, 20);
        recording.push(&[waking(MS, 0, 7, 9)], 5);
        recording.push(&[waking(200 * MS, 0, 7, 9)], 5);
        recording.push(&[waking(201 * MS, 0, 7, 9)], 7);
        assert_eq!(recording.contents().nr_lost(), 2);
    }
}
