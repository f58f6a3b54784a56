//! Small files of sysfs, or of a captured copy of it.
//!
//! Missing, unreadable, too long or invalid contents are `None` or an error: callers have
//! fallbacks. Only regular files are opened, so that a pipe in a malformed tree does not
//! block.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use crate::cpumask::{Cpumask, MAX_NR_CPU_IDS};

/// Maximum length of a file, bytes. The longest list of CPUs below [`MAX_NR_CPU_IDS`],
/// `0-1,3-4` and so on, takes 57 KiB.
const MAX_BYTES: usize = 64 << 10;

/// Reads a whole text file.
///
/// Fails with the kind `InvalidData` if it is not a regular file, is longer than
/// [`MAX_BYTES`] or not UTF-8.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    if !fs::metadata(path)?.is_file() {
        return Err(invalid("not a regular file"));
    }
    let mut bytes = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        return Err(invalid("too long"));
    }
    String::from_utf8(bytes).map_err(|_| invalid("not text"))
}

/// A list of CPUs as a mask of the maximum width.
pub(crate) fn list(path: &Path) -> io::Result<Cpumask> {
    let parsed = Cpumask::from_list(&text(path)?, MAX_NR_CPU_IDS);
    parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The CPUs of a list that are in `of`, with the width of `of`.
pub(crate) fn list_within(path: &Path, of: &Cpumask) -> Option<Cpumask> {
    let list = list(path).ok()?;
    Some(of.and(&list.resized(of.nr_cpu_ids())))
}

/// The CPUs of a mask in hex form that are in `of`, with the width of `of`.
pub(crate) fn hex_within(path: &Path, of: &Cpumask) -> Option<Cpumask> {
    let mask = Cpumask::from_hex(&text(path).ok()?, MAX_NR_CPU_IDS).ok()?;
    Some(of.and(&mask.resized(of.nr_cpu_ids())))
}

/// A decimal number in the range of `T`.
pub(crate) fn number<T: FromStr>(path: &Path) -> Option<T> {
    text(path).ok()?.trim().parse().ok()
}

/// A decimal number from 1 to 2^32 - 1.
pub(crate) fn positive(path: &Path) -> Option<u32> {
    number(path).filter(|&number: &u32| number > 0)
}

/// The numbers below `end` of the entries of `dir` that are named `prefix` and a number, in
/// ascending order. Empty if the directory cannot be read.
pub(crate) fn numbered(dir: &Path, prefix: &str, end: usize) -> Vec<usize> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix(prefix)?;
        number.parse().ok().filter(|&number| number < end)
    });
    let mut numbers: Vec<usize> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
