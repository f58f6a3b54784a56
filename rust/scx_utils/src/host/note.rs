// SPDX-License-Identifier: GPL-2.0-only
//! The values of files before a process changed them, in a note that survives `kill -9`.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The line after a list of entries. No path is equal to it, because paths are absolute.
const END: &str = ".";

/// The note on one setting, which may consist of several files. The process that holds the setting
/// locks the note, and the kernel unlocks it when that process exits. The note is never removed,
/// only emptied: otherwise a process that has just opened it would lock a file that no other
/// process can find.
///
/// A new list of entries is appended to the previous one, and the last complete list counts: a kill
/// while the file is being written loses nothing.
#[derive(Debug)]
pub(super) struct Note {
    file: File,
    entries: Vec<Entry>,
    /// Where the last complete list ends.
    end: u64,
}

/// The note's entry for one file: its value `before` the change, and the value that the holder has
/// set (`ours`).
#[derive(Debug, Clone, Eq, PartialEq)]
pub(super) struct Entry {
    /// The absolute path of the file.
    pub(super) path: PathBuf,
    pub(super) before: String,
    pub(super) ours: String,
}

impl Note {
    /// The note on the setting called `name`, below `dir`. Fails if the setting is already held.
    /// The note's entries, if any, are from a process that was killed, or that could not restore
    /// these files.
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
        let (entries, end) = parse(&text);
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        Ok(Self { file, entries, end })
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Stores `entries`, if they differ from those of the note.
    ///
    /// # Errors
    ///
    /// If the note cannot be written.
    pub(super) fn write(&mut self, entries: Vec<Entry>) -> Result<()> {
        if entries != self.entries {
            self.store(&entries)
                .context("cannot store the previous value of a setting")?;
            self.entries = entries;
        }
        Ok(())
    }

    /// Keeps only `entries`, because all other files have been restored. An error is only logged.
    pub(super) fn reduce(&mut self, entries: Vec<Entry>) {
        if let Err(error) = self.store(&entries) {
            tracing::debug!("a note on a setting stays: {error}");
        }
        self.entries = entries;
    }

    /// Unlocks the note, as the kernel does when the process is killed.
    #[cfg(test)]
    pub(super) fn unlock(&self) {
        self.file.unlock().unwrap();
    }

    /// Makes `entries` the last list, or empties the note if there are none.
    fn store(&mut self, entries: &[Entry]) -> io::Result<()> {
        if entries.is_empty() {
            self.end = 0;
            return self.file.set_len(0);
        }
        // Remove an incomplete list, left by a killed process or an error.
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(text(entries).as_bytes())?;
        self.end = self.file.stream_position()?;
        Ok(())
    }
}

/// Creates the directory if it is missing, accessible to all users regardless of the umask, because
/// the statistics socket is also below it.
fn create_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Ok(()) => fs::set_permissions(dir, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A list: three lines for each entry, and the line [`END`].
fn text(entries: &[Entry]) -> String {
    let entry = |entry: &Entry| {
        let path = entry.path.display();
        format!("{path}\n{}\n{}\n", entry.before, entry.ours)
    };
    let lines: String = entries.iter().map(entry).collect();
    format!("{lines}{END}\n")
}

/// The last complete list of the note, and where it ends.
fn parse(text: &str) -> (Vec<Entry>, usize) {
    let (mut entries, mut rest) = (Vec::new(), text);
    while let Some(list) = parse_list(rest) {
        (entries, rest) = list;
    }
    (entries, text.len() - rest.len())
}

/// The first list of `text`, and the text after it. `None` if the list is incomplete, or has a path
/// that is not absolute.
fn parse_list(mut text: &str) -> Option<(Vec<Entry>, &str)> {
    let mut entries = Vec::new();
    loop {
        let path = line(&mut text)?;
        if path == END {
            return Some((entries, text));
        }
        entries.push(Entry {
            path: Some(PathBuf::from(path)).filter(|path| path.is_absolute())?,
            before: line(&mut text)?.to_owned(),
            ours: line(&mut text)?.to_owned(),
        });
    }
}

/// Takes the first line from `text`. `None` if the line has no newline.
fn line<'a>(text: &mut &'a str) -> Option<&'a str> {
    let (line, rest) = text.split_once('\n')?;
    *text = rest;
    Some(line)
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
        let entries = [entry("/a", "1"), entry("/b", "."), entry("/c", "")];
        for end in 1..=entries.len() {
            let text = text(&entries[..end]);
            assert_eq!(parse(&text), (entries[..end].to_vec(), text.len()));
        }
        assert_eq!(parse(""), (Vec::new(), 0));
    }

    #[test]
    fn incomplete_lists_are_not_used() {
        let entries = vec![entry("/z", "1")];
        let complete = text(&entries);
        for incomplete in [
            "/a",
            "/a\n",
            "/a\n1\n",
            "/a\n1\n0",
            "/a\n1\n0\n",
            "/a\n1\n0\n.",
            "a\n1\n0\n.\n",
            "/a\n1\n.\n",
        ] {
            assert_eq!(parse(incomplete), (Vec::new(), 0), "{incomplete:?}");
            let both = format!("{complete}{incomplete}");
            assert_eq!(parse(&both), (entries.clone(), complete.len()), "{both:?}");
        }
    }

    /// A killed process may have written only a prefix of the new list, of any length.
    #[test]
    fn kill_while_a_list_is_written_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        let take = || Note::take(Path::new("/note"), dir.path()).unwrap();
        let first = vec![entry("/a", "100"), entry("/b", "32")];
        let shorter = vec![entry("/b", "32")];
        let longer = vec![entry("/a", "100"), entry("/b", "n/a"), entry("/c", "7")];
        for second in [shorter, longer] {
            let mut note = take();
            note.reduce(Vec::new());
            note.write(first.clone()).unwrap();
            let before = fs::read(&path).unwrap();
            note.write(second.clone()).unwrap();
            drop(note);
            let after = fs::read(&path).unwrap();
            assert!(after.starts_with(&before));
            for end in before.len()..=after.len() {
                fs::write(&path, &after[..end]).unwrap();
                let is_complete = end == after.len();
                assert_eq!(take().entries(), if is_complete { &second } else { &first });
                // The next list replaces an incomplete one.
                let third = vec![entry("/d", "1")];
                take().reduce(third.clone());
                assert_eq!(take().entries(), third);
            }
        }
    }

    #[test]
    fn note_without_entries_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let mut note = Note::take(Path::new("/note"), dir.path()).unwrap();
        note.write(vec![entry("/a", "1")]).unwrap();
        note.reduce(Vec::new());
        assert_eq!(fs::read(dir.path().join("note")).unwrap(), b"");
        note.write(vec![entry("/b", "2")]).unwrap();
        drop(note);
        let note = Note::take(Path::new("/note"), dir.path()).unwrap();
        assert_eq!(note.entries(), [entry("/b", "2")]);
    }
}
