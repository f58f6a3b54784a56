// SPDX-License-Identifier: GPL-2.0-only
//! Macros for schedulers.

/// Includes what [`BpfBuilder`](crate::builder) has generated, as the modules `bpf_skel`,
/// `bpf_kfuncs` (required kfuncs) and, if there is a shared header, `bpf_intf`; use
/// `include_bpf!(skel)` if there is none. The workspace's lints are disabled for generated code.
#[macro_export]
macro_rules! include_bpf {
    () => {
        $crate::include_bpf!(skel);

        #[allow(
            missing_docs,
            unreachable_pub,
            dead_code,
            clippy::all,
            clippy::pedantic
        )]
        #[allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]
        // bindgen's `Default` of a struct with a long array contains unsafe code.
        #[allow(clippy::undocumented_unsafe_blocks)]
        mod bpf_intf {
            include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
        }
    };
    (skel) => {
        #[allow(
            missing_docs,
            unreachable_pub,
            rust_2018_idioms,
            clippy::all,
            clippy::pedantic
        )]
        #[allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
        mod bpf_skel {
            include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
        }

        #[allow(missing_docs, unreachable_pub, dead_code)]
        mod bpf_kfuncs {
            include!(concat!(env!("OUT_DIR"), "/bpf_kfuncs.rs"));
        }
    };
}
