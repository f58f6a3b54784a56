// SPDX-License-Identifier: GPL-2.0-only
//! Limits the time that CPUs may take to leave an idle state: the kernel does not use states that
//! take longer.

use std::path::{Path, PathBuf};

use anyhow::{ensure, Result};

use crate::cpumask::Cpumask;
use crate::host::Group;

/// The setting, for manual pages; N is the number of a CPU.
pub const RESUME_LATENCY_SETTING: &str =
    "/sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us";

/// A guard that limits the resume latency of CPUs, and restores the previous values when it is
/// dropped. A value that another process has set meanwhile is kept; a CPU that is gone is skipped.
#[derive(Debug)]
pub struct ResumeLatency {
    _group: Group,
}

impl ResumeLatency {
    /// Limits the resume latency of the CPUs in `cpus` that have this setting to `us` microseconds.
    /// 0 means no limit, as in the kernel's files. `root` is "/", except in tests.
    ///
    /// A file in `notes` ([`NOTES_DIR`]), the note, stores the previous values, so that they are
    /// known even if this process is killed.
    ///
    /// [`NOTES_DIR`]: crate::host::NOTES_DIR
    ///
    /// # Errors
    ///
    /// If no CPU has such a setting, a setting cannot be read or written, the note cannot be made,
    /// or this process or another one already holds the setting, for any CPUs. After an error, the
    /// setting is unchanged, except that the changes of a killed process may have been undone.
    pub fn hold(root: &Path, cpus: &Cpumask, us: u32, notes: &Path) -> Result<Self> {
        let name = file(root, "N");
        let paths = cpus.iter().map(|cpu| file(root, &cpu.to_string()));
        let paths: Vec<_> = paths.filter(|path| path.exists()).collect();
        ensure!(!paths.is_empty(), "no CPU has {}", name.display());
        let _group = Group::hold(&paths, &us.to_string(), &name, notes)?;
        Ok(Self { _group })
    }
}

/// The file of a CPU.
fn file(root: &Path, cpu: &str) -> PathBuf {
    let path = RESUME_LATENCY_SETTING.replace('N', cpu);
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine with CPUs 0 to 3, with different values.
    struct Machine(tempfile::TempDir);

    const BEFORE: [&str; 4] = ["0", "n/a", "100", "32"];

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for (cpu, value) in BEFORE.iter().enumerate() {
                fs::create_dir_all(machine.file(cpu).parent().unwrap()).unwrap();
                machine.set(cpu, value);
            }
            machine
        }

        fn file(&self, cpu: usize) -> PathBuf {
            file(self.0.path(), &cpu.to_string())
        }

        fn set(&self, cpu: usize, value: &str) {
            fs::write(self.file(cpu), format!("{value}\n")).unwrap();
        }

        /// Removes the CPU's directory, as the kernel does when the CPU is removed.
        fn unplug(&self, cpu: usize) {
            fs::remove_dir_all(self.file(cpu).parent().unwrap().parent().unwrap()).unwrap();
        }

        /// Values of the CPUs; empty for a CPU that is gone.
        fn values(&self) -> [String; 4] {
            let value = |cpu| fs::read_to_string(self.file(cpu)).unwrap_or_default();
            [0, 1, 2, 3].map(|cpu| value(cpu).trim_end().to_owned())
        }

        fn notes(&self) -> PathBuf {
            self.0.path().join("notes")
        }

        fn try_hold(&self, cpus: &str, us: u32) -> Result<ResumeLatency> {
            let cpus = Cpumask::from_list(cpus, 8).unwrap();
            ResumeLatency::hold(self.0.path(), &cpus, us, &self.notes())
        }

        fn hold(&self, cpus: &str, us: u32) -> ResumeLatency {
            self.try_hold(cpus, us).unwrap()
        }

        fn kill(&self, cpus: &str, us: u32) {
            self.hold(cpus, us)._group.kill();
        }

        /// Length of the note, the only file in its directory.
        fn noted(&self) -> u64 {
            let files = fs::read_dir(self.notes()).unwrap();
            let lengths: Vec<_> = files
                .map(|f| f.unwrap().metadata().unwrap().len())
                .collect();
            assert_eq!(lengths.len(), 1);
            lengths[0]
        }
    }

    #[test]
    fn every_cpu_gets_its_own_value_back() {
        let machine = Machine::new();
        let guard = machine.hold("0-3", 20);
        assert_eq!(machine.values(), ["20"; 4]);
        assert!(machine.noted() > 0);
        drop(guard);
        assert_eq!(machine.values(), BEFORE);
        assert_eq!(machine.noted(), 0);
    }

    #[test]
    fn other_cpus_are_left_alone() {
        let machine = Machine::new();
        let guard = machine.hold("1-2", 20);
        assert_eq!(machine.values(), ["0", "20", "20", "32"]);
        drop(guard);
        assert_eq!(machine.values(), BEFORE);
    }

    #[test]
    fn later_value_of_another_writer_stays() {
        let machine = Machine::new();
        let guard = machine.hold("0-3", 20);
        machine.set(2, "5");
        drop(guard);
        assert_eq!(machine.values(), ["0", "n/a", "5", "32"]);
        assert_eq!(machine.noted(), 0);
    }

    #[test]
    fn what_a_killed_process_set_is_not_taken_for_the_original() {
        let machine = Machine::new();
        machine.kill("0-3", 20);
        machine.kill("0-3", 20);
        machine.kill("0-3", 30);
        assert_eq!(machine.values(), ["30"; 4]);
        // As if another process had set the value meanwhile.
        machine.set(0, "7");
        drop(machine.hold("0-3", 40));
        assert_eq!(machine.values(), ["7", "n/a", "100", "32"]);
        // The note is now empty, so 40 is not mistaken for the value that a killed process set.
        machine.set(1, "40");
        drop(machine.hold("0-3", 40));
        assert_eq!(machine.values(), ["7", "40", "100", "32"]);
    }

    #[test]
    fn cpus_of_a_killed_process_only_are_restored_too() {
        let machine = Machine::new();
        machine.kill("0-3", 20);
        machine.kill("0-2", 20);
        let guard = machine.hold("0-1", 30);
        assert_eq!(machine.values(), ["30", "30", "100", "32"]);
        drop(guard);
        assert_eq!(machine.values(), BEFORE);
    }

    #[test]
    fn note_of_a_killed_process_stays_until_it_can_be_restored() {
        let machine = Machine::new();
        machine.kill("0-3", 20);
        fs::remove_file(machine.file(3)).unwrap();
        fs::create_dir(machine.file(3)).unwrap();
        let error = machine.try_hold("0-2", 30).unwrap_err();
        assert!(format!("{error:#}").contains("cpu3"), "{error:#}");
        fs::remove_dir(machine.file(3)).unwrap();
        machine.set(3, "20");
        drop(machine.hold("0-2", 30));
        assert_eq!(machine.values(), BEFORE);
        assert_eq!(machine.noted(), 0);
    }

    #[test]
    fn cpus_that_are_gone_are_skipped() {
        let machine = Machine::new();
        machine.unplug(1);
        let guard = machine.hold("0-7", 20);
        assert_eq!(machine.values(), ["20", "", "20", "20"]);
        machine.unplug(2);
        drop(guard);
        assert_eq!(machine.values(), ["0", "", "", "32"]);
        assert_eq!(machine.noted(), 0);
        let error = machine.try_hold("1-2", 20).unwrap_err();
        assert!(format!("{error:#}").contains("cpuN"), "{error:#}");
    }

    #[test]
    fn a_second_holder_is_refused() {
        let machine = Machine::new();
        let first = machine.hold("0-1", 20);
        let error = machine.try_hold("2-3", 30).unwrap_err();
        assert!(format!("{error:#}").contains("in use"), "{error:#}");
        assert_eq!(machine.values(), ["20", "20", "100", "32"]);
        drop(first);
        assert_eq!(machine.values(), BEFORE);
        drop(machine.hold("2-3", 30));
    }

    #[test]
    fn without_a_note_nothing_is_changed() {
        let machine = Machine::new();
        fs::write(machine.notes(), "").unwrap();
        machine.try_hold("0-3", 20).unwrap_err();
        assert_eq!(machine.values(), BEFORE);
    }

    #[test]
    fn an_error_at_one_cpu_undoes_the_others() {
        let machine = Machine::new();
        fs::remove_file(machine.file(3)).unwrap();
        // This file can be read, but not written.
        std::os::unix::fs::symlink("/proc/self/stat", machine.file(3)).unwrap();
        let error = machine.try_hold("0-3", 20).unwrap_err();
        assert!(format!("{error:#}").contains("cpu3"), "{error:#}");
        assert_eq!(machine.values()[..3], BEFORE[..3]);
    }
}
