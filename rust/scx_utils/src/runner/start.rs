// SPDX-License-Identifier: GPL-2.0-only
//! The inputs of a generation.

use std::cell::OnceCell;

use anyhow::{Context as _, Result};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};

use super::CommonOpts;
use crate::bpf::{Attached, Loaded, OpenOptions, Opened, Slot};
use crate::compat::KernelBtf;
use crate::hotplug::HotplugToken;
use crate::kernel::SchedExt;
use crate::topology::Topology;

/// The start of a generation. `new()` reads the kernel's hotplug count, and `topology()` reads the
/// CPUs only after that. At the attach, the kernel compares this count with its present count, and
/// so detects any CPU hotplug since `new()`.
#[derive(Debug)]
pub struct Start<'a> {
    opts: &'a CommonOpts,
    open: &'a OpenOptions,
    kernel: &'a SchedExt,
    token: HotplugToken,
    generation: u64,
    /// Read on first use.
    btf: OnceCell<KernelBtf>,
}

impl<'a> Start<'a> {
    pub(super) fn new(
        opts: &'a CommonOpts,
        open: &'a OpenOptions,
        kernel: &'a SchedExt,
        generation: u64,
        btf: Option<KernelBtf>,
    ) -> Result<Self> {
        let token = HotplugToken::read(kernel.root())?;
        Ok(Self {
            opts,
            open,
            kernel,
            token,
            generation,
            btf: btf.map(OnceCell::from).unwrap_or_default(),
        })
    }

    /// The hotplug count at the start.
    #[must_use]
    pub fn token(&self) -> &HotplugToken {
        &self.token
    }

    /// The number of restarts before this generation.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How often `--verbose` was given.
    #[must_use]
    pub fn verbose(&self) -> u8 {
        self.opts.verbose
    }

    /// The current CPUs, caches and nodes.
    ///
    /// # Errors
    ///
    /// If no online CPU is found in sysfs.
    pub fn topology(&self) -> Result<Topology> {
        Topology::read(&self.token).context("cannot detect the CPUs")
    }

    /// The kernel's type information, to test for features.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn kernel_btf(&self) -> Result<&KernelBtf> {
        if let Some(btf) = self.btf.get() {
            return Ok(btf);
        }
        let read = KernelBtf::read(self.kernel.root())
            .context("cannot read the kernel's type information")?;
        Ok(self.btf.get_or_init(|| read))
    }

    /// Opens the BPF side, and applies the common options to it.
    ///
    /// # Errors
    ///
    /// The errors of [`Opened::open`], or if the kernel or the BPF side does not support an option.
    pub fn open<'obj, B>(&self, builder: B, slot: &'obj mut Slot) -> Result<Opened<B::Output>>
    where
        B: SkelBuilder<'obj>,
    {
        let mut opened = Opened::open(builder, &self.token, self.open, slot)?;
        opened.set_exit_dump_len(self.opts.exit_dump_len)?;
        if self.opts.partial {
            opened
                .set_ops_flag(self.kernel_btf()?, "SCX_OPS_SWITCH_PARTIAL")
                .context("this kernel does not support --partial")?;
        }
        Ok(opened)
    }

    /// Attaches the BPF side.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the scheduler. If another scheduler is running already, the error
    /// names it.
    pub fn attach<'obj, S: Skel<'obj>>(&self, loaded: Loaded<S>) -> Result<Attached<S>> {
        loaded.attach(self.kernel)
    }

    /// Loads and attaches the BPF side, for a scheduler that has nothing to do in between.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the BPF programs or the scheduler.
    pub fn load_and_attach<'obj, S>(&self, opened: Opened<S>) -> Result<Attached<S::Output>>
    where
        S: OpenSkel<'obj>,
    {
        self.attach(opened.load()?)
    }
}
