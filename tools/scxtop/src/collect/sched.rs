// SPDX-License-Identifier: GPL-2.0-only
//! The state of sched_ext.

use std::fs;
use std::path::Path;

use scx_utils::kernel::SchedExt;

use crate::model::Sched;

pub(super) fn read(root: &Path, last_exit: Option<String>) -> Sched {
    let kernel = SchedExt::new(root);
    let switch_all = fs::read_to_string(root.join("sys/kernel/sched_ext/switch_all"));
    Sched {
        state: kernel.state(),
        name: Some(kernel.ops()).filter(|name| !name.is_empty()),
        is_switch_all: switch_all.is_ok_and(|text| text.trim() == "1"),
        enable_seq: kernel.enable_seq(),
        last_exit,
    }
}
