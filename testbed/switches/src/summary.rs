// SPDX-License-Identifier: GPL-2.0-only
//! The summary of a recording, as a table and as JSON.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::lengths::Lengths;
use crate::recorder::{Ended, Run, Thread, THREADS_MAX};

/// Aggregates runs during the recording.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// The lengths of runs, by thread id.
    lengths: HashMap<u32, Lengths>,
}

impl Gathering {
    /// Adds a complete run. Threads beyond the first [`THREADS_MAX`] are omitted.
    pub(crate) fn add(&mut self, run: &Run) {
        if let Some(lengths) = self.lengths.get_mut(&run.pid) {
            lengths.record(run.ran_ns);
        } else if self.lengths.len() < THREADS_MAX {
            self.lengths.entry(run.pid).or_default().record(run.ran_ns);
        }
    }

    /// The summary at the end of the recording.
    pub(crate) fn finish(self, ended: &Ended, elapsed: Duration) -> Summary {
        let none = Lengths::default();
        let mut threads: Vec<_> = ended
            .threads
            .iter()
            .map(|thread| {
                let lengths = self.lengths.get(&thread.pid).unwrap_or(&none);
                Row::new(thread.clone(), lengths, &ended.running)
            })
            .collect();
        threads.sort_by_key(|row| (std::cmp::Reverse(row.thread.cpu_ns), row.thread.pid));
        Summary {
            elapsed_s: elapsed.as_secs_f64(),
            runs: ended.nr_runs,
            lost: ended.nr_lost,
            uncounted: ended.nr_uncounted,
            threads,
        }
    }
}

/// All figures of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// Duration of the recording, seconds.
    pub elapsed_s: f64,
    /// Number of complete runs, including lost runs.
    pub runs: u64,
    /// Number of lost runs.
    pub lost: u64,
    /// Events of threads beyond the first [`THREADS_MAX`].
    pub uncounted: u64,
    /// The threads, sorted by descending CPU time.
    pub threads: Vec<Row>,
}

/// Figures of a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub thread: Thread,
    /// Median length of the recorded runs, ns; `None` without a run.
    pub run_p50_ns: Option<u64>,
    pub run_p90_ns: Option<u64>,
    pub run_max_ns: Option<u64>,
    /// Length of the run that has not ended, ns; `None` if there is none. Several idle tasks, which
    /// share the id 0, may be running: only one of them is shown.
    pub running_ns: Option<u64>,
}

impl Row {
    fn new(thread: Thread, lengths: &Lengths, running: &[Run]) -> Self {
        let mut of_thread = running.iter().filter(|run| run.pid == thread.pid);
        Self {
            run_p50_ns: lengths.percentile_ns(50),
            run_p90_ns: lengths.percentile_ns(90),
            run_max_ns: lengths.max_ns(),
            running_ns: of_thread.next().map(|run| run.ran_ns),
            thread,
        }
    }
}

/// The header of the table.
const HEADINGS: [&str; 11] = [
    "PID",
    "COMM",
    "RUNS",
    "CPU_MS",
    "P50_US",
    "P90_US",
    "MAX_US",
    "WAKEUPS",
    "VOLUNTARY",
    "INVOLUNTARY",
    "SYSCALLS",
];

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.1} s, {} runs, {} lost",
            self.elapsed_s, self.runs, self.lost
        )?;
        line(f, &HEADINGS.map(String::from))?;
        self.threads
            .iter()
            .try_for_each(|row| line(f, &row.cells()))
    }
}

impl Row {
    fn cells(&self) -> [String; 11] {
        let thread = &self.thread;
        [
            thread.pid.to_string(),
            thread.comm.to_string(),
            thread.runs.to_string(),
            fixed(thread.cpu_ns, 1_000_000),
            figure(self.run_p50_ns),
            figure(self.run_p90_ns),
            figure(self.run_max_ns),
            thread.wakeups.to_string(),
            thread.voluntary.to_string(),
            thread.involuntary.to_string(),
            thread
                .syscalls
                .map_or("-".into(), |count| count.to_string()),
        ]
    }
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[String; 11]) -> fmt::Result {
    let [pid, comm, runs, cpu, p50, p90, max, wakeups, voluntary, involuntary, syscalls] = cells;
    writeln!(
        f,
        "{pid:>7} {comm:<15} {runs:>8} {cpu:>11} {p50:>11} {p90:>11} {max:>11} {wakeups:>8} \
         {voluntary:>9} {involuntary:>11} {syscalls:>9}"
    )
}

/// A length in us, or a dash.
fn figure(ns: Option<u64>) -> String {
    ns.map_or("-".into(), |ns| fixed(ns, 1000))
}

/// `ns` in a unit of `unit` ns, with one decimal, rounded down.
pub(crate) fn fixed(ns: u64, unit: u64) -> String {
    format!("{}.{}", ns / unit, ns % unit / (unit / 10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::tests::{run, thread};

    fn ended() -> Ended {
        Ended {
            runs: Vec::new(),
            running: vec![run(12, "hog", 7_000)],
            threads: vec![thread(12, "hog", 5_123_456), thread(13, "cat", 6_000_000)],
            nr_runs: 5,
            nr_lost: 1,
            nr_uncounted: 0,
        }
    }

    fn summary() -> Summary {
        let mut gathering = Gathering::default();
        for ns in [1_000, 2_000, 100_900] {
            gathering.add(&run(12, "hog", ns));
        }
        gathering.finish(&ended(), Duration::from_millis(2500))
    }

    #[test]
    fn busiest_thread_is_first() {
        let text = summary().to_string();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("2.5 s, 5 runs, 1 lost"));
        let lines: Vec<_> = lines.collect();
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        let cells = lines.iter().map(|line| line.split_whitespace().collect());
        let cells: Vec<Vec<_>> = cells.collect();
        let cat = "13 cat 2 6.0 - - - 3 4 5 6";
        let hog = "12 hog 2 5.1 2.0 100.9 100.9 3 4 5 6";
        let rows = [cat, hog].map(|row| row.split(' ').collect::<Vec<_>>());
        assert_eq!(cells, [&HEADINGS[..], &rows[0], &rows[1]]);
    }

    #[test]
    fn json_has_the_same_figures() {
        let json = serde_json::to_value(summary()).unwrap();
        assert_eq!(json["elapsed_s"], 2.5);
        assert_eq!((&json["runs"], &json["lost"]), (&5.into(), &1.into()));
        let hog = &json["threads"][1];
        assert_eq!(hog["pid"], 12);
        assert_eq!(hog["comm"], "hog");
        assert_eq!(hog["cpu_ns"], 5_123_456);
        assert_eq!(hog["run_max_ns"], 100_900);
        assert_eq!(hog["running_ns"], 7_000);
        assert_eq!(json["threads"][0]["run_p50_ns"], serde_json::Value::Null);
    }

    #[test]
    fn threads_beyond_the_maximum_are_omitted() {
        let mut gathering = Gathering::default();
        for pid in 0..u32::try_from(THREADS_MAX).unwrap() + 1 {
            gathering.add(&run(pid, "many", 1));
        }
        assert_eq!(gathering.lengths.len(), THREADS_MAX);
    }

    #[test]
    fn figures_have_one_decimal() {
        let figures = [0, 99, 100, 1_999, 12_345_678].map(|ns| fixed(ns, 1000));
        assert_eq!(figures, ["0.0", "0.0", "0.1", "1.9", "12345.6"]);
    }
}
