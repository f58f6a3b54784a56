// SPDX-License-Identifier: GPL-2.0-only
//! The first phase of a BPF side: its object is open, and the load is prepared.

use std::ffi::CString;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context as _, Result};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use zerocopy::{Immutable, IntoBytes};

use super::{ops, record, Loaded, Slot};
use crate::compat::KernelBtf;
use crate::hotplug::HotplugToken;

/// libbpf's options for opening an object.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Ignore unknown fields of map definitions.
    pub relaxed_maps: bool,
    /// The directory of pinned maps, instead of `/sys/fs/bpf`.
    pub pin_root_path: Option<PathBuf>,
    /// Type information (BTF) for CO-RE relocations, instead of `/sys/kernel/btf/vmlinux`.
    pub btf_custom_path: Option<PathBuf>,
    /// The mount point of the BPF file system from which libbpf creates a BPF token for the load.
    pub bpf_token_path: Option<PathBuf>,
    /// The text of a kernel configuration, for `extern` variables named `CONFIG_*`.
    pub kconfig: Option<String>,
}

/// An open BPF side: its skeleton's `rodata` can be written.
#[derive(Debug)]
pub struct Opened<S> {
    skel: S,
    layout: record::Layout,
}

/// All cgroup callbacks of `sched_ext_ops`, as in `scheds/include/scx/types.bpf.h`.
const CGROUP_CALLBACKS: [&str; 8] = [
    "cgroup_init",
    "cgroup_exit",
    "cgroup_prep_move",
    "cgroup_move",
    "cgroup_cancel_move",
    "cgroup_set_weight",
    "cgroup_set_bandwidth",
    "cgroup_set_idle",
];

impl<S> Opened<S> {
    /// Opens a scheduler's object. When the scheduler attaches, the kernel detects any CPU hotplug
    /// that happened after the token was read, so read all properties of the CPUs after the token.
    ///
    /// # Errors
    ///
    /// If libbpf cannot open the object, the object has no table of callbacks or no exit record, or
    /// an option contains a zero byte.
    pub fn open<'obj, B>(
        mut builder: B,
        token: &HotplugToken,
        options: &OpenOptions,
        slot: &'obj mut Slot,
    ) -> Result<Self>
    where
        B: SkelBuilder<'obj, Output = S>,
        S: OpenSkel<'obj>,
    {
        builder
            .object_builder_mut()
            .relaxed_maps(options.relaxed_maps);
        let strings = Strings::of(options)?;
        let raw = strings.open_opts(&builder)?;
        let mut skel = builder
            .open_opts(raw, slot)
            .context("cannot open the BPF object")?;
        let layout = record::Layout::of(skel.open_object())?;
        ops::set(skel.open_object_mut(), "hotplug_seq", token.seq())?;
        Ok(Self { skel, layout })
    }

    /// Sets how many bytes of debug dump the kernel keeps if it ejects the scheduler. 0 leaves the
    /// BPF side's value unchanged.
    ///
    /// # Errors
    ///
    /// If the object has no exit record.
    pub fn set_exit_dump_len<'obj>(&mut self, dump_len: u32) -> Result<()>
    where
        S: OpenSkel<'obj>,
    {
        if dump_len == 0 {
            return Ok(());
        }
        ops::set(
            self.skel.open_object_mut(),
            "exit_dump_len",
            dump_len.into(),
        )?;
        record::set_dump_len(self.skel.open_object_mut(), dump_len)
    }

    /// Sets the scheduler's name, shown in `/sys/kernel/sched_ext/root/ops`.
    ///
    /// # Errors
    ///
    /// If the name is longer than 127 bytes, or contains a zero byte.
    pub fn set_ops_name<'obj>(&mut self, name: &str) -> Result<()>
    where
        S: OpenSkel<'obj>,
    {
        ops::set_text(self.skel.open_object_mut(), "name", name)
    }

    /// Sets a flag (`SCX_OPS_*`) in `ops.flags`, with the running kernel's bit.
    ///
    /// # Errors
    ///
    /// If the kernel does not know the flag.
    pub fn set_ops_flag<'obj>(&mut self, btf: &KernelBtf, flag: &str) -> Result<()>
    where
        S: OpenSkel<'obj>,
    {
        let Some(bit) = btf.enumerator("scx_ops_flags", flag) else {
            bail!("this kernel does not know {flag}");
        };
        ops::or_flags(self.skel.open_object_mut(), bit)
    }

    /// Removes a callback that the given options do not need, because each call of a callback costs
    /// time.
    ///
    /// # Errors
    ///
    /// If `struct sched_ext_ops` has no such callback.
    pub fn clear_callback<'obj>(&mut self, callback: &str) -> Result<()>
    where
        S: OpenSkel<'obj>,
    {
        ops::clear(self.skel.open_object_mut(), callback)
    }

    /// For a scheduler whose `ops.cpu_release()` re-enqueues the tasks in the local DSQ of a CPU
    /// that a task of a higher class takes. Removes this callback on kernels with its replacements:
    /// `SCX_ENQ_IMMED` (see `scx/immed.bpf.h`) and `scx_bpf_dsq_reenq()`.
    ///
    /// # Errors
    ///
    /// If the callback has to be removed, and the BPF side's `struct sched_ext_ops` lacks it.
    pub fn reenqueue_on_cpu_release<'obj>(&mut self, btf: &KernelBtf) -> Result<()>
    where
        S: OpenSkel<'obj>,
    {
        let has_immed = btf.enumerator("scx_enq_flags", "SCX_ENQ_IMMED").is_some();
        if has_immed && btf.has_ksym("scx_bpf_dsq_reenq") {
            ops::clear(self.skel.open_object_mut(), "cpu_release")
        } else {
            Ok(())
        }
    }

    /// For a scheduler that enqueues migration-disabled tasks itself (see `scx/migration.bpf.h`):
    /// sets `SCX_OPS_ENQ_MIGRATION_DISABLED`, if the kernel has this flag.
    ///
    /// # Errors
    ///
    /// If the object has no `struct sched_ext_ops`.
    pub fn enqueue_migration_disabled<'obj>(&mut self, btf: &KernelBtf) -> Result<()>
    where
        S: OpenSkel<'obj>,
    {
        let flag = "SCX_OPS_ENQ_MIGRATION_DISABLED";
        if btf.enumerator("scx_ops_flags", flag).is_some() {
            self.set_ops_flag(btf, flag)?;
        }
        Ok(())
    }

    /// For a scheduler with cgroup callbacks: removes the callbacks that this kernel does not have.
    /// A kernel without `CONFIG_EXT_GROUP_SCHED` has no cgroup callback. If `are_needed` is false,
    /// because the options do not need them, removes all cgroup callbacks.
    ///
    /// # Errors
    ///
    /// If the BPF side's `struct sched_ext_ops` lacks a callback that has to be removed.
    pub fn fit_cgroups<'obj>(&mut self, btf: &KernelBtf, are_needed: bool) -> Result<()>
    where
        S: OpenSkel<'obj>,
    {
        for callback in CGROUP_CALLBACKS {
            if !are_needed || !btf.has_member("sched_ext_ops", callback) {
                ops::clear(self.skel.open_object_mut(), callback)?;
            }
        }
        // Before 6.15, `SCX_OPS_HAS_CGROUP_WEIGHT` silences a warning. Since 6.15, the kernel warns
        // if this flag is set. 6.15 is detected by the new flag `SCX_OPS_ALLOW_QUEUED_WAKEUP`.
        let warns = btf.enumerator("scx_ops_flags", "SCX_OPS_ALLOW_QUEUED_WAKEUP");
        if are_needed && warns.is_none() {
            self.set_ops_flag(btf, "SCX_OPS_HAS_CGROUP_WEIGHT")?;
        }
        Ok(())
    }

    /// Writes a section that consists of one struct of the shared header, such as a configuration
    /// in `.rodata.NAME`.
    ///
    /// # Errors
    ///
    /// If the object has no such section, or a smaller section.
    pub fn set_section<'obj, T>(&mut self, name: &str, value: &T) -> Result<()>
    where
        S: OpenSkel<'obj>,
        T: IntoBytes + Immutable,
    {
        let object = self.skel.open_object_mut();
        let mut section = object.maps_mut().find(|map| map.name() == name);
        let bytes = section.as_mut().and_then(|map| map.initial_value_mut());
        let bytes = bytes.and_then(|bytes| bytes.get_mut(..size_of::<T>()));
        let bytes = bytes.with_context(|| format!("the BPF side has no section {name}"))?;
        bytes.copy_from_slice(value.as_bytes());
        Ok(())
    }

    /// Loads the programs into the kernel.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the programs. libbpf logs the verifier's messages.
    pub fn load<'obj>(mut self) -> Result<Loaded<S::Output>>
    where
        S: OpenSkel<'obj>,
    {
        ops::leave_out_unused(self.skel.open_object_mut())?;
        let skel = self
            .skel
            .load()
            .context("the kernel refused the BPF programs")?;
        Loaded::new(skel, self.layout)
    }
}

impl<S> Deref for Opened<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.skel
    }
}

impl<S> DerefMut for Opened<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.skel
    }
}

/// Strings of the options. When libbpf opens the object, it copies the strings that it keeps.
struct Strings {
    pin_root_path: Option<CString>,
    btf_custom_path: Option<CString>,
    bpf_token_path: Option<CString>,
    kconfig: Option<CString>,
}

impl Strings {
    fn of(options: &OpenOptions) -> Result<Self> {
        let path = |path: &Option<PathBuf>| path.as_deref().map(c_path).transpose();
        Ok(Self {
            pin_root_path: path(&options.pin_root_path)?,
            btf_custom_path: path(&options.btf_custom_path)?,
            bpf_token_path: path(&options.bpf_token_path)?,
            kconfig: options.kconfig.clone().map(CString::new).transpose()?,
        })
    }

    /// The builder's options with pointers to these strings, which must live until the object is
    /// open.
    fn open_opts<'obj, B: SkelBuilder<'obj>>(
        &self,
        builder: &B,
    ) -> Result<libbpf_sys::bpf_object_open_opts> {
        use libbpf_rs::AsRawLibbpf as _;

        // SAFETY: the builder owns the options that the pointer refers to, and they are copied
        // here.
        let mut opts = unsafe { builder.object_builder().as_libbpf_object().read() };
        let pointer = |string: &Option<CString>, unset| {
            string.as_ref().map_or(unset, |string| string.as_ptr())
        };
        opts.pin_root_path = pointer(&self.pin_root_path, opts.pin_root_path);
        opts.btf_custom_path = pointer(&self.btf_custom_path, opts.btf_custom_path);
        opts.bpf_token_path = pointer(&self.bpf_token_path, opts.bpf_token_path);
        opts.kconfig = pointer(&self.kconfig, opts.kconfig);
        Ok(opts)
    }
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .with_context(|| format!("{} cannot be a path", path.display()))
}
