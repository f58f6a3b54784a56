// SPDX-License-Identifier: GPL-2.0-only
//! Samples of tasks that start to run: the target `sched_samples`, and the table that
//! `--monitor-sched-samples` prints.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use libbpf_rs::{MapHandle, RingBufferBuilder};
use scx_stats::{Args, Client, Stats, TARGET_ARG};
use scx_utils::bpf::{text, Words};
use scx_utils::runner::{self, CommonOpts, Shutdown};
use scx_utils::zerocopy::FromBytes as _;
use serde::{Deserialize, Serialize};

use crate::bpf_intf::{self, lavd_sample};

/// Name of the target, and of the argument with the number of samples.
pub(crate) const TARGET: &str = "sched_samples";
const NR_SAMPLES: &str = "nr_samples";
/// Maximum number of samples of a request, for which the ring buffer has room.
const NR_SAMPLES_MAX: u64 = 512;
/// How often `--monitor-sched-samples` requests samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time that a request waits for its samples. Other clients have to wait meanwhile.
const TIMEOUT: Duration = Duration::from_millis(250);

/// A task that started to run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "A task that started to run")]
pub(crate) struct SchedSample {
    #[stat(desc = "Number of the request")]
    pub(crate) mseq: u64,
    #[stat(desc = "PID")]
    pub(crate) pid: i32,
    #[stat(desc = "Name")]
    pub(crate) comm: String,
    #[stat(
        desc = "Latency critical (L) or regular (R), holds a lock (H) or not (I), on a big (B) or \
                little (T) CPU, used more (G) or less (E) than its share"
    )]
    pub(crate) stat: String,
    #[stat(desc = "CPU")]
    pub(crate) cpu_id: i32,
    #[stat(desc = "CPU of its last run")]
    pub(crate) prev_cpu_id: i32,
    #[stat(desc = "CPU selected at its wakeup; -1: none, its CPU is fixed")]
    pub(crate) suggested_cpu_id: i32,
    #[stat(desc = "PID of the waker; 0: an interrupt, or unknown")]
    pub(crate) waker_pid: i32,
    #[stat(desc = "Name of the waker")]
    pub(crate) waker_comm: String,
    #[stat(desc = "Slice (ns)")]
    pub(crate) slice_wall: u64,
    #[stat(desc = "Length of its last run (ns)")]
    pub(crate) slice_used_wall: u64,
    #[stat(desc = "Latency criticality")]
    pub(crate) lat_cri: u32,
    #[stat(desc = "Average latency criticality")]
    pub(crate) avg_lat_cri: u32,
    #[stat(desc = "Static priority: 120 + nice")]
    pub(crate) static_prio: u32,
    #[stat(desc = "Time since it last started to run (ns)")]
    pub(crate) resched_interval_wall: u64,
    #[stat(desc = "How often it starts to run (1/s)")]
    pub(crate) run_freq: u32,
    #[stat(desc = "Average CPU time from a wakeup until it stops running (ns)")]
    pub(crate) avg_runtime_wall: u64,
    #[stat(desc = "How often it wakes up (1/s)")]
    pub(crate) wait_freq: u32,
    #[stat(desc = "How often it wakes others (1/s)")]
    pub(crate) wake_freq: u32,
    #[stat(desc = "Performance criticality, 0 unless there are little CPUs")]
    pub(crate) perf_cri: u32,
    #[stat(desc = "Performance criticality above which a task should use a big CPU")]
    pub(crate) thr_perf_cri: u32,
    #[stat(desc = "Performance level requested of the CPU, 0 to 1024")]
    pub(crate) cpuperf_cur: u32,
    #[stat(desc = "Utilization of the CPU (%)")]
    pub(crate) cpu_util_wall: f64,
    #[stat(desc = "DSQ in which it waited")]
    pub(crate) dsq_id: u64,
    #[stat(desc = "Time from its enqueue until it started to run (ns)")]
    pub(crate) dsq_consume_lat: u64,
}

/// Samples of tasks that started to run, one after the other.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "Tasks that started to run, one after the other", _om_skip)]
pub(crate) struct SchedSamples {
    #[stat(desc = "The samples")]
    pub(crate) samples: Vec<SchedSample>,
}

impl SchedSample {
    fn new(mseq: u64, raw: &lavd_sample) -> Self {
        let flag = |bit: u32, yes: char, no: char| if raw.flags & bit == 0 { no } else { yes };
        Self {
            mseq,
            pid: raw.pid,
            comm: text(&raw.comm),
            stat: [
                flag(bpf_intf::LAVD_IS_CRITICAL, 'L', 'R'),
                flag(bpf_intf::LAVD_IS_HOLDER, 'H', 'I'),
                flag(bpf_intf::LAVD_ON_BIG, 'B', 'T'),
                flag(bpf_intf::LAVD_IS_GREEDY, 'G', 'E'),
            ]
            .iter()
            .collect(),
            cpu_id: raw.cpu,
            prev_cpu_id: raw.prev_cpu,
            suggested_cpu_id: raw.suggested_cpu,
            waker_pid: raw.waker_pid,
            waker_comm: text(&raw.waker_comm),
            slice_wall: raw.slice_ns,
            slice_used_wall: raw.slice_used_ns,
            lat_cri: raw.lat_cri,
            avg_lat_cri: raw.avg_lat_cri,
            static_prio: raw.static_prio,
            resched_interval_wall: raw.resched_ns,
            run_freq: raw.run_freq,
            avg_runtime_wall: raw.avg_runtime_ns,
            wait_freq: raw.wait_freq,
            wake_freq: raw.wake_freq,
            perf_cri: raw.perf_cri,
            thr_perf_cri: raw.thr_perf_cri,
            cpuperf_cur: raw.perf_level,
            cpu_util_wall: 100.0 * f64::from(raw.cpu_util) / 1024.0,
            dsq_id: raw.dsq_id,
            dsq_consume_lat: raw.wait_ns,
        }
    }
}

/// The function that replies to requests for the target `sched_samples`. `ring` is the map
/// `lavd_samples`, `request` the section of `struct lavd_request`.
pub(crate) fn source(
    ring: MapHandle,
    request: Words,
) -> impl FnMut(&Args) -> Result<SchedSamples> + Send {
    let mut mseq = 0;
    move |args| {
        mseq += 1;
        let wanted = wanted(args)?;
        let samples = collect(&ring, &request, mseq, wanted)?;
        Ok(SchedSamples { samples })
    }
}

/// The number of samples that a request asks for, by default 1. Fails if the argument is not a
/// number from 1 to [`NR_SAMPLES_MAX`].
fn wanted(args: &Args) -> Result<u64> {
    let Some(text) = args.get(NR_SAMPLES) else {
        return Ok(1);
    };
    let number = text.parse().ok();
    number
        .filter(|number| (1..=NR_SAMPLES_MAX).contains(number))
        .with_context(|| format!("{NR_SAMPLES} is {text:?}, not 1 to {NR_SAMPLES_MAX}"))
}

/// Takes samples until there are `wanted` samples, or until the timeout.
fn collect(ring: &MapHandle, request: &Words, mseq: u64, wanted: u64) -> Result<Vec<SchedSample>> {
    let samples = RefCell::new(Vec::new());
    let mut builder = RingBufferBuilder::new();
    builder.add(ring, |bytes| {
        if let Ok((raw, _)) = lavd_sample::read_from_prefix(bytes) {
            samples.borrow_mut().push(SchedSample::new(mseq, &raw));
        }
        0
    })?;
    let buffer = builder.build()?;
    // Discard samples that came too late for an earlier request.
    buffer.consume()?;
    samples.borrow_mut().clear();
    request.set(0, wanted);
    let deadline = Instant::now() + TIMEOUT;
    let wanted = usize::try_from(wanted)?;
    while samples.borrow().len() < wanted {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        buffer.poll(left)?;
    }
    request.set(0, 0);
    // BPF wakes this thread only after the last sample. After a timeout, there may be samples that
    // were not read.
    buffer.consume()?;
    drop(buffer);
    Ok(samples.into_inner())
}

/// Each second, prints samples of the running scheduler, until a shutdown is requested.
pub(crate) fn monitor(opts: &CommonOpts, shutdown: &Shutdown, wanted: u32) -> Result<()> {
    let args = Args::from([
        (TARGET_ARG.to_owned(), TARGET.to_owned()),
        (NR_SAMPLES.to_owned(), wanted.to_string()),
    ]);
    let ask = |client: &mut Client| client.stats_with(&args);
    runner::follow(opts, INTERVAL, shutdown, ask, print)
}

/// Prints samples as a table.
fn print(samples: SchedSamples) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(
        stdout,
        "{:>7} {:<15} {:<4} {:>4} {:>4} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7} {:>9} {:<15}",
        "PID",
        "NAME",
        "STAT",
        "CPU",
        "PREV",
        "LAT_CRI",
        "SLICE_US",
        "USED_US",
        "WAIT_US",
        "WAITS/s",
        "WAKES/s",
        "RUNS_US",
        "WAKER"
    )?;
    for sample in samples.samples {
        writeln!(stdout, "{sample}")?;
    }
    stdout.flush()
}

impl fmt::Display for SchedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>7} {:<15} {:<4} {:>4} {:>4} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7} {:>9} {:<15}",
            self.pid,
            self.comm,
            self.stat,
            self.cpu_id,
            self.prev_cpu_id,
            self.lat_cri,
            self.slice_wall / 1000,
            self.slice_used_wall / 1000,
            self.dsq_consume_lat / 1000,
            self.wait_freq,
            self.wake_freq,
            self.avg_runtime_wall / 1000,
            if self.waker_pid == 0 {
                "-"
            } else {
                &self.waker_comm
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilization_is_not_the_change_since_the_previous_sample() {
        let raw = lavd_sample {
            cpu_util: 512,
            ..lavd_sample::default()
        };
        let sample = SchedSample::new(2, &raw).since(&SchedSample::new(1, &raw));
        assert!((sample.cpu_util_wall - 50.0).abs() < 1e-9);
    }
}
