// SPDX-License-Identifier: GPL-2.0-only
//! The third phase of a BPF side: the scheduler runs until it is detached or the kernel ends it.

use std::ops::{Deref, DerefMut};

use libbpf_rs::Link;

use super::record::Record;
use crate::exit_info::ExitInfo;
use crate::kernel::SchedExt;

/// An attached BPF side. Dropping it detaches the scheduler.
#[derive(Debug)]
pub struct Attached<S> {
    // Declared before `skel`, so that the link is dropped first. Dropping the link unregisters the
    // scheduler.
    link: Link,
    record: Record,
    skel: S,
    kernel: SchedExt,
    /// [`SchedExt::enable_seq`] before the attach. If the scheduler was enabled, the kernel's count
    /// is now different.
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

    /// Whether the kernel has ended the scheduler. This costs only a load from memory.
    #[must_use]
    pub fn exited(&self) -> bool {
        self.record.kind() != 0
    }

    /// Detaches the scheduler, and returns how it ended. Unregistering is synchronous, so the
    /// record is complete afterwards.
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
