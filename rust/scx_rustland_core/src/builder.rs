// SPDX-License-Identifier: GPL-2.0-only
//! For build scripts: builds a scheduler's own BPF side, which includes and extends this crate's.

use std::path::PathBuf;

use anyhow::Result;
use scx_cargo::BpfBuilder;

/// Builds a scheduler's own BPF side on top of this crate's. Its source includes
/// `<rustland/rustland.bpf.h>`, which documents how.
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
/// `scx_utils::include_bpf!(skel)` includes the skeleton; pass the object to
/// `Driver::attach_opened`. Writes into cargo's `OUT_DIR` only.
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

    /// The scheduler's own header, which both sides share; see [`BpfBuilder::intf`].
    #[must_use]
    pub fn intf(self, header: impl Into<PathBuf>) -> Self {
        Self(self.0.intf(header))
    }

    /// The BPF program; see [`BpfBuilder::skel`].
    #[must_use]
    pub fn skel(self, source: impl Into<PathBuf>) -> Self {
        Self(self.0.skel(source))
    }

    /// Compiles and generates everything, and declares the dependencies to cargo.
    ///
    /// # Errors
    ///
    /// Those of clang, with its messages, and of the file system.
    pub fn build(self) -> Result<()> {
        self.0.build()
    }
}
