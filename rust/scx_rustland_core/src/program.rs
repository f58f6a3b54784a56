// SPDX-License-Identifier: GPL-2.0-only
//! BPF programs that user space runs with a system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use anyhow::{Context as _, Result};

/// A program of type `syscall`. It owns a file descriptor, so it can be run on any thread.
#[derive(Debug)]
pub(crate) struct SyscallProgram(OwnedFd);

impl SyscallProgram {
    pub(crate) fn new(program: &impl AsFd) -> Result<Self> {
        let fd = program.as_fd().try_clone_to_owned();
        Ok(Self(fd.context("cannot keep a BPF program open")?))
    }

    /// Runs the program on the calling thread with `args` as its context, and returns the program's
    /// return value. The kernel copies the context back to `args`.
    pub(crate) fn run(&self, args: &mut [u8]) -> Result<i32> {
        let mut opts = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>().try_into()?,
            ..Default::default()
        };
        if !args.is_empty() {
            opts.ctx_in = args.as_mut_ptr().cast_const().cast();
            opts.ctx_size_in = args.len().try_into()?;
        }
        // SAFETY: the options contain their own size. Their pointers are valid for the sizes given,
        // and the memory is borrowed for writing.
        let err = unsafe { libbpf_sys::bpf_prog_test_run_opts(self.0.as_raw_fd(), &mut opts) };
        if err < 0 {
            return Err(io::Error::from_raw_os_error(-err)).context("cannot run a BPF program");
        }
        Ok(opts.retval.cast_signed())
    }
}
