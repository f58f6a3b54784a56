// SPDX-License-Identifier: GPL-2.0-only
//! Finds cgroup controls that have no effect. sched_ext leaves CPU shares and limits to the
//! scheduler, and not every scheduler implements them. Some kernels do not report changes of some
//! controls to the scheduler.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::compat::KernelBtf;

/// A control of the CPU time of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// `cpu.weight`.
    Weight,
    /// `cpu.idle`.
    Idle,
    /// `cpu.max`.
    Max,
}

impl Control {
    /// All controls.
    pub const ALL: &'static [Self] = &[Self::Weight, Self::Idle, Self::Max];

    /// The controls that have no effect on this kernel under a scheduler that implements
    /// `implemented`.
    #[must_use]
    pub fn without_effect(implemented: &[Self], btf: &KernelBtf) -> Vec<Self> {
        let has_effect =
            |of: &Self| implemented.contains(of) && btf.has_member("sched_ext_ops", of.callback());
        let all = Self::ALL.iter().copied();
        all.filter(|control| !has_effect(control)).collect()
    }

    /// The callback of `sched_ext_ops` that reports changes of the control.
    fn callback(self) -> &'static str {
        match self {
            Self::Weight => "cgroup_set_weight",
            Self::Idle => "cgroup_set_idle",
            Self::Max => "cgroup_set_bandwidth",
        }
    }

    /// The default value (Documentation/admin-guide/cgroup-v2.rst). A text that ends with a space
    /// is a prefix: `cpu.max` without a limit counts as default, whatever the period after `max`.
    fn default(self) -> &'static str {
        match self {
            Self::Weight => "100",
            Self::Idle => "0",
            Self::Max => "max ",
        }
    }

    fn is_set(self, cgroup: &Path) -> bool {
        let default = self.default();
        fs::read_to_string(cgroup.join(self.to_string())).is_ok_and(|text| {
            let text = text.trim_end();
            text != default && !(default.ends_with(' ') && text.starts_with(default))
        })
    }
}

/// Writes the name of the control's file.
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weight => "cpu.weight",
            Self::Idle => "cpu.idle",
            Self::Max => "cpu.max",
        })
    }
}

/// The names of the controls as text, such as "cpu.weight, cpu.idle and cpu.max".
#[must_use]
pub fn list(controls: &[Control]) -> String {
    let names: Vec<_> = controls.iter().map(Control::to_string).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Cgroups in which a control differs from its default. Displayed as their number and an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    nr: usize,
    /// A control that differs from its default in the first of these cgroups.
    control: Control,
    path: PathBuf,
}

impl Ignored {
    /// Searches the machine with this root directory; `None` if all of these controls have their
    /// defaults in every cgroup.
    #[must_use]
    pub fn find(root: &Path, controls: &[Control]) -> Option<Self> {
        let mut found = None;
        visit(&root.join("sys/fs/cgroup"), controls, &mut found);
        found
    }

    /// The number of these cgroups.
    #[must_use]
    pub fn nr(&self) -> usize {
        self.nr
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nr, control) = (self.nr, self.control);
        // Users can create cgroups with any name, in cgroups that are delegated to them.
        let path = self.path.to_string_lossy();
        let path = path.replace(char::is_control, "\u{fffd}");
        write!(f, "{nr} set them, e.g. {control} of {path}")
    }
}

/// Visits this cgroup and all cgroups below it. A cgroup that vanishes meanwhile is skipped.
fn visit(cgroup: &Path, controls: &[Control], found: &mut Option<Ignored>) {
    if let Some(control) = controls.iter().copied().find(|of| of.is_set(cgroup)) {
        let first = || Ignored {
            nr: 0,
            control,
            path: cgroup.into(),
        };
        found.get_or_insert_with(first).nr += 1;
    }
    let Ok(entries) = fs::read_dir(cgroup) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            visit(&entry.path(), controls, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for cgroups with the given files.
    fn found(files: &[(&str, &str)]) -> Option<Ignored> {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("sys/fs/cgroup");
        for (path, text) in files {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        let mut found = Ignored::find(root.path(), Control::ALL)?;
        found.path = found.path.strip_prefix(top).unwrap().into();
        Some(found)
    }

    #[test]
    fn default_controls_are_not_reported() {
        let files = [
            ("a/cpu.weight", "100"),
            ("a/cpu.max", "max 100000"),
            ("a/cpu.idle", "0"),
            ("a/memory.max", "1"),
        ];
        assert_eq!(found(&files), None);
    }

    #[test]
    fn each_cgroup_that_has_set_one_counts_once() {
        for (file, text) in [
            ("cpu.weight", "50"),
            ("cpu.max", "5000 10000"),
            ("cpu.idle", "1"),
        ] {
            let path = format!("a/b/{file}");
            let found = found(&[("a/cpu.weight", "100"), (&path, text)]).unwrap();
            let words = format!("1 set them, e.g. {file} of a/b");
            assert_eq!(found.to_string(), words);
        }
        let both = [
            ("a/cpu.weight", "1"),
            ("a/cpu.max", "1 1"),
            ("b/cpu.max", "2 2"),
        ];
        assert_eq!(found(&both).unwrap().nr(), 2);
    }

    #[test]
    fn control_characters_of_names_are_replaced() {
        let found = found(&[("a\u{1b}[2J\nb/cpu.weight", "50")]).unwrap();
        assert!(!found.to_string().contains(char::is_control), "{found}");
    }

    #[test]
    fn controls_that_are_not_asked_for_are_not_reported() {
        let root = tempfile::tempdir().unwrap();
        let cgroup = root.path().join("sys/fs/cgroup/a");
        fs::create_dir_all(&cgroup).unwrap();
        fs::write(cgroup.join("cpu.weight"), "50\n").unwrap();
        assert_eq!(Ignored::find(root.path(), &[Control::Max]), None);
        assert!(Ignored::find(root.path(), &[Control::Weight]).is_some());
    }

    #[test]
    fn names_are_listed() {
        assert_eq!(list(&[]), "");
        assert_eq!(list(&[Control::Max]), "cpu.max");
        assert_eq!(list(Control::ALL), "cpu.weight, cpu.idle and cpu.max");
    }

    #[test]
    fn machine_without_cgroups_has_none() {
        assert_eq!(
            Ignored::find(Path::new("/proc/no/such/place"), Control::ALL),
            None
        );
    }
}
