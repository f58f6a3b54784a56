// SPDX-License-Identifier: GPL-2.0-only
//! The machine's power profile: whether its user prefers speed or low power.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::cpumask::MAX_NR_CPU_IDS;
use crate::topology::sysfs;

mod daemon;
mod supply;

use daemon::Daemon;

pub use daemon::Watch;
pub use supply::Supply;

/// Directory of the cpufreq policies. There is at most one policy for each CPU.
const POLICIES: &str = "sys/devices/system/cpu/cpufreq";

/// A power profile. The variants are in ascending order of power.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Profile {
    /// As little power as possible.
    PowerSave,
    /// A compromise that prefers low power to speed.
    BalancedPower,
    /// A compromise that prefers speed to low power.
    BalancedPerformance,
    /// As fast as possible.
    Performance,
}

/// `powersave`, `balanced_power`, `balanced_performance` or `performance`.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PowerSave => "powersave",
            Self::BalancedPower => "balanced_power",
            Self::BalancedPerformance => "balanced_performance",
            Self::Performance => "performance",
        })
    }
}

impl Profile {
    /// Converts an `energy_performance_preference`. `default` and numbers are unknown: their
    /// meaning depends on the firmware.
    fn from_preference(word: &str) -> Option<Self> {
        match word {
            "power" => Some(Self::PowerSave),
            "balance_power" => Some(Self::BalancedPower),
            "balance_performance" => Some(Self::BalancedPerformance),
            "performance" => Some(Self::Performance),
            _ => None,
        }
    }

    /// Converts a `scaling_governor` of the `scaling_driver` `driver`. `None` for governors other
    /// than `powersave` and `performance`, most of which follow the load. `None` also for
    /// `powersave` of intel_pstate, which follows the load, too.
    fn from_governor(word: &str, driver: &str) -> Option<Self> {
        match word {
            "powersave" if driver != "intel_pstate" => Some(Self::PowerSave),
            "performance" => Some(Self::Performance),
            _ => None,
        }
    }

    /// Converts a profile of power-profiles-daemon.
    fn from_daemon(word: &str) -> Option<Self> {
        match word {
            "power-saver" => Some(Self::PowerSave),
            "balanced" => Some(Self::BalancedPerformance),
            "performance" => Some(Self::Performance),
            _ => None,
        }
    }
}

/// Where the power profile is read from: the cpufreq driver's energy preference, else the governor
/// if it implies a profile, else power-profiles-daemon.
///
/// A separate thread queries the daemon. The thread is started when it is first needed, and ends
/// after the source is dropped. A daemon that does not run is not started.
#[derive(Debug)]
pub struct ProfileSource {
    root: PathBuf,
    daemon: OnceLock<Daemon>,
}

impl ProfileSource {
    /// For the machine with this root directory: "/", except in tests.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.into(),
            daemon: OnceLock::new(),
        }
    }

    /// The current profile; None if it is unknown. Reads a few small files of sysfs, and waits for
    /// nothing else: a profile of the daemon is known some time after the first call.
    pub fn read(&self) -> Option<Profile> {
        let start = || Daemon::start(&self.root);
        self.sysfs_profile()
            .or_else(|| self.daemon.get_or_init(start).profile())
    }

    fn sysfs_profile(&self) -> Option<Profile> {
        let dir = self.root.join(POLICIES);
        let policies = sysfs::numbered(&dir, "policy", MAX_NR_CPU_IDS);
        let file = |policy: &usize, name: &str| dir.join(format!("policy{policy}")).join(name);
        let governor = || {
            let policy = |policy| Some((policy, word(&file(policy, "scaling_governor")).ok()?));
            let (policy, governor) = policies.iter().find_map(policy)?;
            let driver = word(&file(policy, "scaling_driver")).unwrap_or_default();
            Profile::from_governor(&governor, &driver)
        };
        let mut preferences = policies
            .iter()
            .map(|policy| word(&file(policy, "energy_performance_preference")))
            // If a file does not exist, the driver has no preferences, or the policy has
            // disappeared.
            .filter(|word| !matches!(word, Err(error) if error.kind() == io::ErrorKind::NotFound))
            .peekable();
        if preferences.peek().is_none() {
            return governor();
        }
        let preference = preferences.find_map(Result::ok);
        preference
            .and_then(|word| Profile::from_preference(&word))
            // Drivers with preferences normally use the governor powersave: ignore it.
            .or_else(|| governor().filter(|profile| *profile == Profile::Performance))
    }
}

/// The text of a file without the newline.
fn word(path: &Path) -> io::Result<String> {
    Ok(sysfs::text(path)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Profile::{BalancedPerformance, BalancedPower, Performance, PowerSave};
    use super::*;

    const EPP: &str = "energy_performance_preference";
    const GOVERNOR: &str = "scaling_governor";

    /// A root with policies that have these files.
    fn machine(files: &[(&str, &str, &str)]) -> (tempfile::TempDir, ProfileSource) {
        let root = tempfile::tempdir().unwrap();
        for (policy, file, content) in files {
            let dir = root.path().join(POLICIES).join(policy);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(file), content).unwrap();
        }
        let source = ProfileSource::new(root.path());
        (root, source)
    }

    fn profile(files: &[(&str, &str, &str)]) -> Option<Profile> {
        machine(files).1.sysfs_profile()
    }

    #[test]
    fn preferences() {
        let words = [
            ("power\n", Some(PowerSave)),
            ("balance_power\n", Some(BalancedPower)),
            ("balance_performance\n", Some(BalancedPerformance)),
            ("performance\n", Some(Performance)),
            ("performance", Some(Performance)),
            ("default\n", None),
            ("128\n", None),
            ("0\n", None),
            ("", None),
            ("Power\n", None),
            ("power performance\n", None),
        ];
        for (word, want) in words {
            assert_eq!(profile(&[("policy0", EPP, word)]), want, "{word:?}");
        }
    }

    #[test]
    fn governors() {
        let words = [
            ("powersave\n", Some(PowerSave)),
            ("performance\n", Some(Performance)),
            ("schedutil\n", None),
            ("ondemand\n", None),
            ("conservative\n", None),
            ("userspace\n", None),
            ("", None),
        ];
        for (word, want) in words {
            assert_eq!(profile(&[("policy0", GOVERNOR, word)]), want, "{word:?}");
        }
    }

    /// Without HWP, intel_pstate has no preferences, and its governor powersave follows the load.
    #[test]
    fn governors_of_intel_pstate() {
        let of = |driver, governor| {
            profile(&[
                ("policy0", "scaling_driver", driver),
                ("policy0", GOVERNOR, governor),
            ])
        };
        assert_eq!(of("intel_pstate\n", "powersave\n"), None);
        assert_eq!(of("intel_pstate\n", "performance\n"), Some(Performance));
        assert_eq!(of("intel_cpufreq\n", "powersave\n"), Some(PowerSave));
        assert_eq!(of("acpi-cpufreq\n", "powersave\n"), Some(PowerSave));
    }

    #[test]
    fn preference_holds_before_the_governor() {
        let pairs = [
            (
                "balance_performance",
                "powersave",
                Some(BalancedPerformance),
            ),
            ("power", "performance", Some(PowerSave)),
            ("default", "powersave", None),
            ("200", "powersave", None),
            ("default", "performance", Some(Performance)),
            ("default", "schedutil", None),
        ];
        for (epp, governor, want) in pairs {
            let files = [("policy0", EPP, epp), ("policy0", GOVERNOR, governor)];
            assert_eq!(profile(&files), want, "{epp} {governor}");
        }
    }

    #[test]
    fn first_policy_by_number_that_has_one() {
        let files = [
            ("policy0", GOVERNOR, "powersave"),
            ("policy10", EPP, "performance"),
            ("policy2", EPP, "balance_power"),
            ("policyX", EPP, "power"),
            ("policy", EPP, "power"),
        ];
        assert_eq!(profile(&files), Some(BalancedPower));
        let files = [
            ("policy0", "related_cpus", "0"),
            ("policy4", GOVERNOR, "performance"),
            ("policy8", GOVERNOR, "powersave"),
        ];
        assert_eq!(profile(&files), Some(Performance));
    }

    #[test]
    fn unreadable_files_are_skipped() {
        let files = [
            ("policy0", GOVERNOR, "powersave"),
            ("policy1", EPP, "power"),
        ];
        let (root, source) = machine(&files);
        let unreadable = root.path().join(POLICIES).join("policy0").join(EPP);
        fs::create_dir(&unreadable).unwrap();
        assert_eq!(source.sysfs_profile(), Some(PowerSave));
        fs::remove_dir_all(root.path().join(POLICIES).join("policy1")).unwrap();
        // The driver has preferences, so the governor powersave does not count.
        assert_eq!(source.sysfs_profile(), None);
        fs::remove_dir(&unreadable).unwrap();
        assert_eq!(source.sysfs_profile(), Some(PowerSave));
        fs::write(
            root.path().join(POLICIES).join("policy0").join(GOVERNOR),
            [0xff],
        )
        .unwrap();
        assert_eq!(source.sysfs_profile(), None);
    }

    #[test]
    fn machine_without_policies_and_bus() {
        let (root, source) = machine(&[]);
        assert_eq!(source.read(), None);
        assert_eq!(source.read(), None);
        // Later changes are seen.
        let dir = root.path().join(POLICIES).join("policy0");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(EPP), "power\n").unwrap();
        assert_eq!(source.read(), Some(PowerSave));
        fs::write(dir.join(EPP), "performance\n").unwrap();
        assert_eq!(source.read(), Some(Performance));
    }

    #[test]
    fn words_of_the_daemon() {
        let words = [
            ("power-saver", Some(PowerSave)),
            ("balanced", Some(BalancedPerformance)),
            ("performance", Some(Performance)),
            ("", None),
            ("powersave", None),
        ];
        for (word, want) in words {
            assert_eq!(Profile::from_daemon(word), want, "{word:?}");
        }
    }

    #[test]
    fn names() {
        let names = [PowerSave, BalancedPower, BalancedPerformance, Performance];
        assert_eq!(
            names.map(|profile| profile.to_string()),
            [
                "powersave",
                "balanced_power",
                "balanced_performance",
                "performance"
            ]
        );
    }
}
