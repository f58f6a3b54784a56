// SPDX-License-Identifier: GPL-2.0-only
//! The records that are kept in memory.

use std::collections::VecDeque;

use crate::bpf::top_event;

/// Maximum number of records, which take 1 GiB of memory. Perfetto's user interface can open about
/// as many.
pub(super) const RECORDS_MAX: usize = 1 << 23;

/// A period in which records were lost, maybe those of some CPUs only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gap {
    /// The time of the newest record of the reading before.
    pub from_ns: u64,
    /// The time of the newest record when the loss was noticed.
    pub time_ns: u64,
    pub nr_lost: u64,
}

/// Keeps all records, or those of the last `length_ns`, but not more than [`RECORDS_MAX`].
#[derive(Debug, Default)]
pub(super) struct Window {
    /// `None` if all records are kept.
    length_ns: Option<u64>,
    records: VecDeque<top_event>,
    /// Records that the last call of [`Self::add`] has held back, in the order of their times.
    recent: Vec<top_event>,
    newest_ns: u64,
    gaps: VecDeque<Gap>,
    is_full: bool,
}

impl Window {
    pub(super) fn new(length_ns: Option<u64>) -> Self {
        Self {
            length_ns,
            ..Self::default()
        }
    }

    /// Adds the records of one reading of the rings. Records come out of order, even across
    /// readings, because the rings of the CPUs are read one after the other. So records that are
    /// newer than all records of earlier readings are held back until the next reading. All other
    /// records are passed to `on_order`, in the order of their times, unless a record is so late
    /// that newer records were passed in an earlier call.
    pub(super) fn add(&mut self, records: &[top_event], mut on_order: impl FnMut(&top_event)) {
        let ordered_ns = self.newest_ns;
        let newest_ns = records.iter().map(|record| record.time_ns).max();
        self.newest_ns = self.newest_ns.max(newest_ns.unwrap_or(0));
        self.recent.extend_from_slice(records);
        // Sorts only pairs of a time and an index, and then moves each record once.
        self.recent.sort_by_cached_key(|record| record.time_ns);
        let nr = self.recent.partition_point(|r| r.time_ns <= ordered_ns);
        for record in self.recent.drain(..nr) {
            on_order(&record);
            if self.records.len() < RECORDS_MAX {
                self.records.push_back(record);
            } else if self.length_ns.is_some() {
                self.records.pop_front();
                self.records.push_back(record);
            } else {
                self.is_full = true;
            }
        }
        let start_ns = self.start_ns();
        while self.records.front().is_some_and(|r| r.time_ns < start_ns) {
            self.records.pop_front();
        }
        while self.gaps.front().is_some_and(|gap| gap.time_ns < start_ns) {
            self.gaps.pop_front();
        }
    }

    /// `nr_lost` records are missing from the reading that was last passed to [`Self::add`]. Before
    /// that reading, `from_ns` was the time of the newest record.
    pub(super) fn add_gap(&mut self, from_ns: u64, nr_lost: u64) {
        self.gaps.push_back(Gap {
            from_ns,
            time_ns: self.newest_ns,
            nr_lost,
        });
    }

    /// The time before which records are forgotten; 0 if all records are kept.
    pub(super) fn start_ns(&self) -> u64 {
        let length_ns = self.length_ns.unwrap_or(u64::MAX);
        self.newest_ns.saturating_sub(length_ns)
    }

    /// The time of the newest record.
    pub(super) fn newest_ns(&self) -> u64 {
        self.newest_ns
    }

    /// Whether a new record was dropped because there was no room for it.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// All records and gaps that are kept, in the order of their times.
    pub(super) fn finish(mut self) -> (Vec<top_event>, Vec<Gap>) {
        let mut records = Vec::from(self.records);
        records.append(&mut self.recent);
        // This is fast, because only records that came late are out of order.
        records.sort_by_key(|record| record.time_ns);
        (records, self.gaps.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::waking;
    use super::*;

    fn times(records: &[top_event]) -> Vec<u64> {
        records.iter().map(|record| record.time_ns).collect()
    }

    fn records(times: &[u64]) -> Vec<top_event> {
        times
            .iter()
            .map(|&time_ns| waking(time_ns, 0, 7, 9))
            .collect()
    }

    #[test]
    fn records_are_ordered_across_readings() {
        let mut window = Window::new(None);
        let mut seen = Vec::new();
        for batch in [&[10, 30, 20][..], &[25, 50, 40], &[], &[45]] {
            window.add(&records(batch), |record| seen.push(record.time_ns));
        }
        assert_eq!(seen, [10, 20, 25, 30, 40, 50, 45]);
        assert_eq!(times(&window.finish().0), [10, 20, 25, 30, 40, 45, 50]);
    }

    #[test]
    fn only_the_last_records_are_kept() {
        let mut window = Window::new(Some(100));
        window.add(&records(&[10, 20, 60]), |_| ());
        window.add_gap(0, 5);
        window.add(&records(&[110, 120]), |_| ());
        window.add(&records(&[130]), |_| ());
        window.add_gap(120, 6);
        let (kept, gaps) = window.finish();
        assert_eq!(times(&kept), [60, 110, 120, 130]);
        let gap = |from_ns, time_ns, nr_lost| Gap {
            from_ns,
            time_ns,
            nr_lost,
        };
        assert_eq!(gaps, [gap(0, 60, 5), gap(120, 130, 6)]);
    }
}
