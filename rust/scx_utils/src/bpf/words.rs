// SPDX-License-Identifier: GPL-2.0-only
//! Memory that both sides of a scheduler access concurrently.

use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{ensure, Context as _, Result};
use libbpf_rs::MapCore;
use memmap2::{MmapOptions, MmapRaw};

const WORD_BYTES: usize = size_of::<u64>();

/// A section of 64-bit words of a BPF object, such as `.data.NAME`, that BPF programs write while
/// user space reads it, or the other way round. A reference into the skeleton would promise the
/// compiler that nothing else writes there.
///
/// Each word is accessed atomically, but several words are not read as a consistent snapshot.
#[derive(Debug)]
pub struct Words {
    memory: MmapRaw,
}

impl Words {
    /// Maps the section.
    ///
    /// # Errors
    ///
    /// If the section is empty, its size is not a multiple of a word, or it cannot be mapped.
    pub fn map(section: &impl MapCore) -> Result<Self> {
        let bytes = usize::try_from(section.value_size())?;
        Self::map_fd(section.as_fd(), bytes)
            .with_context(|| format!("cannot map {}", section.name().display()))
    }

    /// Maps all elements of an array (`BPF_MAP_TYPE_ARRAY` with `BPF_F_MMAPABLE`), one after the
    /// other.
    ///
    /// # Errors
    ///
    /// If the size of an element is not a multiple of a word, or if the array cannot be mapped.
    pub fn map_array(array: &impl MapCore) -> Result<Self> {
        let element_bytes = usize::try_from(array.value_size())?;
        // The kernel pads elements of other sizes.
        ensure!(
            element_bytes.is_multiple_of(WORD_BYTES),
            "elements of {element_bytes} bytes are not a whole number of 64-bit words"
        );
        let bytes = element_bytes * usize::try_from(array.max_entries())?;
        Self::map_fd(array.as_fd(), bytes)
            .with_context(|| format!("cannot map {}", array.name().display()))
    }

    /// Maps the first `bytes` bytes of a file, such as that of a map.
    ///
    /// # Errors
    ///
    /// If `bytes` is 0 or not a multiple of a word, or if the file cannot be mapped.
    pub fn map_fd(fd: BorrowedFd<'_>, bytes: usize) -> Result<Self> {
        ensure!(
            bytes > 0 && bytes.is_multiple_of(WORD_BYTES),
            "{bytes} bytes are not a whole number of 64-bit words"
        );
        let memory = MmapOptions::new().len(bytes).map_raw(fd.as_raw_fd())?;
        Ok(Self { memory })
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        let is_within = index < self.memory.len() / WORD_BYTES;
        // SAFETY: within the mapping, which lives as long as `self`; aligned, since a mapping
        // begins at a page boundary; and the other side reads and writes whole words.
        is_within.then(|| unsafe {
            AtomicU64::from_ptr(self.memory.as_mut_ptr().cast::<u64>().add(index))
        })
    }

    /// The word with this index; `None` beyond the last word.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        Some(self.word(index)?.load(Ordering::Relaxed))
    }

    /// Writes the word with this index. Does nothing beyond the last word.
    pub fn set(&self, index: usize, value: u64) {
        if let Some(word) = self.word(index) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    /// A section of `bytes` bytes, mapped twice.
    fn section(bytes: usize) -> Result<(Words, Words)> {
        let file = tempfile::tempfile()?;
        file.set_len(4096)?;
        let map = || Words::map_fd(file.as_fd(), bytes);
        Ok((map()?, map()?))
    }

    #[test]
    fn what_one_side_writes_the_other_reads() {
        let (ours, theirs) = section(24).unwrap();
        theirs.set(2, u64::MAX - 1);
        assert_eq!(ours.get(2), Some(u64::MAX - 1));
        ours.set(0, 7);
        assert_eq!(theirs.get(0), Some(7));
        assert_eq!(ours.get(1), Some(0));
    }

    #[test]
    fn index_beyond_the_last_word_is_ignored() {
        let (ours, theirs) = section(16).unwrap();
        ours.set(2, 1);
        assert_eq!((theirs.get(1), theirs.get(2)), (Some(0), None));
        assert_eq!(ours.get(usize::MAX), None);
    }

    #[test]
    fn partial_words_are_refused() {
        assert!(section(0).is_err());
        assert!(section(12).is_err());
    }
}
