// SPDX-License-Identifier: GPL-2.0-only
//! The third phase: the scheduler runs, until it is detached or the kernel ends it.

use std::ops::{Deref, DerefMut};

use libbpf_rs::Link;

use super::record::Record;
use crate::exit_info::ExitInfo;
use crate::kernel::SchedExt;

/// A BPF side that schedules the machine. Dropping it gives the machine back.
#[derive(Debug)]
pub struct Attached<S> {
    // Before the object: the kernel lets go of the programs first.
    link: Link,
    record: Record,
    skel: S,
    kernel: SchedExt,
    /// Of the kernel, before.
    enable_seq: u64,
}

impl<S> Attached<S> {
    pub(super) fn new(
        link: Link,
        record: Record,
        skel: S,
        kernel: SchedExt,
        enable_seq: u64,
    ) -> Self {
        Self {
            link,
            record,
            skel,
            kernel,
            enable_seq,
        }
    }

    /// Whether the kernel has ended the scheduler. Costs a load from memory.
    #[must_use]
    pub fn exited(&self) -> bool {
        self.record.kind() != 0
    }

    /// Gives the machine back, and reads how it ended. Unregistering waits until the kernel is
    /// done, so the record is complete then.
    #[must_use]
    pub fn detach(self) -> ExitInfo {
        let ran = self.kernel.enable_seq() != self.enable_seq;
        drop(self.link);
        ExitInfo {
            ran,
            ..self.record.read()
        }
    }
}

impl<S> Deref for Attached<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.skel
    }
}

impl<S> DerefMut for Attached<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.skel
    }
}
