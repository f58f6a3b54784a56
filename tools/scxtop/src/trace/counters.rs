// SPDX-License-Identifier: GPL-2.0-only
//! The counter tracks of sampled values.

use std::collections::{BTreeMap, VecDeque};

use super::proto::TracePacket;
use super::samples::{Counter, Sample};
use super::tracks::{describe, Track};

/// A change of a counter.
#[derive(Clone, Copy, Debug)]
struct Change {
    time_ns: u64,
    counter: u32,
    value: f64,
}

/// The sampled values of a trace. Only changes are kept.
#[derive(Debug, Default)]
pub(super) struct Counters {
    numbers: BTreeMap<Counter, u32>,
    /// The last value of each counter.
    last: Vec<f64>,
    /// The value of each counter before the first change that is kept.
    before: Vec<Option<f64>>,
    changes: VecDeque<Change>,
}

impl Counters {
    /// Adds a sample. It must not be older than the samples added before.
    pub(super) fn add(&mut self, time_ns: u64, sample: Sample) {
        for (name, value) in sample {
            let next = u32::try_from(self.last.len()).unwrap_or(u32::MAX);
            let counter = *self.numbers.entry(name).or_insert(next);
            match self.last.get_mut(counter as usize) {
                Some(last) if *last == value => continue,
                Some(last) => *last = value,
                None => {
                    self.last.push(value);
                    self.before.push(None);
                }
            }
            self.changes.push_back(Change {
                time_ns,
                counter,
                value,
            });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Forgets changes before `time_ns`, but not the values at that time.
    pub(super) fn forget_before(&mut self, time_ns: u64) {
        while let Some(change) = self.changes.front().filter(|c| c.time_ns < time_ns) {
            self.before[change.counter as usize] = Some(change.value);
            self.changes.pop_front();
        }
    }

    /// Describes the tracks and their parents, except the parents of frequencies, which are the
    /// tracks of CPUs.
    pub(super) fn describe(&self, out: &mut Vec<TracePacket>) {
        let is_event = |counter: &Counter| matches!(counter, Counter::Event(_));
        let is_statistic = |counter: &Counter| matches!(counter, Counter::Statistic(_));
        if self.numbers.keys().any(is_statistic) {
            out.push(describe(Track::Statistics.top("scheduler statistics")));
        }
        if self.numbers.keys().any(is_event) {
            out.push(describe(Track::Events.top("sched_ext events")));
        }
        for (counter, &number) in &self.numbers {
            let (parent, name, unit) = match counter {
                Counter::Frequency(cpu) => (Track::Cpu(*cpu), "frequency", Some("kHz")),
                Counter::Statistic(name) => (Track::Statistics, name.as_str(), None),
                Counter::Event(name) => (Track::Events, name.as_str(), None),
            };
            let track = Track::Sampled(number);
            out.push(describe(track.counter(parent, name, unit, number)));
        }
    }

    /// CPUs with a frequency.
    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.numbers.keys().filter_map(|counter| match counter {
            Counter::Frequency(cpu) => Some(*cpu),
            _ => None,
        })
    }

    /// Writes the changes that are kept. The values before these changes are written at the start
    /// of the trace.
    pub(super) fn packets(&self, start_ns: u64, out: &mut Vec<TracePacket>) {
        for (number, value) in (0..).zip(&self.before) {
            if let Some(value) = value {
                out.push(Track::Sampled(number).measure(*value).at(start_ns));
            }
        }
        for change in &self.changes {
            let track = Track::Sampled(change.counter);
            out.push(track.measure(change.value).at(change.time_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::Data;
    use super::*;

    /// Times, tracks and values.
    fn written(counters: &Counters) -> Vec<(u64, u64, f64)> {
        let mut out = Vec::new();
        counters.packets(100, &mut out);
        let values = out.into_iter().map(|packet| match packet.data {
            Some(Data::TrackEvent(event)) => (
                packet.timestamp.unwrap(),
                event.track_uuid & u64::from(u32::MAX),
                event.double_counter_value.unwrap(),
            ),
            other => panic!("{other:?}"),
        });
        values.collect()
    }

    #[test]
    fn changes_are_kept() {
        let mut counters = Counters::default();
        let sample = |a, b| vec![(Counter::Frequency(0), a), (Counter::Frequency(1), b)];
        counters.add(10, sample(1.0, 2.0));
        counters.add(110, sample(1.0, 3.0));
        counters.add(120, sample(1.0, 3.0));
        counters.add(130, sample(4.0, 3.0));
        let all = [(10, 0, 1.0), (10, 1, 2.0), (110, 1, 3.0), (130, 0, 4.0)];
        assert_eq!(written(&counters), all);
        counters.forget_before(111);
        let rest = [(100, 0, 1.0), (100, 1, 3.0), (130, 0, 4.0)];
        assert_eq!(written(&counters), rest);
    }
}
