// SPDX-License-Identifier: GPL-2.0-only
//! How to get a kernel that can load schedulers on the distribution of this machine.
//! docs/getting-a-kernel.md has the same lines.

use std::fs;
use std::path::Path;

pub(super) const DEBIAN_12: &[&str] = &[
    "Debian 12: its kernels have no sched_ext; add trixie-backports to apt's sources",
    // The full name selects a version that is tested, because the packages of 7.1 and 7.2 in
    // trixie-backports have damaged BTF (see `btf`).
    "apt update; apt install linux-image-6.17.13+deb13-amd64",
    "reboot. Do not use 7.1 and 7.2 from there: their BTF is damaged",
];
pub(super) const DEBIAN_13: &[&str] = &[
    "Debian 13: its kernel has no sched_ext; add trixie-backports to apt's sources",
    // The full name selects a version that is tested, because the packages of 7.1 and 7.2 in
    // trixie-backports have damaged BTF (see `btf`).
    "apt update; apt install linux-image-6.17.13+deb13-amd64",
    "reboot. Do not use 7.1 and 7.2 from there: their BTF is damaged",
];
pub(super) const DEBIAN_SID: &[&str] = &[
    "Debian testing and unstable: the kernel of unstable, from 7.2.13 on, has sched_ext",
    "apt install -t unstable linux-image-amd64",
    "reboot",
];
pub(super) const UBUNTU: &[&str] = &[
    "Ubuntu 25.04 and newer: its own kernel has sched_ext",
    "apt install linux-generic; grep SCHED_CLASS_EXT /boot/config-*",
    "reboot into a kernel where this prints CONFIG_SCHED_CLASS_EXT=y",
];
pub(super) const UBUNTU_24_04: &[&str] = &[
    "Ubuntu 24.04: the hardware enablement kernel, 6.14 or newer, has sched_ext; 6.8 has not",
    "apt install linux-generic-hwe-24.04; grep SCHED_CLASS_EXT /boot/config-*",
    "reboot into a kernel where this prints CONFIG_SCHED_CLASS_EXT=y",
];
pub(super) const UBUNTU_OLD: &[&str] = &[
    "Ubuntu before 24.04: its kernels have no sched_ext",
    "upgrade to 24.04 with the hardware enablement kernel, or to 25.04 or newer",
];
pub(super) const FEDORA: &[&str] = &[
    "Fedora: its own kernel, from 6.12 on, has sched_ext",
    "dnf upgrade --refresh kernel; grep SCHED_CLASS_EXT /boot/config-*",
    "reboot into a kernel where this prints CONFIG_SCHED_CLASS_EXT=y",
];
pub(super) const ARCH: &[&str] = &[
    "Arch Linux: the package linux, from 6.12 on, has sched_ext",
    "pacman -Syu linux",
    "reboot",
];

/// How to get a kernel with sched_ext, in at most three lines, on the machine whose root directory
/// is `root`. There are no lines for unknown distributions and releases.
pub(super) fn kernel(root: &Path) -> &'static [&'static str] {
    let places = ["etc/os-release", "usr/lib/os-release"];
    let read = |place: &&str| fs::read_to_string(root.join(place)).ok();
    let text = places.iter().find_map(read).unwrap_or_default();
    let version = field(&text, "VERSION_ID").map(numbers);
    match (field(&text, "ID"), version) {
        (Some("debian"), None | Some((14.., _))) => DEBIAN_SID,
        (Some("debian"), Some((13, _))) => DEBIAN_13,
        // The kernel packages for Debian 13 depend on nothing that is newer than Debian 12.
        (Some("debian"), Some((12, _))) => DEBIAN_12,
        (Some("ubuntu"), Some(version)) if version >= (25, 4) => UBUNTU,
        (Some("ubuntu"), Some((24, 4))) => UBUNTU_24_04,
        (Some("ubuntu"), Some(version)) if version < (24, 4) => UBUNTU_OLD,
        (Some("fedora"), _) => FEDORA,
        (Some("arch"), _) => ARCH,
        _ => &[],
    }
}

/// A field of os-release(5), whose value may be quoted.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim().trim_matches(['"', '\'']))
}

/// The first two numbers of a version, such as (24, 4) for `24.04`.
fn numbers(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn of(os_release: &str) -> &'static [&'static str] {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("etc")).unwrap();
        fs::write(root.path().join("etc/os-release"), os_release).unwrap();
        kernel(root.path())
    }

    #[test]
    fn distributions_are_known_by_id_and_version() {
        let debian = |version| {
            of(&format!(
                "PRETTY_NAME=x\nID=debian\nVERSION_ID=\"{version}\"\n"
            ))
        };
        assert_eq!(debian("12"), DEBIAN_12);
        assert_eq!(debian("13"), DEBIAN_13);
        assert_eq!(debian("14"), DEBIAN_SID);
        assert_eq!(of("ID=debian\nVERSION_CODENAME=forky"), DEBIAN_SID);
        let ubuntu = |version| {
            of(&format!(
                "VERSION_ID='{version}'\nID=ubuntu\nID_LIKE=debian"
            ))
        };
        assert_eq!(ubuntu("22.04"), UBUNTU_OLD);
        assert_eq!(ubuntu("23.10"), UBUNTU_OLD);
        assert_eq!(ubuntu("24.04"), UBUNTU_24_04);
        assert_eq!(ubuntu("25.04"), UBUNTU);
        assert_eq!(ubuntu("26.10"), UBUNTU);
        assert_eq!(of("ID=fedora\nVERSION_ID=43"), FEDORA);
        assert_eq!(of("ID=arch"), ARCH);
    }

    #[test]
    fn other_distributions_get_no_advice() {
        for text in [
            "",
            "ID=debian\nVERSION_ID=11",
            "ID=linuxmint\nID_LIKE=ubuntu",
            "ID=gentoo",
        ] {
            assert!(of(text).is_empty(), "{text}");
        }
        assert!(kernel(Path::new("/no/such/place")).is_empty());
    }

    #[test]
    fn file_of_the_vendor_is_read_if_there_is_no_other() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("usr/lib")).unwrap();
        fs::write(root.path().join("usr/lib/os-release"), "ID=arch\n").unwrap();
        assert_eq!(kernel(root.path()), ARCH);
    }

    #[test]
    fn page_has_the_same_lines() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/getting-a-kernel.md");
        let page = fs::read_to_string(page).unwrap();
        for lines in [
            DEBIAN_12,
            DEBIAN_13,
            DEBIAN_SID,
            UBUNTU,
            UBUNTU_24_04,
            UBUNTU_OLD,
            FEDORA,
            ARCH,
        ] {
            assert!(lines.len() <= 3, "{lines:?}");
            assert!(page.contains(&lines.join("\n")), "{lines:?}");
        }
    }
}
