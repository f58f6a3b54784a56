// SPDX-License-Identifier: GPL-2.0-only
//! Whether the machine runs on its battery.

use std::fs;
use std::path::Path;

use super::word;

/// Directory of the power supplies.
const SUPPLIES: &str = "sys/class/power_supply";

/// The source of the machine's power.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Supply {
    /// The mains.
    Mains,
    /// A battery.
    Battery,
}

impl Supply {
    /// Reads the source of power from sysfs; `None` if the machine has no battery of its own.
    /// `root` is "/", except in tests. The files do not report changes, so a caller that follows
    /// changes has to poll.
    #[must_use]
    pub fn read(root: &Path) -> Option<Self> {
        let mut is_online = false;
        let mut statuses = Vec::new();
        for entry in fs::read_dir(root.join(SUPPLIES)).ok()?.flatten() {
            let file = |name| word(&entry.path().join(name)).unwrap_or_default();
            // Skip the batteries of devices such as mice.
            if file("scope") == "Device" {
                continue;
            }
            match file("type").as_str() {
                "Battery" => statuses.push(file("status")),
                // 1: a fixed voltage, 2: a programmable one.
                "Mains" | "USB" => is_online |= matches!(file("online").as_str(), "1" | "2"),
                _ => {}
            }
        }
        if statuses.is_empty() {
            return None;
        }
        // A mains supply need not be listed: some machines list nothing but the battery.
        let discharges = statuses.iter().any(|status| status == "Discharging");
        Some(if discharges && !is_online {
            Self::Battery
        } else {
            Self::Mains
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source of power on a machine with these files.
    fn supply(files: &[(&str, &str)]) -> Option<Supply> {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(SUPPLIES).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{content}\n")).unwrap();
        }
        Supply::read(root.path())
    }

    const BATTERY: (&str, &str) = ("BAT0/type", "Battery");
    const MAINS: (&str, &str) = ("AC/type", "Mains");

    #[test]
    fn laptops() {
        let of = |status, online| {
            let status = ("BAT0/status", status);
            supply(&[BATTERY, status, MAINS, ("AC/online", online)])
        };
        assert_eq!(of("Discharging", "0"), Some(Supply::Battery));
        assert_eq!(of("Charging", "1"), Some(Supply::Mains));
        assert_eq!(of("Full", "1"), Some(Supply::Mains));
        // The mains supply is too weak.
        assert_eq!(of("Discharging", "1"), Some(Supply::Mains));
        assert_eq!(of("Discharging", "2"), Some(Supply::Mains));
        // The status of the battery changes with a delay.
        assert_eq!(of("Full", "0"), Some(Supply::Mains));
    }

    #[test]
    fn battery_alone() {
        let of = |status| supply(&[BATTERY, ("BAT0/status", status)]);
        assert_eq!(of("Discharging"), Some(Supply::Battery));
        assert_eq!(of("Charging"), Some(Supply::Mains));
    }

    #[test]
    fn machines_without_batteries() {
        assert_eq!(supply(&[]), None);
        assert_eq!(supply(&[MAINS, ("AC/online", "1")]), None);
        let mouse = [
            ("hid/type", "Battery"),
            ("hid/scope", "Device"),
            ("hid/status", "Discharging"),
        ];
        assert_eq!(supply(&mouse), None);
    }
}
