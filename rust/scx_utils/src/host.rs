// SPDX-License-Identifier: GPL-2.0-only
//! Machine settings that a program changes while it runs. Each is a guard that restores the
//! previous value on every exit except `kill -9`; programs list theirs in their manual pages.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A file below `/proc/sys` or `/sys` with a single value.
#[derive(Debug)]
pub struct Setting {
    path: PathBuf,
    before: String,
    ours: String,
}

impl Setting {
    /// Writes `value`, and keeps it until the guard is dropped. The kernel may round it: the value
    /// read back counts as ours.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written.
    pub fn hold(path: &Path, value: &str) -> Result<Self> {
        let before = read(path)?;
        fs::write(path, value).with_context(|| format!("cannot set {}", path.display()))?;
        let ours = read(path).unwrap_or_else(|_| value.to_owned());
        Ok(Self {
            path: path.into(),
            before,
            ours,
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
        }
    }
}

fn read(path: &Path) -> Result<String> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end().to_owned())
}

/// An upper bound on the exit latency of idle states (`/dev/cpu_dma_latency`): deeper ones are not
/// entered. The kernel drops it when the file is closed, also by `kill -9`.
#[derive(Debug)]
pub struct IdleLatency {
    _open: File,
}

impl IdleLatency {
    /// Keeps the bound until the guard is dropped. 0 means no idle state except polling.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or written.
    pub fn hold(root: &Path, latency_us: i32) -> Result<Self> {
        let path = root.join("dev/cpu_dma_latency");
        let limit = || -> io::Result<File> {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            file.write_all(&latency_us.to_ne_bytes())?;
            Ok(file)
        };
        let open = limit().with_context(|| format!("cannot set {}", path.display()))?;
        Ok(Self { _open: open })
    }
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

    #[test]
    fn setting_is_put_back() {
        let (_dir, path) = file("1\n");
        let guard = Setting::hold(&path, "0").unwrap();
        assert_eq!(read(&path).unwrap(), "0");
        drop(guard);
        assert_eq!(read(&path).unwrap(), "1");
    }

    #[test]
    fn setting_is_put_back_when_a_panic_unwinds() {
        let (_dir, path) = file("1\n");
        let held = path.clone();
        let thread = std::thread::spawn(move || {
            let _guard = Setting::hold(&held, "0").unwrap();
            panic!("as asked");
        });
        assert!(thread.join().is_err());
        assert_eq!(read(&path).unwrap(), "1");
    }

    #[test]
    fn later_value_of_another_writer_stays() {
        let (_dir, path) = file("1\n");
        let guard = Setting::hold(&path, "0").unwrap();
        fs::write(&path, "2").unwrap();
        drop(guard);
        assert_eq!(read(&path).unwrap(), "2");
    }

    #[test]
    fn missing_setting_is_an_error_that_names_it() {
        let error = Setting::hold(Path::new("/nonexistent/setting"), "0").unwrap_err();
        assert!(
            format!("{error:#}").contains("/nonexistent/setting"),
            "{error:#}"
        );
    }

    #[test]
    fn idle_latency_is_written_as_the_kernel_wants_it() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("dev")).unwrap();
        let path = root.path().join("dev/cpu_dma_latency");
        fs::write(&path, "").unwrap();
        let _guard = IdleLatency::hold(root.path(), 20).unwrap();
        assert_eq!(fs::read(&path).unwrap(), 20_i32.to_ne_bytes());
    }
}
