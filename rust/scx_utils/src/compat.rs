// SPDX-License-Identifier: GPL-2.0-only
//! What the running kernel has, by its type information. Never by its version: distributions
//! take features back and leave others out.

use std::path::Path;

use libbpf_rs::btf::types::{Func, Var};
use libbpf_rs::btf::Btf;

use crate::btf;

/// Below the root directory.
const PATH: &str = "sys/kernel/btf/vmlinux";

/// The kernel's type information. Some megabytes, read when it is made: drop it after use.
#[derive(Debug)]
pub struct KernelBtf {
    btf: Btf<'static>,
}

impl KernelBtf {
    /// Reads `/sys/kernel/btf/vmlinux` below `root`, which is "/" but in tests. No other place is
    /// searched: a kernel without this file cannot load a scheduler.
    ///
    /// # Errors
    ///
    /// If there is no such file, or it is damaged.
    pub fn read(root: &Path) -> libbpf_rs::Result<Self> {
        let btf = Btf::from_path(root.join(PATH))?;
        Ok(Self { btf })
    }

    /// Whether the kernel has a function or variable of this name that BPF programs may use:
    /// `scx_bpf_dsq_peek`, say.
    #[must_use]
    pub fn has_ksym(&self, name: &str) -> bool {
        btf::find::<Func<'_>>(&self.btf, name).is_some()
            || btf::find::<Var<'_>>(&self.btf, name).is_some()
    }

    /// Whether a struct has a member: `has_member("sched_ext_ops", "cpu_online")`.
    #[must_use]
    pub fn has_member(&self, name: &str, member: &str) -> bool {
        btf::has_member(&self.btf, name, member)
    }

    /// The value of an enumerator: `enumerator("scx_ops_flags", "SCX_OPS_SWITCH_PARTIAL")`.
    /// `None` if the kernel does not know it.
    #[must_use]
    pub fn enumerator(&self, name: &str, enumerator: &str) -> Option<u64> {
        btf::enumerator(&self.btf, name, enumerator)
    }

    /// Whether kfuncs show an argument that the kernel's build should have taken out of their
    /// public prototypes. Since 7.1 many have such a hidden one; where an old pahole wrote the
    /// type information it is not taken out of all, and no program can call those. Debian's
    /// backports of 7.1 and 7.2 are such kernels.
    #[must_use]
    pub fn is_defective(&self) -> bool {
        btf::parameter_count(&self.btf, "scx_bpf_create_dsq").is_some_and(|count| count > 2)
    }
}
