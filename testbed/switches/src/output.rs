// SPDX-License-Identifier: GPL-2.0-only
//! What is written to standard output, as text or as JSON.

use std::io::{self, Write};

use serde::Serialize;

use crate::recorder::Run;
use crate::summary::{fixed, Summary};

/// The output format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Whether the output is lines of JSON instead of text.
    pub json: bool,
    /// Whether only the summary is written.
    pub only_summary: bool,
}

/// Writes a recording.
#[derive(Debug)]
pub(crate) struct Output<W> {
    format: Format,
    out: W,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Run(&'a Run),
    Summary(&'a Summary),
}

impl<W: Write> Output<W> {
    /// Writes the header, if the format has one.
    ///
    /// # Errors
    ///
    /// Errors of `out`, as for all methods.
    pub(crate) fn new(format: Format, mut out: W) -> io::Result<Self> {
        if !format.json && !format.only_summary {
            let (cpu, pid, comm, ran, end) = ("CPU", "PID", "COMM", "RAN_US", "END");
            writeln!(
                out,
                "{:>14} {cpu:>4} {pid:>7} {comm:<15} {ran:>12} {end}",
                "TIME_S"
            )?;
        }
        Ok(Self { format, out })
    }

    /// Writes a run, unless only the summary is wanted.
    pub(crate) fn run(&mut self, run: &Run) -> io::Result<()> {
        match self.format {
            Format {
                only_summary: true, ..
            } => Ok(()),
            Format { json: true, .. } => self.json(&Line::Run(run)),
            Format { json: false, .. } => self.text(run),
        }
    }

    fn text(&mut self, run: &Run) -> io::Result<()> {
        let (s, us) = (
            run.start_ns / 1_000_000_000,
            run.start_ns / 1000 % 1_000_000,
        );
        writeln!(
            self.out,
            "{s:>7}.{us:06} {:>4} {:>7} {:<15} {:>12} {}",
            run.cpu,
            run.pid,
            run.comm,
            fixed(run.ran_ns, 1000),
            run.end.name()
        )
    }

    /// Writes the summary, if the format has one.
    pub(crate) fn summary(&mut self, summary: &Summary) -> io::Result<()> {
        match self.format {
            Format { json: true, .. } => self.json(&Line::Summary(summary)),
            Format {
                only_summary: true, ..
            } => write!(self.out, "{summary}"),
            Format { .. } => Ok(()),
        }
    }

    fn json(&mut self, line: &Line<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }

    /// Flushes the output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::run;

    fn summary() -> Summary {
        Summary {
            elapsed_s: 1.0,
            runs: 1,
            lost: 0,
            uncounted: 0,
            threads: Vec::new(),
        }
    }

    fn written(json: bool, only_summary: bool) -> String {
        let mut bytes = Vec::new();
        let format = Format { json, only_summary };
        let mut output = Output::new(format, &mut bytes).unwrap();
        output.run(&run(12, "hog", 10_002_345)).unwrap();
        output.summary(&summary()).unwrap();
        output.flush().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_has_a_line_for_each_run() {
        let want = "        TIME_S  CPU     PID COMM                  RAN_US END
      3.000004    1      12 hog                  10002.3 slept
";
        assert_eq!(written(false, false), want);
    }

    #[test]
    fn last_line_of_json_is_the_summary() {
        let want = concat!(
            r#"{"type":"run","start_ns":3000004005,"stop_ns":3010006350,"ran_ns":10002345,"#,
            r#""cpu":1,"pid":12,"tgid":10,"comm":"hog","end":"slept","prio":120,"policy":0}"#,
            "\n",
            r#"{"type":"summary","elapsed_s":1.0,"runs":1,"lost":0,"uncounted":0,"threads":[]}"#,
            "\n",
        );
        assert_eq!(written(true, false), want);
        assert_eq!(want.lines().nth(1), written(true, true).lines().next());
    }

    #[test]
    fn summary_only() {
        assert!(written(false, true).starts_with("1.0 s, 1 runs, 0 lost\n"));
        assert_eq!(written(false, true).lines().count(), 2);
        assert_eq!(written(true, true).lines().count(), 1);
    }
}
