// SPDX-License-Identifier: GPL-2.0-only
//! Features of the running kernel, detected from its type information (BTF) and never from its
//! version: distributions backport some features and omit others.

use std::path::Path;

use libbpf_rs::btf::types::{Func, Var};
use libbpf_rs::btf::{Btf, BtfKind};

use crate::btf;

/// The file of the kernel's type information, relative to the root directory.
const PATH: &str = "sys/kernel/btf/vmlinux";

/// The kernel's type information. It takes several MB of memory, so drop it after use.
#[derive(Debug)]
pub struct KernelBtf {
    btf: Btf<'static>,
}

impl KernelBtf {
    /// Reads `/sys/kernel/btf/vmlinux` below `root`, which is "/" except in tests. No other path is
    /// searched: a kernel without this file cannot load a scheduler.
    ///
    /// # Errors
    ///
    /// If there is no such file, or it is damaged.
    pub fn read(root: &Path) -> libbpf_rs::Result<Self> {
        let btf = Btf::from_path(root.join(PATH))?;
        Ok(Self { btf })
    }

    /// Whether the kernel's type information has a function or variable of this name, such as the
    /// kfunc `scx_bpf_dsq_peek`.
    #[must_use]
    pub fn has_ksym(&self, name: &str) -> bool {
        btf::find::<Func<'_>>(&self.btf, BtfKind::Func, name).is_some()
            || btf::find::<Var<'_>>(&self.btf, BtfKind::Var, name).is_some()
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

    /// Whether the kernel has a deadline server that reserves CPU time for the ext class. Without
    /// it, tasks of higher classes, such as the fair class, can starve the tasks of the ext class.
    #[must_use]
    pub fn has_ext_server(&self) -> bool {
        self.has_member("rq", "ext_server")
    }

    /// Whether any kfunc has an argument that the kernel's build should have stripped from its
    /// public prototype. Since 7.1 many kfuncs have such a hidden argument, `aux`. Only their
    /// variants with the suffix `_impl` should have it in BTF. A build with an old pahole leaves it
    /// in some of the public prototypes, and BPF programs cannot call a kfunc that still has it.
    /// Which kfuncs are affected depends on the build. Debian's backports of 7.1 and 7.2 are
    /// defective in this way.
    #[must_use]
    pub fn is_defective(&self) -> bool {
        btf::any_ends_with_parameter(&self.btf, b"scx_bpf_", b"_impl", "aux")
    }
}

/// The name that libbpf looks up for an extern called `name`: without the last `___suffix`. Only a
/// triple underscore between two characters that are not underscores counts, and only the last
/// suffix is cut (`bpf_core_essential_name_len()` of libbpf 1.7.0).
#[must_use]
pub fn essential_name(name: &str) -> &str {
    let is_separator = |w: &[u8]| w[0] != b'_' && &w[1..4] == b"___" && w[4] != b'_';
    match name.as_bytes().windows(5).rposition(is_separator) {
        // The cut is before an underscore, so it is always at the boundary of a character.
        Some(at) => name.get(..=at).unwrap_or(name),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::fs;

    use libbpf_sys as sys;

    use super::*;

    const KFUNC: &CStr = c"scx_bpf_create_dsq";

    /// Type information with an enum of each width, a struct and a variable of the same name, and a
    /// function with these parameters. It is in the kernel's file below a temporary root directory.
    fn kernel(function: &CStr, parameters: &[&CStr]) -> (tempfile::TempDir, KernelBtf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(PATH);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // SAFETY: all names are C strings, the pointer was just created and is freed once, after
        // its bytes were copied.
        unsafe {
            let btf = sys::btf__new_empty();
            // The variable precedes the struct and must not be mistaken for it.
            let int = sys::btf__add_int(btf, c"int".as_ptr(), 4, 0);
            sys::btf__add_var(btf, c"sched_ext_ops".as_ptr(), 1, int);
            sys::btf__add_struct(btf, c"sched_ext_ops".as_ptr(), 8);
            sys::btf__add_field(btf, c"flags".as_ptr(), int, 0, 0);
            sys::btf__add_field(btf, c"cpu_online".as_ptr(), int, 32, 0);
            sys::btf__add_enum(btf, c"scx_ops_flags".as_ptr(), 4);
            sys::btf__add_enum_value(btf, c"SCX_OPS_SWITCH_PARTIAL".as_ptr(), 8);
            sys::btf__add_enum64(btf, c"scx_enq_flags".as_ptr(), 8, false);
            sys::btf__add_enum64_value(btf, c"SCX_ENQ_PREEMPT".as_ptr(), 1 << 32);
            let prototype = sys::btf__add_func_proto(btf, int);
            for parameter in parameters {
                sys::btf__add_func_param(btf, parameter.as_ptr(), int);
            }
            sys::btf__add_func(btf, function.as_ptr(), sys::BTF_FUNC_GLOBAL, prototype);
            let mut size = 0;
            let data = sys::btf__raw_data(btf, &mut size);
            let bytes = std::slice::from_raw_parts(data.cast::<u8>(), size as usize);
            fs::write(&path, bytes).unwrap();
            sys::btf__free(btf);
        }
        let btf = KernelBtf::read(root.path()).unwrap();
        (root, btf)
    }

    #[test]
    fn essential_names() {
        for (name, want) in [
            ("scx_bpf_dsq_insert", "scx_bpf_dsq_insert"),
            ("scx_bpf_dsq_insert___v2", "scx_bpf_dsq_insert"),
            ("scx_bpf_dsq_insert___v2___x", "scx_bpf_dsq_insert___v2"),
            ("__scx_bpf_select_cpu_and___new", "__scx_bpf_select_cpu_and"),
            // Not separators: nothing before, nothing after, four underscores, two underscores.
            ("___x", "___x"),
            ("a___", "a___"),
            ("a____b", "a____b"),
            ("a__b", "a__b"),
            // One character before the separator, and one after it.
            ("a___b", "a"),
            ("", ""),
        ] {
            assert_eq!(essential_name(name), want, "{name}");
        }
    }

    #[test]
    fn what_the_kernel_has() {
        let (_root, btf) = kernel(KFUNC, &[]);
        assert!(btf.has_ksym("scx_bpf_create_dsq"));
        assert!(!btf.has_ksym("scx_bpf_dsq_peek"));
        assert!(!btf.has_ksym("int"), "a type is not a symbol");
        assert!(btf.has_member("sched_ext_ops", "cpu_online"));
        assert!(!btf.has_member("sched_ext_ops", "cpu_offline"));
        assert!(!btf.has_member("no_such_struct", "flags"));
    }

    #[test]
    fn enumerators_of_either_width() {
        let (_root, btf) = kernel(KFUNC, &[]);
        let value = |name, enumerator| btf.enumerator(name, enumerator);
        assert_eq!(value("scx_ops_flags", "SCX_OPS_SWITCH_PARTIAL"), Some(8));
        assert_eq!(value("scx_enq_flags", "SCX_ENQ_PREEMPT"), Some(1 << 32));
        assert_eq!(value("scx_enq_flags", "SCX_OPS_SWITCH_PARTIAL"), None);
        assert_eq!(value("no_such_enum", "SCX_ENQ_PREEMPT"), None);
    }

    #[test]
    fn shown_hidden_arguments_are_a_defect() {
        let is_defective =
            |function: &CStr, parameters: &[&CStr]| kernel(function, parameters).1.is_defective();
        for function in [KFUNC, c"scx_bpf_dump_bstr"] {
            assert!(!is_defective(function, &[]));
            assert!(!is_defective(function, &[c"aux", c"node"]));
            assert!(is_defective(function, &[c"node", c"aux"]));
        }
        assert!(!is_defective(
            c"scx_bpf_create_dsq_impl",
            &[c"node", c"aux"]
        ));
        assert!(!is_defective(c"bpf_other", &[c"aux"]));
    }

    #[test]
    fn missing_file_is_an_error() {
        assert!(KernelBtf::read(tempfile::tempdir().unwrap().path()).is_err());
    }
}
