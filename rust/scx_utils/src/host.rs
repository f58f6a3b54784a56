// SPDX-License-Identifier: GPL-2.0-only
//! Machine settings that a program changes while it runs. A guard holds each setting, and restores
//! the previous value when it is dropped. After `kill -9`, the next guard of the same setting
//! restores the value. Programs list their settings in their manual pages.

mod note;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use note::{Entry, Note};

/// Where guards store previous values. The files are lost at reboot, as are the settings.
pub const NOTES_DIR: &str = "/run/scx";

/// A guard that holds one setting: a file below `/proc/sys` or `/sys` with a single value.
#[derive(Debug)]
pub struct Setting {
    _group: Group,
}

impl Setting {
    /// Writes `value`, and restores the previous value when the guard is dropped, unless another
    /// writer has changed the setting meanwhile. The kernel may round `value`, so other writers are
    /// detected by comparison with the value that was read back. A file in `notes` ([`NOTES_DIR`]),
    /// the note, stores the previous value, so that it is known even if this process is killed.
    /// `path` is absolute.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written, the note cannot be made, or this process or another
    /// one already holds the setting. With two holders, the holder that ends last would restore the
    /// value of the other holder. After an error, the setting is unchanged, except that the change
    /// of a killed process may have been undone.
    pub fn hold(path: &Path, value: &str, notes: &Path) -> Result<Self> {
        let _group = Group::hold(&[path.into()], value, path, notes)?;
        Ok(Self { _group })
    }
}

/// Files that are set to the same value. They share one note, and so one file descriptor.
#[derive(Debug)]
pub(crate) struct Group {
    note: Note,
}

impl Group {
    /// Like [`Setting::hold`], for all `paths`. `name` is the name of the setting, and determines
    /// the name of the note, which is locked: two groups with files in common must have the same
    /// name.
    pub(crate) fn hold(paths: &[PathBuf], value: &str, name: &Path, notes: &Path) -> Result<Self> {
        let mut note = Note::take(name, notes)?;
        // Undo the changes of a process that was killed. The note is emptied only after the files
        // have been restored, so a kill at any time loses nothing.
        restore(note.entries()).1?;
        note.reduce(Vec::new());
        let entry = |path: &PathBuf| {
            let before = read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let (path, ours) = (path.clone(), value.to_owned());
            Ok(Entry { path, before, ours })
        };
        note.write(paths.iter().map(entry).collect::<Result<_>>()?)?;
        // From here on, an error drops the group, and so restores the files that were set.
        let mut group = Self { note };
        group.set(value)?;
        Ok(group)
    }

    fn set(&mut self, value: &str) -> Result<()> {
        let mut entries = self.note.entries().to_vec();
        let set = |entry: &mut Entry| {
            let path = &entry.path;
            write(path, value).with_context(|| format!("cannot set {}", path.display()))?;
            if let Ok(ours) = read(path) {
                entry.ours = ours;
            }
            Ok(())
        };
        let result = entries.iter_mut().try_for_each(set);
        // Write the note after an error, too: the values that were read back are needed to restore
        // the files.
        result.and(self.note.write(entries))
    }

    /// Simulates `kill -9` of this process: no destructor runs, and the kernel closes the files.
    #[cfg(test)]
    pub(crate) fn kill(self) {
        self.note.unlock();
        std::mem::forget(self);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let (failed, result) = restore(self.note.entries());
        if let Err(error) = result {
            tracing::warn!("{error:#}");
        }
        self.note.reduce(failed);
    }
}

/// Restores files. Returns the entries that could not be restored, and only the first error, since
/// there may be thousands of errors.
fn restore(entries: &[Entry]) -> (Vec<Entry>, Result<()>) {
    let (mut failed, mut first) = (Vec::new(), Ok(()));
    for entry in entries {
        if let Err(error) = entry.restore() {
            let (path, before) = (entry.path.display(), &entry.before);
            let what = || format!("cannot set {path} back to '{before}'");
            first = first.and_then(|()| Err(error).with_context(what));
            failed.push(entry.clone());
        }
    }
    (failed, first)
}

impl Entry {
    /// Restores the value, unless another writer has changed the file meanwhile.
    fn restore(&self) -> io::Result<()> {
        let path = &self.path;
        if read(path).is_ok_and(|now| now != self.ours) {
            tracing::debug!("{} was changed meanwhile: left as it is", path.display());
            return Ok(());
        }
        match write(path, &self.before) {
            // For example, the CPU was removed.
            Err(error) if is_gone(&error) => Ok(()),
            result => result,
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

/// Writes a setting. A file that does not exist is an error, and is not created.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut options = File::options();
    let mut file = options.write(true).truncate(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Whether the kernel's file no longer exists. The file may have disappeared while it was open.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(value: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("setting");
        fs::write(&path, value).unwrap();
        (dir, path)
    }

    fn hold(path: &Path) -> Setting {
        Setting::hold(path, "0", &path.with_file_name("notes")).unwrap()
    }

    fn kill(guard: Setting) {
        guard._group.kill();
    }

    #[test]
    fn setting_is_put_back() {
        let (_dir, path) = file("1\n");
        let guard = hold(&path);
        assert_eq!(read(&path).unwrap(), "0");
        drop(guard);
        assert_eq!(read(&path).unwrap(), "1");
    }

    #[test]
    fn setting_is_put_back_when_a_panic_unwinds() {
        let (_dir, path) = file("1\n");
        let held = path.clone();
        let thread = std::thread::spawn(move || {
            let _guard = hold(&held);
            panic!("as asked");
        });
        assert!(thread.join().is_err());
        assert_eq!(read(&path).unwrap(), "1");
    }

    #[test]
    fn later_value_of_another_writer_stays() {
        let (_dir, path) = file("1\n");
        let guard = hold(&path);
        fs::write(&path, "2").unwrap();
        drop(guard);
        assert_eq!(read(&path).unwrap(), "2");
    }

    #[test]
    fn what_a_killed_process_set_is_not_taken_for_the_original() {
        let (_dir, path) = file("1\n");
        kill(hold(&path));
        assert_eq!(read(&path).unwrap(), "0");
        kill(hold(&path));
        drop(hold(&path));
        assert_eq!(read(&path).unwrap(), "1");
        // The note is now empty, so 0 is not mistaken for the value that the killed process set.
        fs::write(&path, "0").unwrap();
        drop(hold(&path));
        assert_eq!(read(&path).unwrap(), "0");
    }

    #[test]
    fn what_somebody_set_after_the_kill_is_the_original() {
        let (_dir, path) = file("1\n");
        kill(hold(&path));
        fs::write(&path, "2").unwrap();
        drop(hold(&path));
        assert_eq!(read(&path).unwrap(), "2");
    }

    #[test]
    fn a_second_holder_is_refused() {
        let (_dir, path) = file("1\n");
        let first = hold(&path);
        let error = Setting::hold(&path, "2", &path.with_file_name("notes")).unwrap_err();
        assert!(format!("{error:#}").contains("in use"), "{error:#}");
        assert_eq!(read(&path).unwrap(), "0");
        drop(first);
        assert_eq!(read(&path).unwrap(), "1");
        drop(hold(&path));
    }

    #[test]
    fn without_a_note_nothing_is_changed() {
        let (_dir, path) = file("1\n");
        let error = Setting::hold(&path, "0", &path).unwrap_err();
        assert!(format!("{error:#}").contains("setting"), "{error:#}");
        assert_eq!(read(&path).unwrap(), "1");
    }

    #[test]
    fn missing_setting_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let error = Setting::hold(Path::new("/nonexistent/setting"), "0", dir.path()).unwrap_err();
        assert!(
            format!("{error:#}").contains("/nonexistent/setting"),
            "{error:#}"
        );
    }
}
