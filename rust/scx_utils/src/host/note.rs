// SPDX-License-Identifier: GPL-2.0-only
//! The values of files before a process changed them, in a note that survives `kill -9`.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The note on one setting, which may be several files. The process that holds the setting locks
/// the note, and the kernel unlocks it when that process exits. The note is never removed, only
/// emptied: otherwise a process that has just opened it would lock a file that no other process can
/// find.
#[derive(Debug)]
pub(super) struct Note {
    file: File,
    entries: Vec<Entry>,
}

/// What the note says of one file.
#[derive(Debug, Clone, Eq, PartialEq)]
pub(super) struct Entry {
    /// Absolute.
    pub(super) path: PathBuf,
    pub(super) before: String,
    pub(super) ours: String,
}

impl Note {
    /// The note on the setting called `name`, below `dir`. An error if it is held already. Its
    /// entries are those of a process that was killed.
    pub(super) fn take(name: &Path, dir: &Path) -> Result<Self> {
        let name = name.to_string_lossy().trim_matches('/').replace('/', ".");
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
        let entries = parse(&text).unwrap_or_default();
        Ok(Self { file, entries })
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn write(&mut self, entries: Vec<Entry>) -> Result<()> {
        if entries != self.entries {
            self.rewrite(&text(&entries))
                .context("cannot note what a setting was")?;
            self.entries = entries;
        }
        Ok(())
    }

    /// Keeps only `entries`: all other files have been restored.
    pub(super) fn reduce(&mut self, entries: Vec<Entry>) {
        if let Err(error) = self.rewrite(&text(&entries)) {
            tracing::debug!("a note on a setting stays: {error}");
        }
        self.entries = entries;
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

/// Three lines for each entry.
fn text(entries: &[Entry]) -> String {
    let entry = |entry: &Entry| {
        let path = entry.path.display();
        format!("{path}\n{}\n{}\n", entry.before, entry.ours)
    };
    entries.iter().map(entry).collect()
}

/// `None` for a text that is incomplete anywhere.
fn parse(mut text: &str) -> Option<Vec<Entry>> {
    let mut line = || {
        let (line, rest) = text.split_once('\n')?;
        text = rest;
        Some(line)
    };
    let mut entries = Vec::new();
    while let Some(path) = line() {
        entries.push(Entry {
            path: Some(PathBuf::from(path)).filter(|path| path.is_absolute())?,
            before: line()?.to_owned(),
            ours: line()?.to_owned(),
        });
    }
    text.is_empty().then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, before: &str) -> Entry {
        Entry {
            path: path.into(),
            before: before.into(),
            ours: "0".into(),
        }
    }

    #[test]
    fn text_of_entries_is_read_back() {
        let entries = [entry("/a", "1"), entry("/b", "n/a"), entry("/c", "")];
        for end in 0..=entries.len() {
            assert_eq!(parse(&text(&entries[..end])), Some(entries[..end].to_vec()));
        }
    }

    #[test]
    fn incomplete_texts_are_not_used() {
        for text in [
            "/a",
            "/a\n",
            "/a\n1\n",
            "/a\n1\n0",
            "a\n1\n0\n",
            "/a\n1\n0\n1",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
