// SPDX-License-Identifier: GPL-2.0-only
//! `scxtop top`: prints snapshots.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use scx_utils::bpf::Slot;
use scx_utils::cli;
use scx_utils::runner::Shutdown;

use crate::collect::Collector;
use crate::model::Snapshot;
use crate::opts::TopOpts;

/// Prints a snapshot for each interval, until `opts.count` are printed or a signal arrives.
///
/// # Errors
///
/// If nothing can be observed, or the output cannot be written.
pub(crate) fn run(opts: &TopOpts) -> Result<()> {
    let (shutdown, _trigger) = Shutdown::on_signals()?;
    let mut slot = Slot::uninit();
    let mut collector = Collector::start(&opts.stats_socket, 0, &mut slot)?;
    // The start of the first interval.
    collector.snapshot(opts.interval)?;
    let mut nr_printed = 0;
    while opts.count.is_none_or(|count| nr_printed < count) {
        if collector.wait(opts.interval, |time| shutdown.wait(time))? {
            break;
        }
        let mut snapshot = collector.snapshot(opts.interval)?;
        snapshot.tasks.truncate(opts.tasks);
        let text = if opts.json {
            serde_json::to_string(&snapshot)? + "\n"
        } else {
            text(&snapshot)?
        };
        cli::print(text.as_bytes()).context("standard output")?;
        nr_printed += 1;
    }
    Ok(())
}

/// Formats a snapshot as text.
fn text(snapshot: &Snapshot) -> Result<String> {
    let mut text = String::new();
    let sched = &snapshot.sched;
    let name = sched.name.as_deref().unwrap_or("none");
    writeln!(text, "scheduler {name}, kernel {}", snapshot.kernel)?;
    let wakeup = &snapshot.wakeup;
    writeln!(
        text,
        "wakeups {} in {:.0} % of the time, latency p50 {} us, p90 {} us, p99 {} us, max {} us",
        wakeup.count,
        snapshot.observed_pct,
        wakeup.p50_ns / 1000,
        wakeup.p90_ns / 1000,
        wakeup.p99_ns / 1000,
        wakeup.max_ns / 1000
    )?;
    for cpu in snapshot.cpus.iter().filter(|cpu| cpu.is_online) {
        writeln!(
            text,
            "cpu {:<4} busy {:5.1} %  ext {:5.1} %  rt {:5.1} %  {:8.0} switches/s",
            cpu.id, cpu.busy_pct, cpu.ext_pct, cpu.rt_pct, cpu.switches
        )?;
    }
    for dsq in &snapshot.dsqs {
        let depth = dsq
            .depth
            .map_or_else(|| "-".to_owned(), |depth| depth.to_string());
        writeln!(
            text,
            "dsq {:<18} depth {depth:>5}  {:8.0} inserts/s  latency p50 {} us, p99 {} us",
            dsq.name,
            dsq.inserts,
            dsq.latency.p50_ns / 1000,
            dsq.latency.p99_ns / 1000
        )?;
    }
    writeln!(
        text,
        "{:>7} {:<15} {:>4} {:>5} {:>6} {:>6} {:>9} {:>9}",
        "PID", "COMM", "CPU", "CLASS", "RUN%", "WAIT%", "SWITCH/s", "P99 us"
    )?;
    for task in &snapshot.tasks {
        let comm = task.comm.escape_debug();
        writeln!(
            text,
            "{:>7} {:<15} {:>4} {:>5} {:>6.1} {:>6.1} {:>9.0} {:>9}",
            task.pid,
            comm.to_string(),
            task.cpu,
            task.class,
            task.run_pct,
            task.wait_pct,
            task.switches,
            task.wakeup.p99_ns / 1000
        )?;
    }
    for notice in &snapshot.notices {
        writeln!(text, "{notice}")?;
    }
    text.push('\n');
    Ok(text)
}
