// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF half, for those who have none of their own.

use std::env;

fn main() -> anyhow::Result<()> {
    // Who only builds its own BPF half needs none of this.
    if env::var_os("CARGO_FEATURE_RUNTIME").is_none() {
        return Ok(());
    }
    scx_utils::builder::BpfBuilder::new()?
        .include("include")
        .intf("include/rustland/intf.h")
        .skel("src/bpf/main.bpf.c")
        .build()
}
