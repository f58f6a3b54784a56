// SPDX-License-Identifier: GPL-2.0-only
//! The kernel itself: whether it has sched_ext. Where it has not, its version and configuration
//! tell why. They are asked for nothing else: distributions take features back.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use scx_utils::kernel::SchedExt;

use super::Finding;

/// The first version with sched_ext.
const FIRST: (u32, u32) = (6, 12);

/// What Kconfig wants for sched_ext, and itself.
const OPTIONS: [&str; 4] = [
    "CONFIG_SCHED_CLASS_EXT",
    "CONFIG_BPF_SYSCALL",
    "CONFIG_BPF_JIT",
    "CONFIG_DEBUG_INFO_BTF",
];

pub(super) fn check(sched_ext: &SchedExt) -> Vec<Finding> {
    let root = sched_ext.root();
    let release = read(root, "proc/sys/kernel/osrelease");
    let missing = release
        .as_ref()
        .and_then(|release| missing_options(root, release));
    if sched_ext.state().is_empty() {
        return without_sched_ext(release.as_deref(), missing.as_deref());
    }
    let kernel = release.map(|release| Finding::ok("kernel", format!("Linux {release}")));
    // The configuration of another kernel, if it lacks what is there.
    let configured = missing.is_some_and(|missing| missing.is_empty());
    let config =
        configured.then(|| Finding::ok("config", "has all that sched_ext takes, itself included"));
    let has = Finding::ok("sched_ext", "this kernel has it");
    kernel
        .into_iter()
        .chain(config)
        .chain([has])
        .chain(jit(root))
        .collect()
}

/// The cause, once: the first that is known.
fn without_sched_ext(release: Option<&str>, missing: Option<&[&str]>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(release) = release {
        if version(release).is_some_and(|version| version < FIRST) {
            let text = format!("Linux {release} is too old: sched_ext came with 6.12");
            return vec![Finding::problem("kernel", text, "boot Linux 6.12 or newer")];
        }
        findings.push(Finding::ok("kernel", format!("Linux {release}")));
    }
    let cure = "boot a kernel built with CONFIG_SCHED_CLASS_EXT, Linux 6.12 or newer";
    findings.push(match missing {
        Some(missing @ [_, ..]) => {
            let text = format!("this kernel was built without {}", missing.join(", "));
            let cure = "boot one that was built with it, Linux 6.12 or newer";
            Finding::problem("config", text, cure)
        }
        _ => Finding::problem("sched_ext", "this kernel has no sched_ext", cure),
    });
    findings
}

/// Of its two leading numbers.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Which of the options the kernel was built without; `None` if its configuration cannot be read.
fn missing_options(root: &Path, release: &str) -> Option<Vec<&'static str>> {
    let config = configuration(root, release)?;
    let is_set = |option: &str| config.lines().any(|line| line == format!("{option}=y"));
    Some(OPTIONS.into_iter().filter(|of| !is_set(of)).collect())
}

/// What the kernel says of itself, or else what its package has beside it.
fn configuration(root: &Path, release: &str) -> Option<String> {
    let places = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
    ];
    let unpacked = unpack(&root.join("proc/config.gz")).ok();
    unpacked.or_else(|| places.iter().find_map(|place| read(root, place)))
}

fn unpack(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
    Ok(text)
}

/// Calls of the kernel's functions are compiled, or not made at all. Only root may read it.
fn jit(root: &Path) -> Option<Finding> {
    let enabled = read(root, "proc/sys/net/core/bpf_jit_enable")?;
    Some(if enabled == "0" {
        let text = "the compiler for BPF programs is switched off: no scheduler can be loaded";
        Finding::problem("jit", text, "sysctl net.core.bpf_jit_enable=1")
    } else {
        Finding::ok("jit", "BPF programs are compiled")
    })
}

fn read(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(text.trim_end().to_owned())
}
