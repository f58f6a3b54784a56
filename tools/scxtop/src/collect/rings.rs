// SPDX-License-Identifier: GPL-2.0-only
//! The rings through which the BPF side passes the records of a trace: one for each CPU.

use std::mem::offset_of;
use std::sync::atomic::{fence, Ordering};

use anyhow::{Context as _, Result};
use libbpf_rs::MapCore as _;
use scx_utils::bpf::Words;
use scx_utils::zerocopy::{FromBytes as _, IntoBytes as _};

use crate::bpf::{top_event, top_ring, BpfSkel, OpenBpfSkel};

const WORD: usize = size_of::<u64>();
/// Words of a record, and of the positions in a ring.
const RECORD_WORDS: usize = size_of::<top_event>() / WORD;
const RING_WORDS: usize = size_of::<top_ring>() / WORD;
/// Indices of members, in words.
const IS_COMPLETE: usize = offset_of!(top_event, is_complete) / WORD;
const NR_RESERVED: usize = offset_of!(top_ring, nr_reserved) / WORD;
const NR_READ: usize = offset_of!(top_ring, nr_read) / WORD;

/// Minimum number of records in the ring of a CPU.
const RECORDS_MIN: u32 = 512;

/// The rings of all possible CPUs.
pub(super) struct Rings {
    /// Positions in the rings: a `struct top_ring` for each CPU.
    rings: Words,
    /// The records: `nr_records` for each CPU.
    events: Words,
    nr_cpus: usize,
    nr_records: usize,
}

impl Rings {
    /// Sets the sizes of the maps, which take at most `bytes` bytes in total, or more if the
    /// rings have their minimum size ([`records_per_cpu`]).
    ///
    /// # Errors
    ///
    /// If the rings would have more records than a map can have.
    pub(super) fn prepare(opened: &mut OpenBpfSkel<'_>, bytes: u32, nr_cpus: usize) -> Result<()> {
        let nr_cpus = u32::try_from(nr_cpus)?;
        let nr_records = records_per_cpu(bytes, nr_cpus)?;
        let rodata = opened.maps.rodata_data.as_deref_mut();
        rodata.context("no rodata")?.ring_size = nr_records;
        let total = nr_records
            .checked_mul(nr_cpus)
            .context("the buffer is too large")?;
        opened.maps.rings.set_max_entries(nr_cpus)?;
        opened.maps.events.set_max_entries(total)?;
        Ok(())
    }

    /// Maps the rings.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    pub(super) fn map(skel: &BpfSkel<'_>) -> Result<Self> {
        let nr_cpus = usize::try_from(skel.maps.rings.max_entries())?;
        Ok(Self {
            rings: Words::map_array(&skel.maps.rings)?,
            events: Words::map_array(&skel.maps.events)?,
            nr_cpus,
            nr_records: usize::try_from(skel.maps.events.max_entries())? / nr_cpus.max(1),
        })
    }

    /// Moves the records of all CPUs to `records`: CPU by CPU, those of a CPU nearly in the order
    /// of their times.
    pub(super) fn drain(&self, records: &mut Vec<top_event>) {
        for cpu in 0..self.nr_cpus {
            self.drain_cpu(cpu, records);
        }
    }

    fn drain_cpu(&self, cpu: usize, records: &mut Vec<top_event>) {
        let position = |member| cpu * RING_WORDS + member;
        let get = |member| self.rings.get(position(member)).unwrap_or_default();
        let (nr_read, nr_reserved) = (get(NR_READ), get(NR_RESERVED));
        for nr in nr_read..nr_reserved {
            let slot = usize::try_from(nr % self.nr_records as u64);
            let record = slot.map(|slot| self.take(cpu * self.nr_records + slot));
            let Ok(Some(record)) = record else {
                break;
            };
            records.push(record);
            // The BPF side writes to the slot once it sees the new position.
            fence(Ordering::Release);
            self.rings.set(position(NR_READ), nr + 1);
        }
    }

    /// The record in this slot, which is cleared; `None` if the record is incomplete.
    fn take(&self, slot: usize) -> Option<top_event> {
        let first = slot * RECORD_WORDS;
        if self.events.get(first + IS_COMPLETE)? == 0 {
            return None;
        }
        // The other words are read after the flag.
        fence(Ordering::Acquire);
        let mut words = [0; RECORD_WORDS];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.events.get(first + index)?;
        }
        self.events.set(first + IS_COMPLETE, 0);
        top_event::read_from_bytes(words.as_bytes()).ok()
    }
}

/// The number of records in the ring of a CPU, a power of two. The rings of all CPUs together take
/// at most `bytes` bytes. However, each ring has at least [`RECORDS_MIN`] records.
fn records_per_cpu(bytes: u32, nr_cpus: u32) -> Result<u32> {
    let of_cpu = bytes / u32::try_from(size_of::<top_event>())? / nr_cpus.max(1);
    Ok(1 << of_cpu.max(RECORDS_MIN).ilog2())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    /// Rings with `nr_records` records for each of two CPUs. Also returns a second mapping of the
    /// same memory, for the BPF side.
    fn rings(nr_records: usize) -> (Rings, Rings) {
        let map = |words: usize| {
            let file = tempfile::tempfile().unwrap();
            let bytes = words * WORD;
            file.set_len(bytes as u64).unwrap();
            let map = || Words::map_fd(file.as_fd(), bytes).unwrap();
            (map(), map())
        };
        let (rings, events) = (map(2 * RING_WORDS), map(2 * nr_records * RECORD_WORDS));
        let new = |rings, events| Rings {
            rings,
            events,
            nr_cpus: 2,
            nr_records,
        };
        (new(rings.0, events.0), new(rings.1, events.1))
    }

    impl Rings {
        /// Reserves a slot for a record of this CPU, as BPF programs do.
        fn reserve(&self, cpu: usize) -> usize {
            let position = cpu * RING_WORDS + NR_RESERVED;
            let nr = self.rings.get(position).unwrap();
            self.rings.set(position, nr + 1);
            cpu * self.nr_records + usize::try_from(nr).unwrap() % self.nr_records
        }

        /// Writes a record to the slot, and completes it.
        fn write(&self, slot: usize, time_ns: u64) {
            let first = slot * RECORD_WORDS;
            let time = offset_of!(top_event, time_ns) / WORD;
            self.events.set(first + time, time_ns);
            self.events.set(first + IS_COMPLETE, 1);
        }

        fn times(&self) -> Vec<u64> {
            let mut records = Vec::new();
            self.drain(&mut records);
            records.iter().map(|record| record.time_ns).collect()
        }
    }

    #[test]
    fn records_are_read_once_and_in_order() {
        let (ours, bpf) = rings(4);
        for round in 0..5 {
            for nr in 0..3 {
                bpf.write(bpf.reserve(1), 10 * round + nr);
            }
            bpf.write(bpf.reserve(0), 100 + round);
            let times = [100 + round, 10 * round, 10 * round + 1, 10 * round + 2];
            assert_eq!(ours.times(), times);
            assert!(ours.times().is_empty());
        }
        let read = ours.rings.get(RING_WORDS + NR_READ);
        assert_eq!(read, bpf.rings.get(RING_WORDS + NR_RESERVED));
    }

    #[test]
    fn an_incomplete_record_holds_up_its_cpu_only() {
        let (ours, bpf) = rings(4);
        let interrupted = bpf.reserve(0);
        bpf.write(bpf.reserve(0), 2);
        bpf.write(bpf.reserve(1), 3);
        assert_eq!(ours.times(), [3]);
        bpf.write(interrupted, 1);
        assert_eq!(ours.times(), [1, 2]);
    }

    #[test]
    fn sizes_of_rings() {
        assert_eq!(records_per_cpu(16 << 20, 4).unwrap(), 32_768);
        assert_eq!(records_per_cpu(16 << 20, 1).unwrap(), 131_072);
        assert_eq!(records_per_cpu(16 << 20, 64).unwrap(), 2048);
        assert_eq!(records_per_cpu(1 << 20, 512).unwrap(), RECORDS_MIN);
        assert_eq!(records_per_cpu(0, 4).unwrap(), RECORDS_MIN);
    }

    #[test]
    fn records_consist_of_words() {
        assert_eq!(size_of::<top_event>() % WORD, 0);
        assert_eq!(size_of::<top_ring>(), 128);
    }
}
