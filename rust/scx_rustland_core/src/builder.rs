// SPDX-License-Identifier: GPL-2.0-only
//! For build scripts: builds a scheduler's own BPF side, which extends the BPF side of this crate.

use std::path::PathBuf;

use anyhow::Result;
use scx_cargo::BpfBuilder;

/// Builds a scheduler's own BPF side, which extends the BPF side of this crate. Its source includes
/// `<rustland/rustland.bpf.h>`, which documents how to override callbacks.
///
/// ```no_run
/// // build.rs
/// fn main() -> anyhow::Result<()> {
///     scx_rustland_core::RustLandBuilder::new()?
///         .skel("src/bpf/main.bpf.c")
///         .build()
/// }
/// ```
///
/// The scheduler includes the skeleton with `scx_utils::include_bpf!(skel)`, and passes the opened
/// object to `Driver::attach_opened`. The builder writes into cargo's `OUT_DIR` only.
#[derive(Debug)]
pub struct RustLandBuilder(BpfBuilder);

impl RustLandBuilder {
    /// A builder that writes into cargo's `OUT_DIR`.
    ///
    /// # Errors
    ///
    /// If there is no clang of version 16 or newer, or this is not called from a build script.
    pub fn new() -> Result<Self> {
        // The headers are part of this package, wherever cargo has unpacked it.
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
        Ok(Self(BpfBuilder::new()?.include(include)))
    }

    /// Sets the header that the scheduler's BPF side shares with user space ([`BpfBuilder::intf`]).
    #[must_use]
    pub fn intf(self, header: impl Into<PathBuf>) -> Self {
        Self(self.0.intf(header))
    }

    /// Sets the source of the BPF side ([`BpfBuilder::skel`]).
    #[must_use]
    pub fn skel(self, source: impl Into<PathBuf>) -> Self {
        Self(self.0.skel(source))
    }

    /// Compiles and generates everything, and declares the dependencies to cargo.
    ///
    /// # Errors
    ///
    /// Errors of clang and bindgen, with their messages, and of the file system.
    pub fn build(self) -> Result<()> {
        self.0.build()
    }
}
