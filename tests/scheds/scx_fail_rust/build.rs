// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side, which the C program `scx_fail` also uses.

fn main() -> anyhow::Result<()> {
    scx_cargo::BpfBuilder::new()?
        .skel("../scx_fail.bpf.c")
        .build()
}
