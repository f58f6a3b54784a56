// SPDX-License-Identifier: GPL-2.0-only
//! Fills a recording with records of the BPF side and with samples, for `scxtop trace` and for the
//! live views.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use scx_utils::time::monotonic_ns;

use crate::bpf::top_event;
use crate::collect::programs::Programs;

use super::machine::Machine;
use super::recording::{Limits, Recording};
use super::samples::Sampler;

/// Interval of samples.
const SAMPLE: Duration = Duration::from_millis(100);

/// A recording in progress.
pub(crate) struct Gathering {
    recording: Recording,
    sampler: Sampler,
    next_sample: Instant,
    /// The records of the last reading. The vector is kept, so that its memory is reused.
    events: Vec<top_event>,
    /// Number of records that were lost before the recording began.
    lost_before: u64,
}

impl Gathering {
    /// Begins to record. `stats_socket` is the socket of the scheduler's statistics.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn begin(
        programs: &mut Programs<'_>,
        limits: Limits,
        stats_socket: &Path,
    ) -> Result<Self> {
        let mut recording = Recording::new(Machine::now(), limits);
        recording.notice(programs.notices());
        // Discard what an earlier recording has left in the rings.
        let mut events = Vec::new();
        programs.events(&mut events);
        let gathering = Self {
            recording,
            sampler: Sampler::new(Path::new("/"), stats_socket),
            next_sample: Instant::now(),
            events,
            lost_before: programs.lost_events()?,
        };
        programs.set_tracing(true)?;
        Ok(gathering)
    }

    /// Takes what was recorded since the last call, and a sample if it is due.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn poll(&mut self, programs: &mut Programs<'_>) -> Result<()> {
        self.take(programs)?;
        if Instant::now() >= self.next_sample {
            self.recording
                .sample(monotonic_ns()?, self.sampler.sample());
            self.next_sample = Instant::now() + SAMPLE;
        }
        Ok(())
    }

    /// Whether a wakeup was late, or the recording is full.
    pub(crate) fn is_over(&self) -> bool {
        self.recording.late().is_some() || self.recording.is_full()
    }

    /// Ends the recording.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn end(mut self, programs: &mut Programs<'_>) -> Result<Recording> {
        programs.set_tracing(false)?;
        while self.take(programs)? {}
        Ok(self.recording)
    }

    /// Takes records. Returns whether there were any.
    fn take(&mut self, programs: &mut Programs<'_>) -> Result<bool> {
        programs.events(&mut self.events);
        let lost = programs.lost_events()?;
        self.recording.push(&self.events, lost - self.lost_before);
        Ok(!self.events.is_empty())
    }
}
