// SPDX-License-Identifier: GPL-2.0-only
//! Warns of cgroup controls that have no effect: with sched_ext, CPU shares and limits are left to
//! the scheduler, and none of those in Rust implements them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The controls, and their default values or what these begin with
/// (Documentation/admin-guide/cgroup-v2.rst).
const CONTROLS: [(&str, &str); 3] = [
    ("cpu.weight", "100"),
    ("cpu.idle", "0"),
    ("cpu.max", "max "),
];

/// Cgroups that have set a control. Displayed as their number and an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    nr: usize,
    /// A control that the first of these cgroups has set.
    control: &'static str,
    path: PathBuf,
}

impl Ignored {
    /// Searches the machine with this root directory; `None` if there are none.
    #[must_use]
    pub fn find(root: &Path) -> Option<Self> {
        let mut found = None;
        visit(&root.join("sys/fs/cgroup"), &mut found);
        found
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nr, control, path) = (self.nr, self.control, self.path.display());
        write!(f, "{nr} set them, such as {control} of {path}")
    }
}

/// Visits this cgroup and all below. One that vanishes meanwhile is skipped.
fn visit(cgroup: &Path, found: &mut Option<Ignored>) {
    if let Some(control) = control_that_is_set(cgroup) {
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
            visit(&entry.path(), found);
        }
    }
}

fn control_that_is_set(cgroup: &Path) -> Option<&'static str> {
    let is_set = |(control, default): &(&str, &str)| {
        fs::read_to_string(cgroup.join(control)).is_ok_and(|text| {
            let text = text.trim_end();
            text != *default && !(default.ends_with(' ') && text.starts_with(default))
        })
    };
    CONTROLS
        .iter()
        .find(|of| is_set(of))
        .map(|(control, _)| *control)
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
        let mut found = Ignored::find(root.path())?;
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
            let words = format!("1 set them, such as {file} of a/b");
            assert_eq!(found.to_string(), words);
        }
        let both = [
            ("a/cpu.weight", "1"),
            ("a/cpu.max", "1 1"),
            ("b/cpu.max", "2 2"),
        ];
        assert_eq!(found(&both).unwrap().nr, 2);
    }

    #[test]
    fn machine_without_cgroups_has_none() {
        assert_eq!(Ignored::find(Path::new("/proc/no/such/place")), None);
    }
}
