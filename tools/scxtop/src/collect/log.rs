// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's log: how the last scheduler ended.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// Maximum number of records that one call reads: the kernel may write records faster than they are
/// read.
const RECORDS_MAX: usize = 100_000;

/// Reads the log from its oldest record on.
pub(super) struct KernelLog {
    /// `None` if it cannot be opened.
    file: Option<File>,
    last_exit: Option<String>,
}

impl KernelLog {
    pub(super) fn open() -> Self {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        let flags = i32::try_from(flags).unwrap_or_default();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open("/dev/kmsg");
        Self {
            file: file.ok(),
            last_exit: None,
        }
    }

    /// The last line about the end of a scheduler.
    pub(super) fn last_exit(&mut self) -> Option<String> {
        // A read returns one record. No record is longer than this buffer.
        let mut record = [0; 8192];
        let Some(file) = &mut self.file else {
            return None;
        };
        for _ in 0..RECORDS_MAX {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let found = exit_of(&String::from_utf8_lossy(&record[..length]));
                    self.last_exit = found.or(self.last_exit.take());
                }
                // Records were overwritten before they were read: the next read continues after
                // them.
                Err(error) if error.raw_os_error() == Some(libc_epipe()) => {}
                Err(_) => break,
            }
        }
        self.last_exit.clone()
    }
}

fn libc_epipe() -> i32 {
    rustix::io::Errno::PIPE.raw_os_error()
}

/// The message of a record, if it reports the end of a scheduler.
fn exit_of(record: &str) -> Option<String> {
    let (_, message) = record.split_once(';')?;
    let message = message.lines().next()?.strip_prefix("sched_ext: ")?;
    let is_exit = message.starts_with("BPF scheduler \"") && message.contains("\" disabled");
    is_exit.then(|| message.trim_start_matches("BPF scheduler ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_schedulers() {
        let record = |message: &str| exit_of(&format!("4,12,345,-;{message}\n SUBSYSTEM=x\n"));
        assert_eq!(
            record("sched_ext: BPF scheduler \"simple\" disabled (unregistered from user space)"),
            Some("\"simple\" disabled (unregistered from user space)".to_owned())
        );
        assert_eq!(record("sched_ext: BPF scheduler \"simple\" enabled"), None);
        assert_eq!(record("other"), None);
        assert_eq!(exit_of("no record"), None);
    }
}
