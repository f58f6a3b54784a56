// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side, which the C program scx_fail uses, too.

fn main() -> anyhow::Result<()> {
    scx_utils::builder::BpfBuilder::new()?
        .skel("../scx_fail.bpf.c")
        .build()
}
