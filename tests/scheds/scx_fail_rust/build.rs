// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side, which it shares with the C program of this folder.

fn main() -> anyhow::Result<()> {
    scx_utils::builder::BpfBuilder::new()?
        .skel("../scx_fail.bpf.c")
        .build()
}
