// SPDX-License-Identifier: GPL-2.0-only
//! Selects the clang for BPF programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context as _, Result};

/// The minimum version: before 16, clang truncates 64-bit enumerators.
pub(super) const CLANG_MIN: u32 = 16;

/// The newest version for which a name with a number (`clang-22`) is tried.
const CLANG_MAX: u32 = 22;

/// A clang that is new enough.
#[derive(Debug)]
pub(super) struct Clang {
    path: PathBuf,
}

impl Clang {
    /// The clang that `BPF_CLANG` names, or else the first clang that is found and new enough.
    pub(super) fn find() -> Result<Self> {
        if let Some(name) = env::var_os("BPF_CLANG").filter(|name| !name.is_empty()) {
            let path = PathBuf::from(name);
            let version = version(&path)
                .with_context(|| format!("BPF_CLANG={} does not run", path.display()))?;
            if version < CLANG_MIN {
                bail!(
                    "BPF_CLANG={} is clang {version}: at least {CLANG_MIN} is needed",
                    path.display()
                );
            }
            return Ok(Self { path });
        }
        let numbered = (CLANG_MIN..=CLANG_MAX).rev().map(|n| format!("clang-{n}"));
        std::iter::once("clang".to_owned())
            .chain(numbered)
            .map(PathBuf::from)
            .find(|name| version(name).is_some_and(|found| found >= CLANG_MIN))
            .map(|path| Self { path })
            .with_context(|| {
                format!(
                    "clang >= {CLANG_MIN} is needed for BPF programs: install one, or name it in \
                     BPF_CLANG"
                )
            })
    }

    /// The path or name of the program.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Points bindgen to this clang's libclang, unless `LIBCLANG_PATH` is set. By default, bindgen
    /// loads any version that it finds, and an old version may interpret headers differently.
    pub(super) fn use_for_bindgen(&self) {
        if env::var_os("LIBCLANG_PATH").is_some() {
            return;
        }
        let Some(resources) = output(&self.path, "-print-resource-dir") else {
            return;
        };
        // The path is …/lib/clang/19. Some distributions have 64-bit libraries in lib64.
        let Some(lib) = Path::new(resources.trim()).ancestors().nth(2) else {
            return;
        };
        let dirs = [lib.to_path_buf(), lib.with_file_name("lib64")];
        if let Some(dir) = dirs.iter().find(|dir| has_libclang(dir)) {
            env::set_var("LIBCLANG_PATH", dir);
        }
    }
}

fn has_libclang(dir: &Path) -> bool {
    dir.read_dir().into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libclang") && name.contains(".so") && !name.contains("cpp")
    })
}

/// Major version of a clang; `None` if it cannot be determined.
fn version(clang: &Path) -> Option<u32> {
    output(clang, "-dumpversion")?
        .split('.')
        .next()?
        .trim()
        .parse()
        .ok()
}

fn output(program: &Path, arg: &str) -> Option<String> {
    let output = Command::new(program).arg(arg).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
