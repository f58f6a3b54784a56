// SPDX-License-Identifier: GPL-2.0-only
//! One recording from its start to its end.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use scx_utils::bpf::Slot;
use scx_utils::cli;
use scx_utils::runner::Shutdown;

use crate::opts::Opts;
use crate::output::{Format, Output};
use crate::recorder::{Recorder, Run, BATCH};
use crate::summary::{Gathering, Summary};

/// Interval at which records are read. Each read makes this program run, so a shorter interval
/// would disturb the recording more. A record with its header takes 64 bytes, so the smallest ring
/// holds about 60 records, and the default ring about 65000.
const POLL: Duration = Duration::from_millis(20);

/// Records according to `opts`, until the time limit or a signal. A closed pipe is not an
/// error.
///
/// # Errors
///
/// If recording fails, or the output cannot be written.
pub(crate) fn run(opts: &Opts) -> Result<()> {
    let (shutdown, _trigger) = Shutdown::on_signals()?;
    let mut slot = Slot::uninit();
    let recorder = Recorder::start(&opts.settings(), &mut slot)?;
    tell("recording");
    match record(opts, recorder, &shutdown) {
        Err(error) if cli::is_closed_pipe(&error) => Ok(()),
        Err(error) => Err(error),
        Ok(summary) => {
            tell_end(opts, &summary);
            Ok(())
        }
    }
}

fn record(opts: &Opts, mut recorder: Recorder<'_>, shutdown: &Shutdown) -> Result<Summary> {
    let format = Format {
        json: opts.json,
        only_summary: opts.summary,
    };
    let start = Instant::now();
    let mut writer = Writer {
        output: Output::new(format, io::BufWriter::new(io::stdout().lock())).context(STDOUT)?,
        gathering: Gathering::default(),
    };
    loop {
        let runs = recorder.runs()?;
        writer.take(&runs)?;
        let left = opts
            .seconds
            .map_or(POLL, |all| all.saturating_sub(start.elapsed()));
        // After a full batch, read on at once, but still check the time limit and signals.
        let pause = if runs.len() < BATCH {
            POLL.min(left)
        } else {
            Duration::ZERO
        };
        if left.is_zero() || shutdown.wait(pause) {
            break;
        }
    }
    let elapsed = start.elapsed();
    let ended = recorder.stop()?;
    writer.take(&ended.runs)?;
    writer.finish(&ended.running, |gathering| {
        gathering.finish(&ended, elapsed)
    })
}

/// Writes runs, and gathers them for the summary.
struct Writer<W> {
    output: Output<W>,
    gathering: Gathering,
}

/// The name of the output in error messages.
const STDOUT: &str = "standard output";

impl<W: Write> Writer<W> {
    fn take(&mut self, runs: &[Run]) -> Result<()> {
        for run in runs {
            self.gathering.add(run);
            self.output.run(run).context(STDOUT)?;
        }
        self.output.flush().context(STDOUT)
    }

    fn finish(
        mut self,
        running: &[Run],
        summarize: impl FnOnce(Gathering) -> Summary,
    ) -> Result<Summary> {
        for run in running {
            self.output.run(run).context(STDOUT)?;
        }
        let summary = summarize(self.gathering);
        self.output.summary(&summary).context(STDOUT)?;
        self.output.flush().context(STDOUT)?;
        Ok(summary)
    }
}

/// Reports lost runs and uncounted events. After text output without a summary, reports the number
/// of runs even if none was lost.
fn tell_end(opts: &Opts, summary: &Summary) {
    let Summary { runs, lost, .. } = summary;
    if *lost > 0 {
        let hint = "use a larger --ring-kib";
        tell(&format!("{lost} of {runs} runs lost: {hint}"));
    } else if !opts.json && !opts.summary {
        tell(&format!("{runs} runs, 0 lost"));
    }
    if summary.uncounted > 0 {
        let (n, threads) = (summary.uncounted, summary.threads.len());
        tell(&format!(
            "{n} events not counted: more than {threads} threads"
        ));
    }
}

/// Writes a line on standard error, which may be closed.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "scx_switches: {line}");
}
