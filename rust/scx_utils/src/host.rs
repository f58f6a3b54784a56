// SPDX-License-Identifier: GPL-2.0-only
//! Machine settings that a program changes while it runs. Each is a guard that restores the
//! previous value on every exit; after `kill -9`, the next guard of that setting does. Programs
//! list their settings in their manual pages.

mod note;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use note::Note;

/// Where [`Setting`] stores the previous value. Like the settings, it is lost at reboot.
pub const NOTES_DIR: &str = "/run/scx";

/// A file below `/proc/sys` or `/sys` with a single value.
#[derive(Debug)]
pub struct Setting {
    path: PathBuf,
    before: String,
    ours: String,
    note: Note,
}

impl Setting {
    /// Writes `value`, and keeps it until the guard is dropped. The kernel may round it: the value
    /// read back counts as ours. A file in `notes` ([`NOTES_DIR`]) stores the previous value, so
    /// that it is known even if this process is killed.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written, the note cannot be made, or the setting is held
    /// already, by this process or another one: of two holders, the one that ends last would
    /// restore the value of the other. Nothing is changed then.
    pub fn hold(path: &Path, value: &str, notes: &Path) -> Result<Self> {
        let mut note = Note::take(path, notes)?;
        let now = read(path)?;
        let before = match note.left_behind() {
            // The value that a killed process set is still in place.
            Some(left) if left.ours == now => left.before,
            // There is no note, or the setting was changed since.
            _ => now,
        };
        note.write(&before, value)?;
        fs::write(path, value).with_context(|| format!("cannot set {}", path.display()))?;
        let ours = read(path).unwrap_or_else(|_| value.to_owned());
        if ours != value {
            note.write(&before, &ours)?;
        }
        Ok(Self {
            path: path.into(),
            before,
            ours,
            note,
        })
    }
}

impl Drop for Setting {
    /// Keeps a later value of another writer.
    fn drop(&mut self) {
        if read(&self.path).is_ok_and(|now| now != self.ours) {
            tracing::debug!(
                "{} was changed meanwhile: left as it is",
                self.path.display()
            );
        } else if let Err(error) = fs::write(&self.path, &self.before) {
            let (path, before) = (self.path.display(), &self.before);
            tracing::warn!("cannot set {path} back to '{before}': {error}");
            return;
        }
        self.note.clear();
    }
}

fn read(path: &Path) -> Result<String> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end().to_owned())
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

    /// As if its process had been killed: no destructor runs, and the kernel closes its files.
    fn kill(guard: Setting) {
        guard.note.unlock();
        std::mem::forget(guard);
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
        // And no note is left.
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
