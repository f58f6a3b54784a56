// SPDX-License-Identifier: GPL-2.0-only
//! `scxtop trace`: one recording from its start to its end.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;
use scx_utils::bpf::Slot;
use scx_utils::runner::Shutdown;

use crate::collect::programs::{Programs, Settings};
use crate::opts::TraceOpts;

use super::gathering::Gathering;
use super::output::Output;
use super::recording::{Limits, Recording};

/// Interval at which records are read. With a shorter interval, this program would run more often,
/// and so disturb the recorded tasks more. With the default size of the rings, there is room for
/// about 500,000 records of an interval, if they are evenly distributed to the CPUs.
const POLL: Duration = Duration::from_millis(50);

/// Records and writes a trace.
///
/// # Errors
///
/// If recording fails, or the file cannot be written.
pub(crate) fn run(opts: &TraceOpts) -> Result<()> {
    // Signals are handled, so that they do not leave an unfinished file behind.
    let (shutdown, _trigger) = Shutdown::on_signals()?;
    let output = Output::create(&opts.output)?;
    let settings = Settings {
        counters: false,
        ring_bytes: opts.buffer_bytes,
    };
    let mut slot = Slot::uninit();
    let mut programs = Programs::load(&settings, &mut slot)?;
    for notice in programs.notices() {
        tell(notice);
    }
    let is_over = |pause| shutdown.wait(pause);
    let recording = record(opts, &mut programs, is_over)?;
    finish(opts, recording, output)
}

/// Records until the time limit, a late wakeup or a signal, or until the recording is full.
fn record(
    opts: &TraceOpts,
    programs: &mut Programs<'_>,
    is_over: impl Fn(Duration) -> bool,
) -> Result<Recording> {
    let limits = Limits {
        window: opts.on_latency.and(Some(opts.seconds)),
        latency: opts.on_latency,
    };
    let mut gathering = Gathering::begin(programs, limits, &opts.stats_socket)?;
    let start = Instant::now();
    tell("recording");
    loop {
        gathering.poll(programs)?;
        let left = match opts.on_latency {
            Some(_) => POLL,
            None => opts.seconds.saturating_sub(start.elapsed()),
        };
        if left.is_zero() || gathering.is_over() || is_over(POLL.min(left)) {
            return gathering.end(programs);
        }
    }
}

fn finish(opts: &TraceOpts, recording: Recording, output: Output) -> Result<()> {
    let path = opts.output.display();
    match (recording.late(), opts.on_latency) {
        (Some(late), _) => tell(&late.to_string()),
        (None, Some(limit)) => {
            tell(&format!(
                "no wakeup took longer than {limit:?}: {path} not written"
            ));
            return Ok(());
        }
        (None, None) => {}
    }
    if recording.is_full() {
        tell("ended early: a trace can have no more events");
    }
    let summary = recording.finish(output)?;
    if summary.lost > 0 {
        tell(&format!(
            "{} events lost: use a larger --buffer-mib",
            summary.lost
        ));
    }
    tell(&format!(
        "wrote {path}: {summary}; open it at ui.perfetto.dev"
    ));
    Ok(())
}

/// Writes a line on standard error, which may be closed.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "scxtop: {line}");
}
