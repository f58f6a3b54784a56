// SPDX-License-Identifier: GPL-2.0-only
//! Gathers snapshots from the counters of the BPF side, sysfs, the kernel's log, and the
//! scheduler's statistics.
//!
//! `programs` loads the BPF side, `insert` selects its probes, `rings` reads the records of traces,
//! and `window` limits the time in which events are observed. `topology` keeps the topology.
//! Except `rates`, each of the other modules gathers one part of the snapshot. For rates, a module
//! keeps the counters of the last snapshot, and uses the functions of `rates`.

mod cpus;
pub(crate) mod dsqs;
pub(crate) mod events;
mod groups;
mod insert;
mod log;
mod own;
pub(crate) mod programs;
mod rates;
mod rings;
mod sched;
pub(crate) mod stats;
mod tasks;
mod topology;
mod window;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::system::uname;
use scx_utils::bpf::Slot;
use scx_utils::time::monotonic_ns;

use crate::histogram::Latency;
use crate::model::Snapshot;
use programs::{Programs, Settings};

/// How long to wait for the scheduler's statistics. The display is not updated meanwhile.
const STATS_TIMEOUT: Duration = Duration::from_millis(300);

/// Gathers a snapshot for each interval.
pub(crate) struct Collector<'obj> {
    programs: Programs<'obj>,
    root: PathBuf,
    topology: topology::Current,
    cpus: cpus::Cpus,
    tasks: tasks::Tasks,
    dsqs: dsqs::Dsqs,
    events: events::Events,
    log: log::KernelLog,
    stats: stats::Source,
    own: own::Own,
    window: window::Window,
    last_ns: Option<u64>,
}

impl<'obj> Collector<'obj> {
    /// Loads the BPF side, with rings of `ring_bytes` bytes for the records of traces. Events are
    /// observed from the first call of [`Collector::snapshot`] on.
    ///
    /// # Errors
    ///
    /// Without root privileges, if the kernel lacks a feature, or if the topology cannot be read.
    pub(crate) fn start(
        stats_socket: &Path,
        ring_bytes: u32,
        slot: &'obj mut Slot,
    ) -> Result<Self> {
        let root = PathBuf::from("/");
        let settings = Settings {
            counters: true,
            ring_bytes,
        };
        let programs = Programs::load(&settings, slot)?;
        let mut topology = topology::Current::new(&root);
        topology.update()?;
        topology.publish(&programs);
        Ok(Self {
            cpus: cpus::Cpus::new(&programs)?,
            tasks: tasks::Tasks::default(),
            dsqs: dsqs::Dsqs::default(),
            events: events::Events::new(&root),
            log: log::KernelLog::open(),
            stats: stats::Source::new(stats_socket, STATS_TIMEOUT),
            own: own::Own::default(),
            window: window::Window::default(),
            last_ns: None,
            programs,
            root,
            topology,
        })
    }

    /// The programs, to record a trace at the same time.
    pub(crate) fn programs(&mut self) -> &mut Programs<'obj> {
        &mut self.programs
    }

    /// How long to wait at most before the next call of [`Collector::step`].
    pub(crate) fn step_in(&self) -> Duration {
        self.window.step_in()
    }

    /// Ends the window if its maximum number of context switches is reached.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn step(&mut self) -> Result<()> {
        self.window.step(&mut self.programs)
    }

    /// Waits for `time` by calls of `wait`, which returns whether the program has to end. Returns
    /// true as soon as `wait` does.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn wait(&mut self, time: Duration, wait: impl Fn(Duration) -> bool) -> Result<bool> {
        let start = Instant::now();
        loop {
            let rest = time.saturating_sub(start.elapsed());
            if wait(rest.min(self.step_in())) {
                return Ok(true);
            }
            self.step()?;
            if start.elapsed() >= time {
                return Ok(false);
            }
        }
    }

    /// The state now, and what has happened since the last call. `next` is the expected time until
    /// the next call.
    ///
    /// # Errors
    ///
    /// Errors of libbpf, and of sysfs.
    pub(crate) fn snapshot(&mut self, next: Duration) -> Result<Snapshot> {
        if self.topology.update()? {
            self.topology.publish(&self.programs);
        }
        let sched = sched::read(&self.root, self.log.last_exit());
        let has_scheduler = sched.name.is_some();
        let events = self.events.read();
        let stats = if has_scheduler {
            self.stats.read()
        } else {
            Vec::new()
        };
        let topology = self.topology.get();
        let time_ns = monotonic_ns()?;
        let interval_ns = self.last_ns.map_or(0, |last_ns| time_ns - last_ns);
        self.last_ns = Some(time_ns);
        let observed_ns = self.window.end_interval();
        let dsqs = self.dsqs.read(&self.programs, topology, observed_ns)?;
        // Tasks and CPUs are read one right after the other, because their times are compared.
        let tasks = self.tasks.read(&self.programs)?;
        let cpus = self
            .cpus
            .read(&self.programs, topology, &dsqs.local, &tasks, observed_ns)?;
        self.window.begin(&mut self.programs, next)?;
        Ok(Snapshot {
            time_ns,
            interval_ns,
            observed_pct: rates::percent(observed_ns, interval_ns).min(100.0),
            kernel: uname().release().to_string_lossy().into_owned(),
            sched,
            wakeup: Latency::sum(cpus.iter().map(|cpu| &cpu.shown.wakeup)),
            llcs: groups::llcs(topology, &cpus),
            nodes: groups::nodes(topology, &cpus),
            cpus: cpus.into_iter().map(|cpu| cpu.shown).collect(),
            tasks,
            dsqs: dsqs.shown,
            events,
            stats,
            own: self.own.read(interval_ns, self.programs.lost_counts()?),
            notices: self.programs.notices().to_vec(),
        })
    }
}
