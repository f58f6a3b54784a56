// SPDX-License-Identifier: GPL-2.0-only
//! The recorder: loads the BPF half, and hands out what it records. It prints nothing.
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
use scx_utils::bpf::Slot;
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

/// How many ids [`Settings::pids`] may have.
pub(crate) const PIDS_MAX: usize = bpf_intf::SWITCHES_PIDS_MAX as usize;

/// How many threads are counted one by one.
pub(crate) const THREADS_MAX: usize = bpf_intf::SWITCHES_THREADS_MAX as usize;

/// Most runs that [`Recorder::runs`] hands out at once.
pub(crate) const BATCH: usize = 16_384;

/// What to record. A thread is recorded if everything given here applies.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Ids of threads and processes, [`PIDS_MAX`] at most; empty: all.
    pub pids: Vec<u32>,
    /// Names of threads.
    pub comm: CommFilter,
    /// CPUs; `None`: all.
    pub cpus: Option<Cpumask>,
    /// Whether idle CPUs are recorded, as threads with id 0.
    pub idle: bool,
    /// Whether system calls are counted.
    pub syscalls: bool,
    /// Place for runs that were not handed out yet, bytes: a power of two, a page at least.
    pub ring_bytes: u32,
}

/// A recording. The fields are dropped in their order.
pub(crate) struct Recorder<'obj> {
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    /// What the ring's callback leaves behind.
    taken: Rc<RefCell<Vec<Run>>>,
    /// How many runs were handed out.
    nr_taken: u64,
    settings: Settings,
    skel: BpfSkel<'obj>,
}

/// What is known when a recording has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Runs that were not handed out yet.
    pub runs: Vec<Run>,
    /// Those that have not ended, up to now, one for each CPU at most.
    pub running: Vec<Run>,
    /// All threads that were recorded, in no order.
    pub threads: Vec<Thread>,
    /// Complete runs, also those that were lost.
    pub nr_runs: u64,
    /// Runs of these that were not handed out: the ring was full.
    pub nr_lost: u64,
    /// Events of threads that are not in `threads`, because [`THREADS_MAX`] others are.
    pub nr_uncounted: u64,
}

impl<'obj> Recorder<'obj> {
    /// Begins to record.
    ///
    /// # Errors
    ///
    /// If this is not root, or the kernel lacks what it takes.
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

    /// The runs that ended since the last call, [`BATCH`] at most. Does not wait.
    ///
    /// # Errors
    ///
    /// Of libbpf.
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
    /// Of libbpf.
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

/// What is missing, in words that help, before libbpf tells it in its own.
fn check() -> Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    ensure!(
        is_root,
        "recording needs root privileges: run it as root or with sudo"
    );
    KernelBtf::read(Path::new("/")).map_err(|_| Missing::Btf)?;
    Ok(())
}

/// Writes the settings into the BPF half.
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
    Ok(())
}

fn ring(skel: &BpfSkel<'_>, taken: Rc<RefCell<Vec<Run>>>) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder.add(&skel.maps.runs, move |bytes| {
        // What is not understood counts as lost.
        if let Some(run) = read(bytes).and_then(|run| Run::complete(&run)) {
            taken.borrow_mut().push(run);
        }
        0
    })?;
    builder.build().context("cannot map the ring")
}

fn attach(skel: &mut BpfSkel<'_>, syscalls: bool) -> Result<Vec<Link>> {
    let progs = &mut skel.progs;
    // Last the one that begins runs: what is counted before it has its place already.
    let mut links = vec![
        attach_one(&mut progs.on_wakeup)?,
        attach_one(&mut progs.on_wakeup_new)?,
    ];
    if syscalls {
        // libbpf would say the same in more lines.
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
    //! Records for the tests of others.

    pub(crate) use super::records::tests::{run, thread};
}
