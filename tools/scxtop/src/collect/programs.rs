// SPDX-License-Identifier: GPL-2.0-only
//! The BPF programs: loaded, attached, and their records.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::Path;
use std::rc::Rc;

use anyhow::{ensure, Context as _, Result};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Iter, Link, MapHandle, ProgramMut, RingBuffer, RingBufferBuilder};
use scx_utils::bpf::{Slot, Words};
use scx_utils::kernel::Missing;
use scx_utils::percpu::PerCpu;
use scx_utils::zerocopy::FromBytes;

use super::insert;
use crate::bpf::{self, BpfSkel, BpfSkelBuilder};

/// The kernel's type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Maximum number of records that [`Programs::events`] returns.
const BATCH: usize = 65_536;

/// Words of `struct top_control`.
pub(super) mod control {
    use std::mem::offset_of;

    use crate::bpf::top_control;

    const fn word(offset: usize) -> usize {
        offset / size_of::<u64>()
    }

    pub(in crate::collect) const IS_TRACING: usize = word(offset_of!(top_control, is_tracing));
    pub(in crate::collect) const INTERVAL: usize = word(offset_of!(top_control, interval));
    pub(in crate::collect) const ACTIVE_SINCE_NS: usize =
        word(offset_of!(top_control, active_since_ns));
}

/// What the programs do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Whether they count, for snapshots.
    pub(crate) counters: bool,
    /// Size of the ring for records of a trace, bytes: a power of two, at least a page.
    pub(crate) ring_bytes: u32,
}

/// The attached programs. The fields are dropped in their order.
pub(crate) struct Programs<'obj> {
    /// Dropping a link detaches its program.
    _links: Vec<Link>,
    /// Of the programs that only traces need, while one is recorded.
    trace_links: Vec<Link>,
    iterator: Link,
    ring: RingBuffer<'static>,
    /// Filled by the ring's callback.
    taken: Rc<RefCell<Vec<bpf::top_event>>>,
    losses: PerCpu<bpf::top_lost>,
    /// A `struct top_control`.
    pub(super) control: Words,
    /// The places of CPUs.
    pub(super) places: Words,
    /// A `struct top_depths`.
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
        opened.maps.events.set_max_entries(settings.ring_bytes)?;
        insert::select(&mut opened.progs);
        let skel = opened
            .load()
            .context("the kernel refused the BPF programs")?;
        let taken = Rc::default();
        let ring = ring(&skel, Rc::clone(&taken))?;
        let mut links = vec![attach_one(&skel.progs.on_fork)?];
        let iterator = attach_one(&skel.progs.read_tasks)?;
        if settings.counters {
            // Creates the counters of the tasks that exist, before they are needed.
            tasks(&iterator)?;
        }
        let notices = insert::attach(&skel.progs, &mut links);
        attach(&skel, &mut links)?;
        Ok(Self {
            _links: links,
            trace_links: Vec::new(),
            iterator,
            ring,
            taken,
            control: Words::map(&skel.maps.data_top_control)?,
            places: Words::map(&skel.maps.data_top_places)?,
            depths: Words::map(&skel.maps.data_top_depths)?,
            losses: PerCpu::new(MapHandle::try_from(&skel.maps.losses)?)?,
            notices,
            skel,
        })
    }

    /// Begins or ends the recording of events.
    ///
    /// # Errors
    ///
    /// If the kernel does not allow a program to be attached.
    pub(crate) fn set_tracing(&mut self, on: bool) -> Result<()> {
        let progs = &self.skel.progs;
        self.trace_links.clear();
        if on {
            for prog in [&progs.on_waking, &progs.on_migrate, &progs.on_exec] {
                self.trace_links.push(attach_one(prog)?);
            }
        }
        self.control.set(control::IS_TRACING, on.into());
        Ok(())
    }

    /// The records since the last call, nearly sorted by time. Does not block.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn events(&mut self) -> Result<Vec<bpf::top_event>> {
        let status = self.ring.consume_raw_n(BATCH);
        ensure!(status >= 0, "cannot read the ring: error {status}");
        Ok(self.taken.take())
    }

    /// The tasks that were active since `control::ACTIVE_SINCE_NS`.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(super) fn tasks(&self) -> Result<Vec<bpf::top_task>> {
        tasks(&self.iterator)
    }

    /// Number of records that did not fit into the ring.
    ///
    /// # Errors
    ///
    /// Errors of libbpf.
    pub(crate) fn lost_events(&self) -> Result<u64> {
        Ok(self.losses.read(0)?.iter().map(|lost| lost.nr_events).sum())
    }

    /// Events that could not be counted.
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

fn ring(
    skel: &BpfSkel<'_>,
    taken: Rc<RefCell<Vec<bpf::top_event>>>,
) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder.add(&skel.maps.events, move |bytes| {
        let event = bpf::top_event::read_from_bytes(bytes);
        taken.borrow_mut().extend(event);
        0
    })?;
    builder.build().context("cannot map the ring")
}

fn attach(skel: &BpfSkel<'_>, links: &mut Vec<Link>) -> Result<()> {
    let progs = &skel.progs;
    // The switch last: with the first one that is observed, all its other events are.
    for prog in [
        &progs.on_exit,
        &progs.on_wakeup,
        &progs.on_wakeup_new,
        &progs.on_switch,
    ] {
        links.push(attach_one(prog)?);
    }
    Ok(())
}

fn attach_one(prog: &ProgramMut<'_>) -> Result<Link> {
    let name = prog.name().to_string_lossy().into_owned();
    prog.attach()
        .with_context(|| format!("cannot attach {name}"))
}
