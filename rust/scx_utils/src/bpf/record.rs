// SPDX-License-Identifier: GPL-2.0-only
//! The exit record of a scheduler's BPF side: `<scx/exit_info.bpf.h>`.

use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, OpenObject};
use memmap2::{MmapOptions, MmapRaw};

use crate::btf;
use crate::exit_info::ExitInfo;

/// The type of the record, its section, the section of the dump's size, and the dump's map.
const RECORD: &str = "scx_exit_record";
const SECTION: &str = ".data.scx_exit";
const RODATA: &str = ".rodata.scx_exit";
const DUMP: &str = "scx_exit_dump";
const INCLUDE: &str = "the BPF side must include <scx/exit_info.bpf.h>";

/// The byte ranges of the record's members.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    kind: Range<usize>,
    dump_len: Range<usize>,
    code: Range<usize>,
    reason: Range<usize>,
    msg: Range<usize>,
}

impl Layout {
    /// Reads the byte ranges from the object's type information.
    pub(super) fn of(object: &OpenObject) -> Result<Self> {
        let btf = btf::of_object(object).context("the BPF object has no type information")?;
        let member = |name| btf::member(&btf, RECORD, name).context(INCLUDE);
        Ok(Self {
            kind: member("kind")?,
            dump_len: member("dump_len")?,
            code: member("exit_code")?,
            reason: member("reason")?,
            msg: member("msg")?,
        })
    }
}

/// Sets the size of the BPF side's dump buffer, in bytes.
pub(super) fn set_dump_len(object: &mut OpenObject, dump_len: u32) -> Result<()> {
    let mut map = object
        .maps_mut()
        .find(|map| map.name() == DUMP)
        .context(INCLUDE)?;
    map.set_value_size(dump_len)?;
    let mut rodata = object
        .maps_mut()
        .find(|map| map.name() == RODATA)
        .context(INCLUDE)?;
    let size = rodata
        .initial_value_mut()
        .and_then(|value| value.get_mut(..4))
        .context(INCLUDE)?;
    size.copy_from_slice(&dump_len.to_ne_bytes());
    Ok(())
}

/// The record of a loaded object. It has its own mapping and file descriptor, so it may outlive the
/// object.
#[derive(Debug)]
pub(super) struct Record {
    layout: Layout,
    /// The section's memory, written by BPF.
    section: MmapRaw,
    dump: MapHandle,
}

impl Record {
    pub(super) fn find(object: &Object, layout: Layout) -> Result<Self> {
        let map = |name| {
            object
                .maps()
                .find(|map| map.name() == name)
                .context(INCLUDE)
        };
        let dump = MapHandle::try_from(&map(DUMP)?)?;
        let section = map(SECTION)?;
        let len = usize::try_from(section.value_size())?;
        anyhow::ensure!(layout.msg.end <= len && layout.kind.end <= len, INCLUDE);
        let section = MmapOptions::new()
            .len(len)
            .map_raw_read_only(section.as_fd().as_raw_fd())
            .context("cannot map the exit record")?;
        Ok(Self {
            layout,
            section,
            dump,
        })
    }

    /// `enum scx_exit_kind`; 0 while the scheduler runs. Reading it needs no system call.
    pub(super) fn kind(&self) -> i32 {
        // SAFETY: within the mapping (checked in `find`), aligned by the compiler, and written
        // atomically by BPF. A load needs no write permission.
        let kind = unsafe {
            let kind = self.section.as_ptr().add(self.layout.kind.start);
            AtomicI32::from_ptr(kind.cast::<i32>().cast_mut())
        };
        kind.load(Ordering::Acquire)
    }

    /// The whole record; empty while the scheduler runs.
    pub(super) fn read(&self) -> ExitInfo {
        let kind = self.kind();
        if kind == 0 {
            return ExitInfo::default();
        }
        let mut bytes = vec![0; self.section.len()];
        // SAFETY: `bytes` is as long as the mapping, and BPF writes `kind` last, so the record no
        // longer changes.
        unsafe {
            bytes
                .as_mut_ptr()
                .copy_from(self.section.as_ptr(), bytes.len())
        };
        let dump_len =
            number::<4>(&bytes[self.layout.dump_len.clone()]).map_or(0, u32::from_ne_bytes);
        ExitInfo {
            kind,
            code: number::<8>(&bytes[self.layout.code.clone()]).map_or(0, i64::from_ne_bytes),
            reason: text(&bytes[self.layout.reason.clone()], ""),
            msg: text(&bytes[self.layout.msg.clone()], ""),
            dump: self.read_dump(usize::try_from(dump_len).unwrap_or(usize::MAX)),
            ran: true,
        }
    }

    fn read_dump(&self, len: usize) -> String {
        let key = 0_u32.to_ne_bytes();
        let Ok(Some(bytes)) = self.dump.lookup(&key, MapFlags::ANY) else {
            return String::new();
        };
        text(&bytes[..len.min(bytes.len())], "\n\t")
    }
}

fn number<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// A C string, possibly truncated. It may contain task names, which are arbitrary bytes that users
/// choose. They must not send control sequences to a terminal, or start a new line in a one-line
/// text. So all control characters except those in `kept` are replaced. The dump has several lines,
/// so it keeps newlines and tabs.
fn text(bytes: &[u8], kept: &str) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    let foreign = |c: char| c.is_control() && !kept.contains(c);
    String::from_utf8_lossy(&bytes[..end]).replace(foreign, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_name_begins_no_line_and_commands_no_terminal() {
        let bytes = b"\nEXIT: a\x1b]0;b\xc2\x9b\xc3\xa9[12] failed to run\0beyond";
        let (line, dump) = (text(bytes, ""), text(bytes, "\n\t"));
        let expected = "EXIT: a\u{fffd}]0;b\u{fffd}é[12] failed to run";
        assert_eq!(line, format!("\u{fffd}{expected}"));
        assert_eq!(dump, format!("\n{expected}"));
        assert_eq!(text(b"no end", ""), "no end");
    }
}
