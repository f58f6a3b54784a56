// SPDX-License-Identifier: GPL-2.0-only
//! The second phase of a BPF side: its programs and maps are loaded, but no callback runs yet.

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

/// A loaded BPF side: its maps can be filled, and its `syscall` programs can be run.
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

    /// Attaches the scheduler.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the scheduler. If another scheduler is running already, the error
    /// names it.
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

    /// Attaches the table of callbacks through libbpf, because the skeleton would hide the cause of
    /// an error.
    ///
    /// Raises the calling thread to real-time priority for the attach. Without `--partial`, the
    /// attach switches all tasks of the fair class, this thread included, to the ext class one by
    /// one. The fair class has precedence: if enough busy tasks have not been switched yet, the
    /// tasks in the ext class starve. If the attaching thread is one of them, the switch stalls,
    /// with RCU readers preempted and locks held. This was seen on 6.17. Linux 7.2 does the work in
    /// a kthread.
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
        // SAFETY: the map belongs to the object, which is alive.
        let link = unsafe { libbpf_sys::bpf_map__attach_struct_ops(table.as_ptr()) };
        let link = NonNull::new(link).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: libbpf has just created the link, and there is no other reference.
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
