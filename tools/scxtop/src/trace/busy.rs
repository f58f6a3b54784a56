// SPDX-License-Identifier: GPL-2.0-only
//! How busy each CPU is, in windows of 10 ms, from the context switches.

use std::collections::BTreeMap;

use crate::bpf::top_event;

use super::event::{kind, Kind};
use super::proto::TracePacket;
use super::tracks::Track;

/// Length of a window.
const WINDOW_NS: u64 = 10_000_000;

/// A CPU.
#[derive(Debug)]
struct Cpu {
    /// The time until which the busy time is known.
    until_ns: u64,
    /// Start of the window.
    window_ns: u64,
    /// Busy time in the window.
    busy_ns: u64,
    is_busy: bool,
    /// The last value that was written, percent.
    written: Option<f64>,
}

/// All CPUs with context switches.
#[derive(Debug)]
pub(super) struct Busy {
    start_ns: u64,
    cpus: BTreeMap<u32, Cpu>,
}

impl Busy {
    pub(super) fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            cpus: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, event: &top_event, out: &mut Vec<TracePacket>) {
        if kind(event) != Some(Kind::Switch) {
            return;
        }
        // Before its first switch, a CPU ran the task that this switch switches out.
        let cpu = self.cpus.entry(event.cpu).or_insert(Cpu {
            until_ns: self.start_ns,
            window_ns: self.start_ns,
            busy_ns: 0,
            is_busy: event.task.pid != 0,
            written: None,
        });
        cpu.advance(event.cpu, event.time_ns, out);
        cpu.is_busy = event.other.pid != 0;
    }

    pub(super) fn finish(&mut self, end_ns: u64, out: &mut Vec<TracePacket>) {
        for (&id, cpu) in &mut self.cpus {
            cpu.advance(id, end_ns, out);
            let len_ns = end_ns.saturating_sub(cpu.window_ns);
            if len_ns > 0 {
                cpu.write(id, len_ns, out);
            }
        }
    }
}

impl Cpu {
    fn advance(&mut self, id: u32, to_ns: u64, out: &mut Vec<TracePacket>) {
        while to_ns >= self.window_ns + WINDOW_NS {
            let end_ns = self.window_ns + WINDOW_NS;
            self.run(end_ns);
            self.write(id, WINDOW_NS, out);
            self.busy_ns = 0;
            self.window_ns = end_ns;
        }
        self.run(to_ns);
    }

    fn run(&mut self, to_ns: u64) {
        if self.is_busy {
            self.busy_ns += to_ns.saturating_sub(self.until_ns);
        }
        self.until_ns = self.until_ns.max(to_ns);
    }

    /// Writes the value of a window, if it differs from the value of the window before.
    fn write(&mut self, id: u32, len_ns: u64, out: &mut Vec<TracePacket>) {
        let percent = self.busy_ns as f64 * 100.0 / len_ns as f64;
        if self.written != Some(percent) {
            self.written = Some(percent);
            out.push(Track::Busy(id).measure(percent).at(self.window_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::Data;
    use super::super::synthetic::switch;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Times in ms and values.
    fn written(events: &[top_event], end_ns: u64) -> Vec<(u64, f64)> {
        let mut busy = Busy::new(0);
        let mut out = Vec::new();
        for event in events {
            busy.take(event, &mut out);
        }
        busy.finish(end_ns, &mut out);
        let values = out.into_iter().map(|packet| match packet.data {
            Some(Data::TrackEvent(event)) => (
                packet.timestamp.unwrap() / MS,
                event.double_counter_value.unwrap(),
            ),
            other => panic!("{other:?}"),
        });
        values.collect()
    }

    #[test]
    fn percent_of_each_window() {
        let events = [
            switch(12 * MS, 0, 0, 0, 7),
            switch(17 * MS, 0, 7, 1, 0),
            switch(20 * MS, 0, 0, 0, 7),
            switch(45 * MS, 0, 7, 1, 0),
        ];
        let expected = [(0, 0.0), (10, 50.0), (20, 100.0), (40, 50.0), (50, 0.0)];
        assert_eq!(written(&events, 90 * MS), expected);
        // The last window is shorter.
        assert_eq!(written(&events[..3], 25 * MS)[2..], [(20, 100.0)]);
    }

    #[test]
    fn a_cpu_was_busy_before_its_first_switch() {
        let events = [switch(15 * MS, 0, 7, 1, 0)];
        let expected = [(0, 100.0), (10, 50.0), (20, 0.0)];
        assert_eq!(written(&events, 30 * MS), expected);
    }
}
