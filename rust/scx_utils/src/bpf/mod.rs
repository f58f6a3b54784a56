// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler's BPF side, which is opened, loaded and attached. Each of these phases has its own
//! type, to enforce the order. All three types are generic over the scheduler's skeleton, and
//! dereference to it.

mod attached;
mod loaded;
mod opened;
mod ops;
mod record;
mod switch_times;
mod words;

pub use attached::Attached;
pub use loaded::Loaded;
pub use opened::{OpenOptions, Opened};
pub use switch_times::share_switch_times;
pub use words::Words;

use std::mem::MaybeUninit;

use anyhow::{Context as _, Result};
use libbpf_rs::{OpenObject, ProgramInput, ProgramMut};

/// Storage of an open object. The caller of [`Opened::open`] owns it, because a skeleton borrows
/// from it.
pub type Slot = MaybeUninit<OpenObject>;

/// The text of a char array of a BPF side, such as the name of a task: up to the first zero byte.
/// Invalid UTF-8 becomes U+FFFD.
#[must_use]
pub fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|byte| byte.cast_unsigned()).collect();
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// Runs a program of type `syscall` with the argument `args`, and returns its return value.
///
/// # Errors
///
/// If the kernel does not run the program.
pub fn run(program: &ProgramMut<'_>, args: &mut [u8]) -> Result<u32> {
    let input = ProgramInput {
        context_in: (!args.is_empty()).then_some(args),
        ..ProgramInput::default()
    };
    let done = program.test_run(input);
    Ok(done.context("cannot run a BPF program")?.return_value)
}
