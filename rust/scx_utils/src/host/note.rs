// SPDX-License-Identifier: GPL-2.0-only
//! The value of a setting before a process changed it, in a file that survives `kill -9`.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The note on one setting. The process that holds the setting locks the file, and the kernel
/// unlocks it when that process exits. The file is never removed, only emptied: otherwise a process
/// that has just opened it would lock a file that no other process can find.
#[derive(Debug)]
pub(super) struct Note {
    file: File,
    left: Option<LeftBehind>,
}

/// The note of a process that was killed.
#[derive(Debug, Clone)]
pub(super) struct LeftBehind {
    pub(super) before: String,
    pub(super) ours: String,
}

impl Note {
    /// The note on the setting at `path`, below `dir`. An error if it is held already.
    pub(super) fn take(path: &Path, dir: &Path) -> Result<Self> {
        let name = path.to_string_lossy().trim_matches('/').replace('/', ".");
        let note = dir.join(name);
        Self::open(&note).with_context(|| format!("cannot make a note in {}", note.display()))
    }

    fn open(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            create_dir(dir)?;
        }
        let mut options = File::options();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "the setting is in use")
            }
            TryLockError::Error(error) => error,
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let left = parse(&text);
        Ok(Self { file, left })
    }

    pub(super) fn left_behind(&self) -> Option<LeftBehind> {
        self.left.clone()
    }

    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn write(&mut self, before: &str, ours: &str) -> Result<()> {
        self.rewrite(&format!("{before}\n{ours}\n"))
            .context("cannot note what a setting was")
    }

    /// The setting is as it was.
    pub(super) fn clear(&mut self) {
        if let Err(error) = self.rewrite("") {
            tracing::debug!("a note on a setting stays: {error}");
        }
    }

    /// As the kernel does when the process is killed.
    #[cfg(test)]
    pub(super) fn unlock(&self) {
        self.file.unlock().unwrap();
    }

    fn rewrite(&mut self, text: &str) -> io::Result<()> {
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        // Truncated last: a kill in between then leaves a complete text, if the length is the same.
        self.file
            .set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))
    }
}

/// Creates the directory if it is missing, accessible to all users regardless of the umask: the
/// socket of the statistics is in it, too.
fn create_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Ok(()) => fs::set_permissions(dir, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// `None` for an empty file, and for one whose last line is incomplete.
fn parse(text: &str) -> Option<LeftBehind> {
    let (before, rest) = text.split_once('\n')?;
    let ours = rest.strip_suffix('\n')?;
    Some(LeftBehind {
        before: before.to_owned(),
        ours: ours.to_owned(),
    })
}
