// SPDX-License-Identifier: GPL-2.0-only
//! The file of a trace. It gets its name once it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{bail, Context as _, Result};
use prost::Message as _;
use tempfile::NamedTempFile;

use super::proto::{TracePacket, PACKET_KEY};

/// A file to be written. It is removed if it is not finished.
#[derive(Debug)]
pub(crate) struct Output {
    file: NamedTempFile,
    path: PathBuf,
}

impl Output {
    /// Creates the file under a temporary name.
    ///
    /// # Errors
    ///
    /// If no file can be created in the directory, or if `path` exists and is not a regular file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let context = || format!("cannot create {}", path.display());
        // A device must not be replaced, and a symbolic link in /tmp may be another user's.
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            bail!("{}: not a regular file", context());
        }
        let directory = match path.parent() {
            Some(parent) if parent == Path::new("") => Path::new("."),
            Some(parent) => parent,
            None => Path::new("/"),
        };
        // Unlike the default of the crate tempfile, this makes the file readable by others, and
        // keeps the temporary name out of error messages.
        let create = |path: &Path| File::options().write(true).create_new(true).open(path);
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(".scxtop-").make_in(directory, create);
        let file = file.with_context(context)?;
        let path = path.to_path_buf();
        Ok(Self { file, path })
    }

    /// Writes the packets that `write` passes on, and gives the file its name. Returns its size in
    /// bytes.
    pub(super) fn finish(
        self,
        write: impl FnOnce(&mut Encoder<'_>) -> io::Result<()>,
    ) -> Result<u64> {
        let context = || format!("cannot write {}", self.path.display());
        let mut writer = BufWriter::new(self.file.as_file());
        write(&mut Encoder { out: &mut writer }).with_context(context)?;
        writer.flush().with_context(context)?;
        drop(writer);
        let bytes = self.file.as_file().metadata().with_context(context)?.len();
        let renamed = self.file.persist(&self.path);
        renamed
            .map_err(|error| error.error)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(bytes)
    }
}

/// Encodes packets.
pub(super) struct Encoder<'a> {
    out: &'a mut dyn Write,
}

impl Encoder<'_> {
    /// Writes the packets, and removes them from the list.
    pub(super) fn write(&mut self, packets: &mut Vec<TracePacket>) -> io::Result<()> {
        for packet in packets.drain(..) {
            self.out.write_all(&[PACKET_KEY])?;
            self.out
                .write_all(&packet.encode_length_delimited_to_vec())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn no_half_file_remains() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.pftrace");
        let nr_files = || fs::read_dir(directory.path()).unwrap().count();
        drop(Output::create(&path).unwrap());
        assert_eq!(nr_files(), 0);
        let fail = |_: &mut Encoder<'_>| Err(io::Error::other("no"));
        let error = Output::create(&path).unwrap().finish(fail).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            format!("cannot write {}: no", path.display())
        );
        assert_eq!(nr_files(), 0);
        Output::create(&path).unwrap().finish(|_| Ok(())).unwrap();
        assert!(path.is_file());
        assert_eq!(nr_files(), 1);
    }

    #[test]
    fn errors_come_before_the_recording() {
        let error = |path: &str| format!("{:#}", Output::create(Path::new(path)).unwrap_err());
        let missing = "cannot create /no/such/a: No such file or directory (os error 2)";
        assert_eq!(error("/no/such/a"), missing);
        let device = "cannot create /dev/null: not a regular file";
        assert_eq!(error("/dev/null"), device);
        assert_eq!(error("/"), "cannot create /: not a regular file");
    }

    #[test]
    fn links_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Output::create(&link).unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), b"old");
    }
}
