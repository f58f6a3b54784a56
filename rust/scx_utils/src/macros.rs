// SPDX-License-Identifier: GPL-2.0-only
//! Macros for the crates of schedulers.

/// Brings in what [`BpfBuilder`](crate::builder) has generated, as the modules `bpf_skel`,
/// `bpf_kfuncs` (what the kernel has to have) and, for who has a shared header, `bpf_intf`;
/// `include_bpf!(skel)` is for who has none. What the generators write is theirs: none of the
/// workspace's lints apply to it.
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
        // bindgen's `Default` of a struct with a long array.
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
