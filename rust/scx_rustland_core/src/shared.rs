// SPDX-License-Identifier: GPL-2.0-only
//! The memory that both sides map (`struct rl_shared`), for exchanging state without system
//! calls.

use std::mem::offset_of;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{fence, AtomicU64, Ordering};

use anyhow::{ensure, Context as _, Result};
use libbpf_rs::{MapCore, MapHandle};
use memmap2::{MmapOptions, MmapRaw};

use crate::intf::{rl_shared, RL_CPUS_MAX, RL_CPU_WORDS};
use crate::Cpus;

/// The section that contains only `struct rl_shared`.
pub(crate) const SECTION: &str = ".data.rl_shared";

#[derive(Debug)]
pub(crate) struct Shared {
    memory: MmapRaw,
}

/// Accessors of the words of `struct rl_shared` that user space uses.
macro_rules! words {
    ($($name:ident),*) => {
        $(fn $name(&self) -> &AtomicU64 {
            self.word(offset_of!(rl_shared, $name))
        })*
    };
}

impl Shared {
    pub(crate) fn map(section: &MapHandle) -> Result<Self> {
        let size = usize::try_from(section.value_size())?;
        ensure!(size >= size_of::<rl_shared>(), "{SECTION} is too small");
        let memory = MmapOptions::new()
            .len(size)
            .map_raw(section.as_fd().as_raw_fd());
        Ok(Self {
            memory: memory.context("cannot map the memory shared with BPF")?,
        })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + size_of::<u64>() <= size_of::<rl_shared>());
        // SAFETY: the word is within the mapping, whose size `map` checks and which lives as long
        // as `self`. It is aligned, since the mapping is page-aligned and the struct has only u64
        // members. The BPF side accesses whole words.
        unsafe { AtomicU64::from_ptr(self.memory.as_mut_ptr().add(offset).cast()) }
    }

    words!(
        nr_sent,
        nr_cycles,
        nr_waiting,
        nr_failed,
        seen,
        mode,
        vtime_floor,
        is_sleeping,
        nr_drained,
        nr_spare,
        hotplug_seq,
        free_cpu,
        own_cpu,
        nr_stalls,
        is_slow
    );

    /// Counts a decision, which must be in the ring already.
    pub(crate) fn sent(&self) {
        let nr = self.nr_sent().load(Ordering::Relaxed);
        self.nr_sent().store(nr + 1, Ordering::Release);
    }

    /// Number of decisions sent, and number of decisions drained.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let drained = self.nr_drained().load(Ordering::Acquire);
        (self.nr_sent().load(Ordering::Relaxed), drained)
    }

    /// Notes that the policy thread is awake.
    pub(crate) fn wake_up(&self) {
        if self.is_sleeping().load(Ordering::Relaxed) != 0 {
            self.is_sleeping().store(0, Ordering::Relaxed);
        }
    }

    /// Notes that the policy thread has handled all events.
    pub(crate) fn cycle(&self) {
        let nr = self.nr_cycles().load(Ordering::Relaxed);
        self.nr_cycles().store(nr + 1, Ordering::Relaxed);
    }

    /// Notes that the policy has read the record of this enqueue.
    pub(crate) fn set_seen(&self, enq_seq: u64) {
        self.seen().store(enq_seq, Ordering::Relaxed);
    }

    /// Publishes the number of tasks that the policy holds.
    pub(crate) fn set_nr_waiting(&self, nr: u64) {
        self.nr_waiting().store(nr, Ordering::Relaxed);
    }

    /// Publishes the policy's mode, a number that the policy defines.
    pub(crate) fn set_mode(&self, mode: u64) {
        self.mode().store(mode, Ordering::Relaxed);
    }

    /// Publishes the minimum vtime of a task that wakes up with a standing decision.
    pub(crate) fn set_vtime_floor(&self, vtime: u64) {
        self.vtime_floor().store(vtime, Ordering::Relaxed);
    }

    pub(crate) fn policy_mode(&self) -> u64 {
        self.mode().load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.nr_waiting().load(Ordering::Relaxed)
    }

    /// Counts a failed attempt to put a decision into the ring, which was full.
    pub(crate) fn note_failed(&self) {
        let nr = self.failed();
        self.nr_failed().store(nr + 1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) -> u64 {
        self.nr_failed().load(Ordering::Relaxed)
    }

    /// From now on, BPF wakes the policy thread for events. The caller checks for earlier events
    /// after this call.
    pub(crate) fn fall_asleep(&self) {
        self.is_sleeping().store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether BPF has woken the policy thread since `fall_asleep`.
    pub(crate) fn is_woken(&self) -> bool {
        self.is_sleeping().load(Ordering::SeqCst) == 0
    }

    /// See [`BpfScheduler::nr_spare`](crate::BpfScheduler::nr_spare).
    pub(crate) fn spare(&self) -> u64 {
        self.nr_spare().load(Ordering::Relaxed)
    }

    /// Number of stalls of user space so far.
    pub(crate) fn stalls(&self) -> u64 {
        self.nr_stalls().load(Ordering::Acquire)
    }

    /// Whether user space recently answered late.
    pub(crate) fn has_been_slow(&self) -> bool {
        self.is_slow().load(Ordering::Relaxed) != 0
    }

    /// A number that each CPU hotplug event increments.
    pub(crate) fn hotplug(&self) -> u64 {
        self.hotplug_seq().load(Ordering::Acquire)
    }

    /// Reads the idle CPUs, except those in `taken`.
    pub(crate) fn read_idle(&self, cpus: &mut Cpus, taken: &[u64]) {
        let begin = offset_of!(rl_shared, idle);
        for (idx, word) in cpus.idle_words_mut().iter_mut().enumerate() {
            let idle = self.word_at(begin, idx).load(Ordering::Relaxed);
            *word = idle & !taken.get(idx).unwrap_or(&0);
        }
        // If the policy thread woke up on an idle CPU, that CPU is free for one task as soon as the
        // thread sleeps. The word is the CPU's id + 1.
        if self.free_cpu().load(Ordering::Relaxed) != 0 {
            let cpu = self.free_cpu().swap(0, Ordering::Relaxed).wrapping_sub(1);
            cpus.set_idle(u32::try_from(cpu).unwrap_or(u32::MAX), true);
        }
    }

    /// Reads the vtime of each CPU's current task.
    pub(crate) fn read_running(&self, cpus: &mut Cpus) {
        let own_cpu = self.own_cpu().load(Ordering::Relaxed);
        let begin = offset_of!(rl_shared, running);
        cpus.note_running(u32::try_from(own_cpu).unwrap_or(u32::MAX), |cpu| {
            let idx = cpu.min(RL_CPUS_MAX as usize - 1);
            let word = self.word(begin + idx * size_of::<u64>());
            word.load(Ordering::Relaxed)
        });
    }

    pub(crate) fn is_online(&self, cpu: u32) -> bool {
        let word = usize::try_from(cpu / 64).unwrap_or(usize::MAX);
        let bits = self.word_at(offset_of!(rl_shared, online), word);
        bits.load(Ordering::Relaxed) >> (cpu % 64) & 1 != 0
    }

    /// Word `idx` of the bitmap at `begin`, or the last word if `idx` is out of range.
    fn word_at(&self, begin: usize, idx: usize) -> &AtomicU64 {
        self.word(begin + idx.min(RL_CPU_WORDS as usize - 1) * size_of::<u64>())
    }
}
