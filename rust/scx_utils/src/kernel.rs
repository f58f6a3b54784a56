// SPDX-License-Identifier: GPL-2.0-only
//! What the running kernel reports about `sched_ext`.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::compat::KernelBtf;

/// How long to wait for a scheduler that is being unloaded.
const DISABLING_WAIT: Duration = Duration::from_secs(10);
const DISABLING_POLL: Duration = Duration::from_millis(20);

/// Why no scheduler can be loaded, and how to fix it.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)] // See the messages.
pub enum Missing {
    #[error(
        "this kernel has no sched_ext: boot one built with CONFIG_SCHED_CLASS_EXT, \
         Linux 6.12 or newer"
    )]
    SchedExt,
    #[error("loading a scheduler needs root privileges: run it as root or with sudo")]
    Root,
    #[error("the scheduler '{0}' is running: stop it first")]
    Busy(String),
    #[error("the scheduler '{0}' is still being unloaded: try again when it is gone")]
    Unloading(String),
    #[error(
        "the kernel's type information /sys/kernel/btf/vmlinux is missing: boot a kernel \
         built with CONFIG_DEBUG_INFO_BTF"
    )]
    Btf,
    #[error(
        "this kernel's type information (BTF) is defective, no scheduler can load: boot a \
         kernel built with a newer pahole"
    )]
    DefectiveBtf,
}

/// The kernel's files about `sched_ext`.
#[derive(Debug, Clone)]
pub struct SchedExt {
    root: PathBuf,
}

impl SchedExt {
    /// For the machine with this root directory: "/", except in tests.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// First line of a file of `/sys/kernel/sched_ext`; empty if it cannot be read.
    fn line(&self, file: &str) -> String {
        let path = self.root.join("sys/kernel/sched_ext").join(file);
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// `enabling`, `enabled`, `disabling` or `disabled`; empty if the kernel has no `sched_ext`.
    #[must_use]
    pub fn state(&self) -> String {
        self.line("state")
    }

    /// Whether the kernel is switching tasks between the ext and the fair class, and picks tasks of
    /// both.
    ///
    /// True while a scheduler is being enabled. While a scheduler is being disabled, true only once
    /// `switch_all` is 0: before that, the kernel picks tasks of the fair class only within a
    /// reserve of CPU time (`next_active_class()` in kernel/sched/sched.h of 6.12).
    #[must_use]
    pub fn is_switching_classes(&self) -> bool {
        match self.state().as_str() {
            "enabling" => true,
            "disabling" => self.line("switch_all") == "0",
            _ => false,
        }
    }

    /// Name of the loaded scheduler (`ops.name`); empty if none is loaded.
    #[must_use]
    pub fn ops(&self) -> String {
        self.line("root/ops")
    }

    /// How many schedulers have been enabled since boot; 0 if the kernel does not provide the
    /// count.
    #[must_use]
    pub fn enable_seq(&self) -> u64 {
        self.line("enable_seq").parse().unwrap_or(0)
    }

    /// The kernel's count of hotplug events; `None` if the kernel does not provide it.
    #[must_use]
    pub fn hotplug_seq(&self) -> Option<u64> {
        self.line("hotplug_seq").parse().ok()
    }

    /// The CPUs isolated by isolcpus=, in list form; empty if there are none. If there are any, the
    /// kernel refuses every scheduler (EINVAL).
    #[must_use]
    pub fn isolated_cpus(&self) -> String {
        let path = self.root.join("sys/devices/system/cpu/isolated");
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// Checks that a scheduler could be loaded now, and returns the kernel's type information.
    /// Waits up to 10 s while the kernel is still unloading another scheduler, such as after an
    /// ejection or `kill -9`.
    ///
    /// # Errors
    ///
    /// The first variant of [`Missing`] that applies.
    pub fn check(&self) -> Result<KernelBtf, Missing> {
        if self.state().is_empty() {
            return Err(Missing::SchedExt);
        }
        if !nix::unistd::geteuid().is_root() {
            return Err(Missing::Root);
        }
        self.wait_while_disabling();
        self.conflict().map_or(Ok(()), Err)?;
        let btf = KernelBtf::read(&self.root).map_err(|_| Missing::Btf)?;
        if btf.is_defective() {
            return Err(Missing::DefectiveBtf);
        }
        Ok(btf)
    }

    /// Another scheduler that prevents the load, since the kernel runs one at a time.
    fn conflict(&self) -> Option<Missing> {
        match self.state().as_str() {
            "disabled" => None,
            "disabling" => Some(Missing::Unloading(self.ops())),
            _ => Some(Missing::Busy(self.ops())),
        }
    }

    fn wait_while_disabling(&self) {
        let until = Instant::now() + DISABLING_WAIT;
        while self.state() == "disabling" && Instant::now() < until {
            thread::sleep(DISABLING_POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_scheduler_is_running_or_being_unloaded() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = root.path().join("sys/kernel/sched_ext");
        fs::create_dir_all(sysfs.join("root")).unwrap();
        fs::write(sysfs.join("root/ops"), "other\n").unwrap();
        let conflict = |state: &str| {
            fs::write(sysfs.join("state"), state).unwrap();
            SchedExt::new(root.path()).conflict()
        };
        assert_eq!(conflict("disabled\n"), None);
        assert_eq!(conflict("enabled\n"), Some(Missing::Busy("other".into())));
        assert_eq!(conflict("enabling\n"), Some(Missing::Busy("other".into())));
        assert_eq!(
            conflict("disabling\n"),
            Some(Missing::Unloading("other".into()))
        );
    }

    #[test]
    fn classes_are_switched_when_both_of_them_run() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = root.path().join("sys/kernel/sched_ext");
        fs::create_dir_all(&sysfs).unwrap();
        let is_switching = |state: &str, switch_all: &str| {
            fs::write(sysfs.join("state"), state).unwrap();
            fs::write(sysfs.join("switch_all"), switch_all).unwrap();
            SchedExt::new(root.path()).is_switching_classes()
        };
        assert!(is_switching("enabling\n", "0\n"));
        assert!(is_switching("enabling\n", "1\n"));
        assert!(!is_switching("enabled\n", "1\n"));
        assert!(!is_switching("disabling\n", "1\n"));
        assert!(is_switching("disabling\n", "0\n"));
        assert!(!is_switching("disabled\n", "0\n"));
    }
}
