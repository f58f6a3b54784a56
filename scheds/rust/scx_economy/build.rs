// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side.

fn main() -> anyhow::Result<()> {
    scx_cargo::BpfBuilder::new()?
        .intf("src/bpf/intf.h")
        .skel("src/bpf/main.bpf.c")
        .build()
}
