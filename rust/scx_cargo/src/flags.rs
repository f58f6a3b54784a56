// SPDX-License-Identifier: GPL-2.0-only
//! Compiler flags of BPF programs.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{bail, Context as _, Result};

/// Environment variables that affect the build.
const VARIABLES: [&str; 6] = [
    "BPF_CLANG",
    "BPF_CFLAGS",
    "BPF_BASE_CFLAGS",
    "BPF_EXTRA_CFLAGS_PRE_INCL",
    "BPF_EXTRA_CFLAGS_POST_INCL",
    "LIBCLANG_PATH",
];

/// The base flags, as in scheds/c/meson.build. With -nostdinc, BPF programs use no headers of the
/// build machine.
const BASE: [&str; 9] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-g",
    "-O2",
    "-nostdinc",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
];

/// Architectures that cargo and libbpf support: cargo's name, and libbpf's name (bpf_tracing.h).
const ARCHITECTURES: [(&str, &str); 14] = [
    ("aarch64", "arm64"),
    ("arm", "arm"),
    ("loongarch64", "loongarch"),
    ("mips", "mips"),
    ("mips64", "mips"),
    ("powerpc", "powerpc"),
    ("powerpc64", "powerpc"),
    ("riscv32", "riscv"),
    ("riscv64", "riscv"),
    ("s390x", "s390"),
    ("sparc", "sparc"),
    ("sparc64", "sparc"),
    ("x86", "x86"),
    ("x86_64", "x86"),
];

/// Tells cargo to run the build script again when a variable changes.
pub(super) fn print_rerun_if_env_changed() {
    for variable in VARIABLES {
        println!("cargo:rerun-if-env-changed={variable}");
    }
}

/// All flags except those for file names and for the paths of `BpfBuilder::include`.
/// `libbpf_headers` is the directory that contains `bpf/bpf_helpers.h`.
pub(super) fn cflags(libbpf_headers: &Path) -> Result<Vec<OsString>> {
    if let Some(all) = variable("BPF_CFLAGS") {
        return Ok(all);
    }
    let mut flags = match variable("BPF_BASE_CFLAGS") {
        Some(base) => base,
        None => base()?,
    };
    flags.extend(variable("BPF_EXTRA_CFLAGS_PRE_INCL").unwrap_or_default());
    // The headers are part of this package, wherever cargo has unpacked it.
    flags.push(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include").into());
    flags.push(join("-I", libbpf_headers));
    flags.extend(variable("BPF_EXTRA_CFLAGS_POST_INCL").unwrap_or_default());
    Ok(flags)
}

fn base() -> Result<Vec<OsString>> {
    let mut flags: Vec<OsString> = BASE.map(Into::into).into();
    let arch = cargo("CARGO_CFG_TARGET_ARCH")?;
    let Some((_, name)) = ARCHITECTURES.iter().find(|(known, _)| *known == arch) else {
        bail!("libbpf has no BPF support for the architecture {arch}");
    };
    flags.push(format!("-D__TARGET_ARCH_{name}").into());
    let endian = cargo("CARGO_CFG_TARGET_ENDIAN")?;
    flags.push(format!("-m{endian}-endian").into());
    for (path, name) in [
        (cargo("CARGO_MANIFEST_DIR")?.as_str(), "."),
        (cargo("OUT_DIR")?.as_str(), "build"),
        (env!("CARGO_MANIFEST_DIR"), "scx_cargo"),
    ] {
        flags.push(prefix_map(Path::new(path), name));
    }
    Ok(flags)
}

/// The flag that keeps a path of the build machine out of the program.
pub(super) fn prefix_map(path: &Path, name: &str) -> OsString {
    let mut flag = join("-ffile-prefix-map=", path);
    flag.push("=");
    flag.push(name);
    flag
}

/// A variable that cargo sets for build scripts.
fn cargo(name: &str) -> Result<String> {
    env::var(name).with_context(|| format!("{name} is not set: call this in build.rs"))
}

/// The words of an environment variable; `None` if it is not set, or not UTF-8.
fn variable(name: &str) -> Option<Vec<OsString>> {
    let value = env::var(name).ok()?;
    Some(value.split_whitespace().map(Into::into).collect())
}

pub(super) fn join(flag: &str, path: &Path) -> OsString {
    let mut joined = OsString::from(flag);
    joined.push(path);
    joined
}
