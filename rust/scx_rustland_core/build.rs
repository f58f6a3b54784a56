// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side, for schedulers that do not have their own.

use std::env;

fn main() -> anyhow::Result<()> {
    // Only the feature `runtime` uses the result. A scheduler's build script needs only `builder`.
    if env::var_os("CARGO_FEATURE_RUNTIME").is_none() {
        return Ok(());
    }
    scx_cargo::BpfBuilder::new()?
        .include("include")
        .intf("include/rustland/intf.h")
        .skel("src/bpf/main.bpf.c")
        .build()
}
