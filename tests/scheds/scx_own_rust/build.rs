// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side.

fn main() -> anyhow::Result<()> {
    scx_rustland_core::RustLandBuilder::new()?
        .skel("src/bpf/main.bpf.c")
        .build()
}
