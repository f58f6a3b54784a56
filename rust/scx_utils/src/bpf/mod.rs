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

use anyhow::{Context as _, Result};
use libbpf_rs::{OpenObject, ProgramInput, ProgramMut};

/// Storage of an open object. The caller of [`Opened::open`] owns it, because a skeleton borrows
/// from it.
pub type Slot = MaybeUninit<OpenObject>;

/// Runs a program of type `syscall` with the argument `args`, and returns its return value.
///
/// # Errors
///
/// If the kernel does not run it.
pub fn run(program: &ProgramMut<'_>, args: &mut [u8]) -> Result<u32> {
    let input = ProgramInput {
        context_in: (!args.is_empty()).then_some(args),
        ..ProgramInput::default()
    };
    let done = program.test_run(input);
    Ok(done.context("cannot run a BPF program")?.return_value)
}
