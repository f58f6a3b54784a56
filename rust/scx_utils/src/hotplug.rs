//! The kernel's count of CPU hotplug events.

use std::io;
use std::path::{Path, PathBuf};

use crate::topology::sysfs;

/// The file with the count, relative to the root.
const HOTPLUG_SEQ: &str = "sys/kernel/sched_ext/hotplug_seq";

/// The file of the hotplug count exists, but cannot be read or is invalid.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the hotplug count from {}: {source}", path.display())]
pub struct HotplugError {
    /// The file.
    pub path: PathBuf,
    /// The error. Text that is not a number has the kind `InvalidData`.
    pub source: io::Error,
}

/// Proof that the kernel's hotplug count was read before the topology.
///
/// A scheduler passes [`seq`](Self::seq) to the kernel when it attaches. If the count has changed,
/// the kernel ends the scheduler with a restart code, so no hotplug event after the token was read
/// goes unnoticed. A count that is read after the topology would miss events between the two reads,
/// so reading a topology requires a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HotplugToken {
    seq: u64,
    root: PathBuf,
}

impl HotplugToken {
    /// Reads `<root>/sys/kernel/sched_ext/hotplug_seq`; `root` is `/` on a real
    /// machine and the top of a captured tree in tests.
    ///
    /// Without that file (a kernel without sched_ext, a captured tree) the count is
    /// 0, which disables the kernel's check.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read, or is not a decimal number below 2^64.
    pub fn read(root: &Path) -> Result<Self, HotplugError> {
        let path = root.join(HOTPLUG_SEQ);
        let seq = match sysfs::text(&path) {
            Ok(text) => parse(&text).map_err(|source| HotplugError { path, source })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(source) => return Err(HotplugError { path, source }),
        };
        let root = root.to_path_buf();
        Ok(Self { seq, root })
    }

    /// The count when the token was read.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The root directory below which the count was read, and the topology is read.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn parse(text: &str) -> io::Result<u64> {
    let number = text.trim().parse();
    number.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a decimal number"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn root_with(seq: &[u8]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(HOTPLUG_SEQ);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, seq).unwrap();
        root
    }

    #[test]
    fn the_count_and_its_root() {
        let root = root_with(b"18446744073709551615\n");
        let token = HotplugToken::read(root.path()).unwrap();
        assert_eq!(token.seq(), u64::MAX);
        assert_eq!(token.root(), root.path());
    }

    #[test]
    fn a_kernel_without_the_file_counts_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(HotplugToken::read(root.path()).unwrap().seq(), 0);
    }

    #[test]
    fn nonsense_is_an_error_that_names_the_file() {
        for garbage in [&b""[..], b"-1", b"18446744073709551616", b"\xff\xfe"] {
            let root = root_with(garbage);
            let error = HotplugToken::read(root.path()).unwrap_err();
            assert!(error.to_string().contains(HOTPLUG_SEQ), "{error}");
        }
    }
}
