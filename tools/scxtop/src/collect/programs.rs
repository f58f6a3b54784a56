// SPDX-License-Identifier: GPL-2.0-only
//! Loads and attaches the BPF programs, and reads their records.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{anyhow, ensure, Context as _, Result};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Iter, Link, MapHandle, ProgramMut};
use scx_utils::bpf::{share_switch_times, Slot, Words};
use scx_utils::compat::KernelBtf;
use scx_utils::cpumask::{Cpumask, MAX_NR_CPU_IDS};
use scx_utils::kernel::Missing;
use scx_utils::percpu::PerCpu;
use scx_utils::time::monotonic_ns;
use scx_utils::zerocopy::FromBytes;

use super::insert;
use super::rings::Rings;
use crate::bpf::{self, BpfSkel, BpfSkelBuilder};

/// The kernel's type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Indices of the members of `struct top_control`, in words of 64 bits.
pub(super) mod control {
    use std::mem::offset_of;

    use crate::bpf::top_control;

    const fn word(offset: usize) -> usize {
        offset / size_of::<u64>()
    }

    pub(in crate::collect) const IS_TRACING: usize = word(offset_of!(top_control, is_tracing));
    pub(in crate::collect) const INTERVAL: usize = word(offset_of!(top_control, interval));
    pub(in crate::collect) const OBSERVED_SINCE_NS: usize =
        word(offset_of!(top_control, observed_since_ns));
    pub(in crate::collect) const IS_COMPLETE: usize = word(offset_of!(top_control, is_complete));
    pub(in crate::collect) const NR_CPUS: usize = word(offset_of!(top_control, nr_cpus));
}

/// What the programs do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Whether tasks get counters, which snapshots need.
    pub(crate) counters: bool,
    /// Size of the rings for records of a trace, of all CPUs together, bytes. If it is 0, the rings
    /// have their minimum size.
    pub(crate) ring_bytes: u32,
}

/// The attached programs. The fields are dropped in their order: the links before the programs.
pub(crate) struct Programs<'obj> {
    /// Links of the programs that are always attached. Dropping a link detaches its program.
    _links: Vec<Link>,
    /// Links of the programs that observe switches, wakeups of new tasks, and migrations, within a
    /// window and while a trace is recorded.
    switch_links: Vec<Link>,
    /// Links of the programs that only traces need, while a trace is recorded.
    trace_links: Vec<Link>,
    /// Link of the program that only windows need.
    wakeup_link: Option<Link>,
    is_observing: bool,
    iterator: Link,
    rings: Rings,
    losses: PerCpu<bpf::top_lost>,
    /// The `struct top_control` of the BPF side.
    pub(super) control: Words,
    /// The LLC and the node of each CPU.
    pub(super) places: Words,
    /// The `struct top_depths` of the BPF side.
    pub(super) depths: Words,
    notices: Vec<String>,
    pub(super) skel: BpfSkel<'obj>,
}

impl<'obj> Programs<'obj> {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    ///
    /// Without root privileges, or if the kernel lacks a feature.
    pub(crate) fn load(settings: &Settings, slot: &'obj mut Slot) -> Result<Self> {
        check()?;
        let mut opened = BpfSkelBuilder::default()
            .open(slot)
            .context("cannot open the BPF object")?;
        let rodata = opened
            .maps
            .rodata_data
            .as_deref_mut()
            .context("no rodata")?;
        rodata.with_counters = settings.counters.into();
        let nr_cpus = nr_cpu_ids()?;
        opened.maps.cpus.set_max_entries(u32::try_from(nr_cpus)?)?;
        Rings::prepare(&mut opened, settings.ring_bytes, nr_cpus)?;
        insert::select(&mut opened.progs);
        share_switch_times(&mut opened.maps.scx_switch_time)?;
        let skel = opened.load().map_err(refused)?;
        let mut links = vec![
            attach_one(&skel.progs.on_fork)?,
            attach_one(&skel.progs.on_exit)?,
        ];
        let iterator = attach_one(&skel.progs.read_tasks)?;
        if settings.counters {
            // Creates the counters of the tasks that exist, before they are needed.
            tasks(&iterator)?;
        }
        let notices = insert::attach(&skel.progs, &mut links);
        let control = Words::map(&skel.maps.data_top_control)?;
        control.set(control::NR_CPUS, nr_cpus as u64);
        Ok(Self {
            _links: links,
            switch_links: Vec::new(),
            trace_links: Vec::new(),
            wakeup_link: None,
            is_observing: false,
            iterator,
            rings: Rings::map(&skel)?,
            control,
            places: Words::map(&skel.maps.data_top_places)?,
            depths: Words::map(&skel.maps.data_top_depths)?,
            losses: PerCpu::new(MapHandle::try_from(&skel.maps.losses)?)?,
            notices,
            skel,
        })
    }

    /// Begins or ends a window, in which wakeups, insertions and migrations are counted.
    ///
    /// # Errors
    ///
    /// If the kernel does not allow a program to be attached.
    pub(super) fn set_observing(&mut self, on: bool) -> Result<()> {
        self.is_observing = on;
        self.wakeup_link = None;
        if on {
            self.attach_switches()?;
            self.wakeup_link = Some(attach_one(&self.skel.progs.on_wakeup)?);
            self.control
                .set(control::OBSERVED_SINCE_NS, monotonic_ns()?);
        } else {
            self.control.set(control::OBSERVED_SINCE_NS, 0);
            self.detach_switches();
        }
        Ok(())
    }

    /// Begins or ends the recording of events.
    ///
    /// # Errors
    ///
    /// If the kernel does not allow a program to be attached.
    pub(crate) fn set_tracing(&mut self, on: bool) -> Result<()> {
        // Stop recording before the first program is detached, so that no kind of event is missing
        // in the last part of a trace.
        self.control.set(control::IS_TRACING, 0);
        self.trace_links.clear();
        let attached = if on { self.attach_trace() } else { Ok(()) };
        if attached.is_ok() {
            self.control.set(control::IS_TRACING, on.into());
        }
        self.detach_switches();
        attached
    }

    fn attach_trace(&mut self) -> Result<()> {
        self.attach_switches()?;
        let progs = &self.skel.progs;
        let links = [&progs.on_waking, &progs.on_exec].map(attach_one);
        self.trace_links = links.into_iter().collect::<Result<_>>()?;
        Ok(())
    }

    fn attach_switches(&mut self) -> Result<()> {
        if !self.switch_links.is_empty() {
            return Ok(());
        }
        let progs = &self.skel.progs;
        for prog in [&progs.on_migrate, &progs.on_wakeup_new, &progs.on_switch] {
            self.switch_links.push(attach_one(prog)?);
        }
        Ok(())
    }

    /// Detaches the programs of `switch_links`, unless a window or a trace needs them.
    fn detach_switches(&mut self) {
        if !self.is_observing && self.trace_links.is_empty() {
            self.switch_links.clear();
        }
    }

    /// Replaces `events` with the records since the last call: CPU by CPU, those of a CPU nearly in
    /// the order of their times. Does not block.
    pub(crate) fn events(&self, events: &mut Vec<bpf::top_event>) {
        events.clear();
        self.rings.drain(events);
    }

    /// The tasks that are runnable or have run since the last call; with `control::IS_COMPLETE`,
    /// all tasks.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(super) fn tasks(&self) -> Result<Vec<bpf::top_task>> {
        tasks(&self.iterator)
    }

    /// Number of records that did not fit into the rings.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn lost_events(&self) -> Result<u64> {
        Ok(self.losses.read(0)?.iter().map(|lost| lost.nr_events).sum())
    }

    /// Number of events that could not be counted.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn lost_counts(&self) -> Result<u64> {
        let of_cpus = self.losses.read(0)?;
        Ok(of_cpus
            .iter()
            .map(|lost| lost.nr_tasks + lost.nr_dsqs)
            .sum())
    }

    /// What the programs cannot observe, and why: one line each.
    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }
}

/// Reports missing requirements, before libbpf prints its own messages.
fn check() -> Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    ensure!(
        is_root,
        "scxtop requires root privileges: run it as root, or with sudo"
    );
    ensure!(Path::new(BTF).exists(), Missing::Btf);
    Ok(())
}

/// The highest id of a possible CPU plus 1. There may be gaps in the ids.
fn nr_cpu_ids() -> Result<usize> {
    let path = "/sys/devices/system/cpu/possible";
    let list = fs::read_to_string(path).context(path)?;
    let possible = Cpumask::from_list(list.trim(), MAX_NR_CPU_IDS).context(path)?;
    Ok(possible.last().map_or(1, |last| last + 1))
}

/// Why the programs could not be loaded.
fn refused(error: libbpf_rs::Error) -> anyhow::Error {
    let btf = KernelBtf::read(Path::new("/"));
    if btf.is_ok_and(|btf| !btf.has_member("rq", "rq_cpu_time")) {
        return anyhow!("the kernel lacks CONFIG_SCHEDSTATS, whose counters scxtop shows");
    }
    anyhow::Error::from(error).context("the kernel refused the BPF programs")
}

fn tasks(iterator: &Link) -> Result<Vec<bpf::top_task>> {
    let mut bytes = Vec::new();
    Iter::new(iterator)?
        .read_to_end(&mut bytes)
        .context("cannot read the tasks")?;
    let records = bytes.chunks_exact(size_of::<bpf::top_task>());
    let records = records.map(|record| bpf::top_task::read_from_bytes(record).ok());
    records
        .collect::<Option<_>>()
        .context("a record of a task has an unexpected size")
}

fn attach_one(prog: &ProgramMut<'_>) -> Result<Link> {
    let name = prog.name().to_string_lossy().into_owned();
    prog.attach()
        .with_context(|| format!("cannot attach {name}"))
}
