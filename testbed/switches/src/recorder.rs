// SPDX-License-Identifier: GPL-2.0-only
//! The recorder: loads the BPF side, and returns its records. It prints nothing.
//!
//! ```ignore
//! let mut slot = Slot::uninit();
//! let mut recorder = Recorder::start(&settings, &mut slot)?;
//! loop {
//!     for run in recorder.runs()? { … }
//! }
//! let last = recorder.stop()?;
//! ```

mod filter;
mod records;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use anyhow::{ensure, Context as _, Result};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapHandle, ProgramMut, RingBuffer, RingBufferBuilder,
};
use scx_utils::bpf::{share_switch_times, Slot};
use scx_utils::compat::KernelBtf;
use scx_utils::cpumask::Cpumask;
use scx_utils::kernel::Missing;
use scx_utils::percpu::PerCpu;
use scx_utils::time::monotonic_ns;
use scx_utils::zerocopy::FromBytes;

use bpf_skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel};

pub(crate) use filter::CommFilter;
pub(crate) use records::{Run, Thread};

scx_utils::include_bpf!();

/// Maximum number of [`Settings::pids`].
pub(crate) const PIDS_MAX: usize = bpf_intf::SWITCHES_PIDS_MAX as usize;

/// Maximum number of threads with individual counters.
pub(crate) const THREADS_MAX: usize = bpf_intf::SWITCHES_THREADS_MAX as usize;

/// Maximum number of runs that [`Recorder::runs`] returns.
pub(crate) const BATCH: usize = 16_384;

/// What to record. A run is recorded if `pids`, `comm` and `cpus` all match.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Ids of threads and processes, at most [`PIDS_MAX`]. If there are none, all ids match.
    pub pids: Vec<u32>,
    /// Names of threads.
    pub comm: CommFilter,
    /// The CPUs. `None` means all CPUs.
    pub cpus: Option<Cpumask>,
    /// Whether idle CPUs are recorded, as threads with id 0.
    pub idle: bool,
    /// Whether system calls are counted.
    pub syscalls: bool,
    /// Size of the ring, bytes: a power of two, at least a page.
    pub ring_bytes: u32,
}

/// A recording. The fields are dropped in their order, so the programs are detached first.
pub(crate) struct Recorder<'obj> {
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    /// Runs from the ring's callback that were not returned yet.
    taken: Rc<RefCell<Vec<Run>>>,
    /// Number of runs returned so far.
    nr_taken: u64,
    settings: Settings,
    skel: BpfSkel<'obj>,
}

/// The results at the end of a recording.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Complete runs that [`Recorder::runs`] has not returned.
    pub runs: Vec<Run>,
    /// Runs that were in progress at the end of the recording: at most one per CPU. Their length
    /// is the time until then.
    pub running: Vec<Run>,
    /// All recorded threads, unordered.
    pub threads: Vec<Thread>,
    /// Number of complete runs, including lost runs.
    pub nr_runs: u64,
    /// Number of complete runs whose records were not received, usually because the ring was full.
    pub nr_lost: u64,
    /// Events of threads beyond the first [`THREADS_MAX`].
    pub nr_uncounted: u64,
}

impl<'obj> Recorder<'obj> {
    /// Starts a recording.
    ///
    /// # Errors
    ///
    /// There are no root privileges, or the kernel lacks a feature.
    pub(crate) fn start(settings: &Settings, slot: &'obj mut Slot) -> Result<Self> {
        check()?;
        let builder = BpfSkelBuilder::default();
        let mut opened = builder.open(slot).context("cannot open the BPF object")?;
        prepare(&mut opened, settings)?;
        let mut skel = opened
            .load()
            .context("the kernel refused the BPF programs")?;
        for pid in &settings.pids {
            let key = pid.to_ne_bytes();
            skel.maps.pids.update(&key, &key, MapFlags::ANY)?;
        }
        let taken = Rc::default();
        let ring = ring(&skel, Rc::clone(&taken))?;
        let links = attach(&mut skel, settings.syscalls)?;
        Ok(Self {
            links,
            ring,
            taken,
            nr_taken: 0,
            settings: settings.clone(),
            skel,
        })
    }

    /// Complete runs that were not returned yet, at most [`BATCH`]. Does not block.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn runs(&mut self) -> Result<Vec<Run>> {
        let status = self.ring.consume_raw_n(BATCH);
        ensure!(status >= 0, "cannot read the ring: error {status}");
        let runs = self.taken.take();
        self.nr_taken += u64::try_from(runs.len())?;
        Ok(runs)
    }

    /// Ends the recording.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn stop(mut self) -> Result<Ended> {
        let now_ns = monotonic_ns()?;
        self.links.clear();
        let mut runs = Vec::new();
        loop {
            let mut more = self.runs()?;
            if more.is_empty() {
                break;
            }
            runs.append(&mut more);
        }
        let maps = &self.skel.maps;
        let mut nr_runs = 0;
        let mut nr_uncounted = 0;
        for of_cpu in per_cpu::<bpf_intf::switches_totals>(&maps.totals)? {
            nr_runs += of_cpu.nr_runs;
            nr_uncounted += of_cpu.nr_uncounted;
        }
        let running = per_cpu(&maps.running)?;
        let running = running.iter().filter_map(|run| Run::open(run, now_ns));
        Ok(Ended {
            runs,
            running: running.collect(),
            threads: threads(&maps.threads, self.settings.syscalls)?,
            nr_runs,
            nr_lost: nr_runs.saturating_sub(self.nr_taken),
            nr_uncounted,
        })
    }
}

/// Reports missing requirements, before libbpf prints its own messages.
fn check() -> Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    ensure!(
        is_root,
        "recording requires root privileges: run it as root, or with sudo"
    );
    KernelBtf::read(Path::new("/")).map_err(|_| Missing::Btf)?;
    Ok(())
}

/// Writes the settings to the BPF side.
fn prepare(opened: &mut OpenBpfSkel<'_>, settings: &Settings) -> Result<()> {
    let rodata = opened
        .maps
        .rodata_data
        .as_deref_mut()
        .context("no rodata")?;
    rodata.with_idle = settings.idle.into();
    rodata.nr_pids = settings.pids.len().try_into()?;
    rodata.comm_mask = settings.comm.mask_words();
    rodata.comm_bytes = settings.comm.words();
    if let Some(cpus) = &settings.cpus {
        rodata.some_cpus = 1;
        let words = cpus.words();
        ensure!(words.len() <= rodata.cpus.len(), "too many CPUs");
        rodata.cpus[..words.len()].copy_from_slice(words);
    }
    opened.maps.runs.set_max_entries(settings.ring_bytes)?;
    opened.progs.on_sys_enter.set_autoload(settings.syscalls);
    share_switch_times(&mut opened.maps.scx_switch_time)?;
    Ok(())
}

fn ring(skel: &BpfSkel<'_>, taken: Rc<RefCell<Vec<Run>>>) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder.add(&skel.maps.runs, move |bytes| {
        // Invalid records count as lost.
        if let Some(run) = read(bytes).and_then(|run| Run::complete(&run)) {
            taken.borrow_mut().push(run);
        }
        0
    })?;
    builder.build().context("cannot map the ring")
}

fn attach(skel: &mut BpfSkel<'_>, syscalls: bool) -> Result<Vec<Link>> {
    let progs = &mut skel.progs;
    // Attach on_switch, which records runs, last, so that no event of a recorded run is missed.
    let mut links = vec![
        attach_one(&mut progs.on_wakeup)?,
        attach_one(&mut progs.on_wakeup_new)?,
    ];
    if syscalls {
        // Silence libbpf, which would print several lines if the program cannot be attached.
        let print = libbpf_rs::set_print(None);
        let link = progs.on_sys_enter.attach();
        libbpf_rs::set_print(print);
        let why = "the kernel lacks the tracepoint raw_syscalls:sys_enter: leave out --syscalls";
        links.push(link.context(why)?);
    }
    links.push(attach_one(&mut progs.on_switch)?);
    Ok(links)
}

fn attach_one(prog: &mut ProgramMut<'_>) -> Result<Link> {
    let name = prog.name().to_string_lossy().into_owned();
    prog.attach()
        .with_context(|| format!("cannot attach {name}"))
}

fn per_cpu<T: FromBytes>(map: &libbpf_rs::MapMut<'_>) -> Result<Vec<T>> {
    PerCpu::new(MapHandle::try_from(map)?)?.read(0)
}

fn threads(map: &libbpf_rs::MapMut<'_>, syscalls: bool) -> Result<Vec<Thread>> {
    let mut threads = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY)?;
        let counts = value.and_then(|bytes| read(&bytes));
        threads.extend(counts.map(|counts| Thread::new(&counts, syscalls)));
    }
    Ok(threads)
}

fn read<T: FromBytes>(bytes: &[u8]) -> Option<T> {
    T::read_from_bytes(bytes).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    //! Records for the tests of other modules.

    pub(crate) use super::records::tests::{run, thread};
}
