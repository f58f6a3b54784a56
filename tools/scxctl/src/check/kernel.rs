// SPDX-License-Identifier: GPL-2.0-only
//! Checks whether the kernel has sched_ext, and whether the BPF JIT is enabled. Distributions
//! backport and disable features, so the version and the configuration of the kernel do not decide
//! whether it has sched_ext. They are shown, and explain why a kernel has none.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use scx_utils::kernel::SchedExt;

use super::Finding;

/// The first kernel version with sched_ext.
const FIRST: (u32, u32) = (6, 12);

/// The Kconfig option of sched_ext, and the options on which it depends.
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
        return without_sched_ext(root, release.as_deref(), missing.as_deref());
    }
    let kernel = release.map(|release| Finding::ok("kernel", format!("Linux {release}")));
    // The kernel has sched_ext, so a configuration that says otherwise belongs to another kernel.
    let configured = missing.is_some_and(|missing| missing.is_empty());
    let config =
        configured.then(|| Finding::ok("config", "sched_ext and its dependencies are enabled"));
    let has = Finding::ok("sched_ext", "this kernel has sched_ext");
    kernel
        .into_iter()
        .chain(config)
        .chain([has])
        .chain(jit(root))
        .collect()
}

/// Reports a single cause: a version that is too old, or else missing options, or else just that
/// the kernel has no sched_ext.
fn without_sched_ext(root: &Path, release: Option<&str>, missing: Option<&[&str]>) -> Vec<Finding> {
    let problem = |name, text, cure| Finding::kernel_problem(root, name, text, cure);
    let mut findings = Vec::new();
    if let Some(release) = release {
        if version(release).is_some_and(|version| version < FIRST) {
            let text = format!("Linux {release} is too old: sched_ext requires 6.12");
            return vec![problem("kernel", text, "boot Linux 6.12 or newer")];
        }
        findings.push(Finding::ok("kernel", format!("Linux {release}")));
    }
    let cure = "boot a kernel built with CONFIG_SCHED_CLASS_EXT, Linux 6.12 or newer";
    findings.push(match missing {
        Some(missing @ [_, ..]) => {
            let text = format!("this kernel was built without {}", missing.join(", "));
            let cure = "boot a kernel built with these options, Linux 6.12 or newer";
            problem("config", text, cure)
        }
        _ => problem("sched_ext", "this kernel has no sched_ext".into(), cure),
    });
    findings
}

/// The first two numbers of the kernel's version.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The options that the kernel was built without; `None` if its configuration cannot be read.
fn missing_options(root: &Path, release: &str) -> Option<Vec<&'static str>> {
    let config = configuration(root, release)?;
    let is_set = |option: &str| config.lines().any(|line| line == format!("{option}=y"));
    Some(OPTIONS.into_iter().filter(|of| !is_set(of)).collect())
}

/// The configuration that the running kernel provides in /proc, or else the configuration file that
/// the kernel's package has installed.
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

/// kfuncs require the JIT. The setting is visible only in the initial network namespace.
fn jit(root: &Path) -> Option<Finding> {
    let enabled = read(root, "proc/sys/net/core/bpf_jit_enable")?;
    Some(if enabled == "0" {
        let text = "the BPF JIT is disabled: no scheduler can be loaded";
        Finding::problem("jit", text, "sysctl net.core.bpf_jit_enable=1")
    } else {
        Finding::ok("jit", "the BPF JIT is enabled")
    })
}

fn read(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(text.trim_end().to_owned())
}
