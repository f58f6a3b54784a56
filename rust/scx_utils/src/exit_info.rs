// SPDX-License-Identifier: GPL-2.0-only
//! How a scheduler ended: the kernel's record, its consequence, and its report.

use std::io::{self, Write};

/// The first `kind` that is an error. The numbers are the kernel's ABI (`enum scx_exit_kind`),
/// identical on all kernels from 6.12 on.
const FIRST_ERROR: i32 = 1024;

/// The mask of the action in an exit code (bits 48 to 63), and the action that requests a restart
/// (`SCX_ECODE_ACT_RESTART`).
const ACT_MASK: i64 = !0 << 48;
const ACT_RESTART: i64 = 1 << 48;

/// Length of the lines of `=` around a debug dump.
const RULE_WIDTH: usize = 80;

/// The kernel's record of the end of a scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitInfo {
    /// `enum scx_exit_kind`: 0 while the scheduler runs, 64 and more if it was unregistered, 1024
    /// and more if it was ejected with an error.
    pub kind: i32,
    /// Bits 0 to 31 are the scheduler's own code, bits 32 to 47 are the kernel's reason, and bits
    /// 48 to 63 are the requested action.
    pub code: i64,
    /// The kernel's text for the kind.
    pub reason: String,
    /// Details, empty if there are none.
    pub msg: String,
    /// The debug dump of an ejected scheduler, empty if there is none.
    pub dump: String,
    /// Whether the scheduler was ever enabled. Registration succeeds even if the kernel then fails
    /// to enable the scheduler, for example because `ops.init()` returns an error.
    pub ran: bool,
}

/// The consequence of the end of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A clean end.
    Done,
    /// A restart is requested: by the kernel after CPU hotplug, or by the scheduler.
    Restart,
    /// The scheduler ended with an error before it was enabled.
    Failed,
    /// The scheduler was enabled, and ended with an error.
    Ejected,
}

impl ExitInfo {
    /// How the runner reacts to this exit. An error takes precedence over a restart that the exit
    /// code requests.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if self.kind >= FIRST_ERROR {
            if self.ran {
                Outcome::Ejected
            } else {
                Outcome::Failed
            }
        } else if self.code & ACT_MASK == ACT_RESTART {
            Outcome::Restart
        } else {
            Outcome::Done
        }
    }

    /// The scheduler's own part of the exit code, bits 0 to 31.
    #[must_use]
    pub fn user_code(&self) -> u32 {
        u32::try_from(self.code & 0xffff_ffff).unwrap_or(u32::MAX)
    }

    /// The message, or the reason if there is none.
    #[must_use]
    pub fn cause(&self) -> &str {
        if self.msg.is_empty() {
            &self.reason
        } else {
            &self.msg
        }
    }

    /// Writes the debug dump, if there is one after an error, and then the line
    /// `EXIT: reason (msg)`. Writes nothing if the scheduler has not ended.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn report(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.kind == 0 {
            return Ok(());
        }
        if self.kind >= FIRST_ERROR && !self.dump.is_empty() {
            let rule = "=".repeat(RULE_WIDTH);
            writeln!(out, "{rule}\nDEBUG DUMP\n{rule}\n\n{}\n{rule}", self.dump)?;
        }
        write!(out, "EXIT: {}", self.reason)?;
        if !self.msg.is_empty() {
            write!(out, " ({})", self.msg)?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(kind: i32, code: i64, ran: bool) -> ExitInfo {
        ExitInfo {
            kind,
            code,
            ran,
            ..ExitInfo::default()
        }
    }

    #[test]
    fn errors_are_told_from_clean_ends() {
        for (kind, ran, outcome) in [
            (64, true, Outcome::Done),
            (66, true, Outcome::Done),
            (67, true, Outcome::Done),
            (1024, true, Outcome::Ejected),
            (1026, true, Outcome::Ejected),
            (1025, false, Outcome::Failed),
        ] {
            assert_eq!(ended(kind, 0, ran).outcome(), outcome, "kind {kind}");
        }
    }

    #[test]
    fn only_the_restart_action_restarts() {
        assert_eq!(
            ended(66, ACT_RESTART | 1 << 32, true).outcome(),
            Outcome::Restart
        );
        assert_eq!(ended(65, ACT_RESTART | 7, true).outcome(), Outcome::Restart);
        assert_eq!(ended(65, 7, true).outcome(), Outcome::Done);
        assert_eq!(ended(65, 2 << 48, true).outcome(), Outcome::Done);
        assert_eq!(
            ended(65, 3 << 48, true).outcome(),
            Outcome::Done,
            "another action"
        );
        // An error has precedence over the code.
        assert_eq!(ended(1024, ACT_RESTART, true).outcome(), Outcome::Ejected);
    }

    #[test]
    fn the_schedulers_own_code_has_32_bits() {
        assert_eq!(
            ended(65, ACT_RESTART | 0xdead_beef, true).user_code(),
            0xdead_beef
        );
    }

    fn report(info: &ExitInfo) -> String {
        let mut text = Vec::new();
        info.report(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn report_ends_with_one_line() {
        let mut info = ended(1025, 0, true);
        info.reason = "scx_bpf_error".into();
        info.msg = "as asked".into();
        info.dump = "queue is empty".into();
        let text = report(&info);
        assert!(
            text.contains("DEBUG DUMP") && text.contains("\nqueue is empty\n"),
            "{text}"
        );
        assert!(
            text.ends_with("\nEXIT: scx_bpf_error (as asked)\n"),
            "{text}"
        );
    }

    #[test]
    fn clean_end_has_no_dump_and_no_empty_parentheses() {
        let mut info = ended(64, 0, true);
        info.reason = "unregistered from user space".into();
        info.dump = "left over".into();
        assert_eq!(report(&info), "EXIT: unregistered from user space\n");
        assert_eq!(report(&ended(0, 0, true)), "");
    }
}
