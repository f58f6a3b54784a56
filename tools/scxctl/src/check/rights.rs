// SPDX-License-Identifier: GPL-2.0-only
//! Checks the privileges that are needed to load a scheduler.

use std::fs;
use std::path::Path;

use super::Finding;

// Bits of effective capabilities (include/uapi/linux/capability.h).
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// The `uid_map` of the initial user namespace, which maps all ids to themselves.
const EVERYBODY: [&str; 3] = ["0", "0", "4294967295"];

pub(super) fn check(root: &Path) -> Vec<Finding> {
    process(root).into_iter().chain(lockdown(root)).collect()
}

/// The privileges of this process. A process without them can use scx_loader.
fn process(root: &Path) -> Option<Finding> {
    let status = fs::read_to_string(root.join("proc/self/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let capabilities = u64::from_str_radix(field("CapEff:")?.trim(), 16).ok()?;
    let has = |all: u64| capabilities & all == all;
    Some(if effective_uid(root)? != 0 {
        let text = "loading a scheduler requires root privileges, which this user lacks";
        let cure = "use scx_loader: sudo scxctl start";
        Finding::warning("rights", text, cure)
    } else if is_user_namespace(root) || !(has(CAP_SYS_ADMIN) || has(CAP_BPF | CAP_PERFMON)) {
        let text = "this process is root, but may not load BPF programs, as in a container";
        let cure = "start schedulers outside of the container";
        Finding::warning("rights", text, cure)
    } else {
        Finding::ok("rights", "this process may load schedulers")
    })
}

/// The effective user id of this process.
pub(crate) fn effective_uid(root: &Path) -> Option<u32> {
    let status = fs::read_to_string(root.join("proc/self/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().nth(1)?.parse().ok()
}

/// Whether this process is in a user namespace other than the initial one.
fn is_user_namespace(root: &Path) -> bool {
    let map = fs::read_to_string(root.join("proc/self/uid_map"));
    map.is_ok_and(|map| !map.split_whitespace().eq(EVERYBODY))
}

/// The lockdown mode. The file lists all modes, the current one in brackets.
fn lockdown(root: &Path) -> Option<Finding> {
    let modes = fs::read_to_string(root.join("sys/kernel/security/lockdown")).ok()?;
    Some(if modes.contains("[confidentiality]") {
        let text = "BPF programs may not read the kernel's memory (lockdown=confidentiality)";
        Finding::problem(
            "lockdown",
            text,
            "boot with lockdown=integrity, or without lockdown=",
        )
    } else {
        Finding::ok("lockdown", "BPF programs may read the kernel's memory")
    })
}
