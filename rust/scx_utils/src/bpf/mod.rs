// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler's BPF side: opened, loaded, attached. One type per phase, to enforce the order; all
//! three dereference to the skeleton, whose type only the scheduler knows.

mod attached;
mod loaded;
mod opened;
mod ops;
mod record;
mod words;

pub use attached::Attached;
pub use loaded::Loaded;
pub use opened::{OpenOptions, Opened};
pub use words::Words;

use std::mem::MaybeUninit;

use libbpf_rs::OpenObject;

/// Storage of an open object. The caller of [`Opened::open`] owns it, because a skeleton borrows
/// from it.
pub type Slot = MaybeUninit<OpenObject>;
