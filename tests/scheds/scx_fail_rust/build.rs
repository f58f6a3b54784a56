// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF half, which the C program of this folder has too.

fn main() -> anyhow::Result<()> {
    scx_utils::builder::BpfBuilder::new()?
        .skel("../scx_fail.bpf.c")
        .build()
}
