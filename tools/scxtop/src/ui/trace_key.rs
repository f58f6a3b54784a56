// SPDX-License-Identifier: GPL-2.0-only
//! The key that starts and stops a trace.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::state::State;
use crate::collect::programs::Programs;
use crate::opts::LiveOpts;
use crate::trace::{Gathering, Limits, Output};

/// A trace ends by itself after this time.
const LONGEST: Duration = Duration::from_secs(30);

/// The trace that is being recorded or written.
pub(crate) struct TraceKey {
    dir: PathBuf,
    stats_socket: PathBuf,
    recording: Option<Running>,
    /// The thread that writes the last trace. It returns the message for the status line.
    writer: Option<JoinHandle<String>>,
}

struct Running {
    gathering: Gathering,
    start: Instant,
    output: Output,
    path: PathBuf,
}

impl TraceKey {
    pub(crate) fn new(opts: &LiveOpts) -> Self {
        Self {
            dir: opts.trace_dir.clone(),
            stats_socket: opts.stats_socket.clone(),
            recording: None,
            writer: None,
        }
    }

    /// Whether records arrive, which must be read before a ring is full.
    pub(crate) fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Starts a trace, or ends the trace that is being recorded.
    pub(crate) fn toggle(&mut self, programs: &mut Programs<'_>, state: &mut State) {
        let done = match self.recording.take() {
            Some(running) => self.end(running, programs, state),
            None if self.writer.is_some() => {
                state.message = Some("the last trace is still being written".into());
                return;
            }
            None => self.begin(programs, state),
        };
        if let Err(error) = done {
            state.recording = None;
            state.message = Some(format!("{error:#}"));
        }
    }

    /// Takes what was recorded, and updates the status line. Returns whether that line has changed.
    pub(crate) fn update(&mut self, programs: &mut Programs<'_>, state: &mut State) -> bool {
        if self.writer.as_ref().is_some_and(JoinHandle::is_finished) {
            let message = self.writer.take().and_then(|writer| writer.join().ok());
            state.message = message;
            return true;
        }
        let Some(running) = &mut self.recording else {
            return false;
        };
        let is_over = match running.gathering.poll(programs) {
            Ok(()) => running.gathering.is_over() || running.start.elapsed() > LONGEST,
            Err(_) => true,
        };
        if is_over {
            self.toggle(programs, state);
        }
        is_over
    }

    fn begin(&mut self, programs: &mut Programs<'_>, state: &mut State) -> Result<()> {
        let path = unused(&self.dir);
        let output = Output::create(&path)?;
        let gathering = Gathering::begin(programs, Limits::default(), &self.stats_socket)?;
        state.message = None;
        state.recording = Some(format!("{}, a ends it", path.display()));
        self.recording = Some(Running {
            gathering,
            start: Instant::now(),
            output,
            path,
        });
        Ok(())
    }

    /// Writes the file in a thread, since a long trace takes a while.
    fn end(
        &mut self,
        running: Running,
        programs: &mut Programs<'_>,
        state: &mut State,
    ) -> Result<()> {
        let Running { output, path, .. } = running;
        let recording = running.gathering.end(programs)?;
        state.recording = None;
        state.message = Some(format!("writing {} …", path.display()));
        self.writer = Some(std::thread::spawn(move || {
            let path = path.display();
            match recording.finish(output) {
                Ok(summary) => format!("wrote {path}: {summary}"),
                Err(error) => format!("{error:#}"),
            }
        }));
        Ok(())
    }

    /// Waits until the last trace is written. Returns the message of its writer.
    pub(crate) fn finish(self) -> Option<String> {
        self.writer.and_then(|writer| writer.join().ok())
    }
}

/// The first unused of the names scxtop-1.pftrace, scxtop-2.pftrace and so on.
fn unused(dir: &Path) -> PathBuf {
    let names = (1..).map(|n: u32| dir.join(format!("scxtop-{n}.pftrace")));
    let mut unused = names.filter(|path| !path.exists());
    unused.next().unwrap_or_else(|| dir.join("scxtop.pftrace"))
}
