// SPDX-License-Identifier: GPL-2.0-only
//! The second phase: the kernel has the programs and maps, and calls nothing yet.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use anyhow::{anyhow, Result};
use libbpf_rs::skel::Skel;
use libbpf_rs::{AsRawLibbpf as _, Link, MapCore as _, MapType};

use super::record::{Layout, Record};
use super::Attached;
use crate::kernel::{Missing, SchedExt};
use crate::realtime::RealTime;

/// A BPF side that is loaded: its maps can be filled, and programs be run by hand.
#[derive(Debug)]
pub struct Loaded<S> {
    record: Record,
    skel: S,
}

impl<S> Loaded<S> {
    pub(super) fn new<'obj>(skel: S, layout: Layout) -> Result<Self>
    where
        S: Skel<'obj>,
    {
        let record = Record::find(skel.object(), layout)?;
        Ok(Self { record, skel })
    }

    /// Hands the machine's tasks to the scheduler.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it; another scheduler is named.
    pub fn attach<'obj>(mut self, kernel: &SchedExt) -> Result<Attached<S>>
    where
        S: Skel<'obj>,
    {
        let enable_seq = kernel.enable_seq();
        let link = self
            .attach_struct_ops()
            .map_err(|error| explain(kernel, &error))?;
        Ok(Attached::new(
            link,
            self.record,
            self.skel,
            kernel.clone(),
            enable_seq,
        ))
    }

    /// By hand and not through the skeleton, which hides the cause.
    ///
    /// By a real-time thread: attaching moves all tasks, this thread among them, from the kernel's
    /// fair class to the ext class, one after the other. The fair class goes first: on a machine
    /// with enough busy tasks that are yet to be moved, whoever has been moved does not run again,
    /// and if that is the thread that does the moving, it all stops there, with preempted RCU
    /// readers and held locks. Seen on 6.17; 7.2 hands the work to a thread of its own.
    fn attach_struct_ops<'obj>(&mut self) -> io::Result<Link>
    where
        S: Skel<'obj>,
    {
        let table = self
            .skel
            .object()
            .maps()
            .find(|map| map.map_type() == MapType::StructOps);
        let table = table.ok_or(io::ErrorKind::NotFound)?.as_libbpf_object();
        let _real_time = RealTime::raise_self();
        // SAFETY: the map belongs to the object, which lives.
        let link = unsafe { libbpf_sys::bpf_map__attach_struct_ops(table.as_ptr()) };
        let link = NonNull::new(link).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: libbpf has just made it, and nobody else knows it.
        Ok(unsafe { Link::from_ptr(link) })
    }
}

fn explain(kernel: &SchedExt, error: &io::Error) -> anyhow::Error {
    match error.raw_os_error() {
        Some(libc::EBUSY) => Missing::Busy(kernel.ops()).into(),
        Some(libc::EINVAL) if !kernel.isolated_cpus().is_empty() => {
            anyhow!("the kernel refused the scheduler: CPUs are isolated: boot without isolcpus=")
        }
        _ => anyhow!("the kernel refused the scheduler: {error}"),
    }
}

impl<S> Deref for Loaded<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.skel
    }
}

impl<S> DerefMut for Loaded<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.skel
    }
}
