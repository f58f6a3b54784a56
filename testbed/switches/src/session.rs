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

/// How often runs are read. Each time is a run of this program; in between, the smallest ring has
/// place for 60 and the default one for 65000.
const POLL: Duration = Duration::from_millis(20);

/// Records what `opts` ask for, until its time is over or a signal comes. A reader that goes away
/// is no error.
///
/// # Errors
///
/// Recording is not possible, or what is recorded cannot be written.
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
        // Much to read is no reason to wait, nor to go on for ever.
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

/// Where runs go.
struct Writer<W> {
    output: Output<W>,
    gathering: Gathering,
}

/// What cannot be written to.
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

/// What the output does not tell, or not everybody looks for.
fn tell_end(opts: &Opts, summary: &Summary) {
    let Summary { runs, lost, .. } = summary;
    if *lost > 0 {
        let hint = "a larger --ring-kib has place for more";
        tell(&format!("{lost} of {runs} runs lost: {hint}"));
    } else if !opts.json && !opts.summary {
        tell(&format!("{runs} runs, 0 lost"));
    }
    if summary.uncounted > 0 {
        let (n, threads) = (summary.uncounted, summary.threads.len());
        tell(&format!(
            "{n} events not counted: of more than {threads} threads"
        ));
    }
}

/// Writes a line on standard error. Nobody may be there to be told.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "scx_switches: {line}");
}
