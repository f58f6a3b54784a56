// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's functions that insert tasks into DSQs, under their names in Linux 6.12 to 7.2, and
//! the programs that observe them (`bpf/insert.bpf.h`).

use std::path::Path;

use libbpf_rs::{Error, ErrorKind, Link, ProgramMut};
use scx_utils::kernel::SchedExt;

use crate::bpf::{BpfProgs, OpenBpfProgs};

/// The arguments of a function.
#[derive(Clone, Copy, Debug)]
enum Arguments {
    /// Task, DSQ, slice, flags.
    Fifo,
    /// Task, DSQ, slice, vtime, flags.
    Vtime,
    /// Task, and a struct with the other arguments.
    Struct,
    /// Iterator, task, DSQ, flags.
    Move,
}

/// All functions whose arguments identify the task. A kernel may have several variants of a
/// function: older ones are kept for programs that were built for older kernels.
const FUNCTIONS: [(&str, Arguments); 10] = [
    ("scx_bpf_dispatch", Arguments::Fifo),
    ("scx_bpf_dsq_insert", Arguments::Fifo),
    ("scx_bpf_dsq_insert___v2", Arguments::Fifo),
    ("scx_bpf_dispatch_vtime", Arguments::Vtime),
    ("scx_bpf_dsq_insert_vtime", Arguments::Vtime),
    ("__scx_bpf_dsq_insert_vtime", Arguments::Struct),
    ("scx_bpf_dispatch_from_dsq", Arguments::Move),
    ("scx_bpf_dispatch_vtime_from_dsq", Arguments::Move),
    ("scx_bpf_dsq_move", Arguments::Move),
    ("scx_bpf_dsq_move_vtime", Arguments::Move),
];

/// On a kernel without sched_ext, excludes the programs from loading, because they use types of
/// sched_ext.
pub(super) fn select(progs: &mut OpenBpfProgs<'_>) {
    let exists = !SchedExt::new(Path::new("/")).state().is_empty();
    progs.on_insert_fifo.set_autoload(exists);
    progs.on_insert_vtime.set_autoload(exists);
    progs.on_insert_args.set_autoload(exists);
    progs.on_move.set_autoload(exists);
}

/// Attaches the programs to those functions that the kernel has. Returns a notice if the kernel
/// does not allow a probe.
pub(super) fn attach(progs: &BpfProgs<'_>, links: &mut Vec<Link>) -> Vec<String> {
    if SchedExt::new(Path::new("/")).state().is_empty() {
        return Vec::new();
    }
    // libbpf would print several lines for each function that the kernel lacks.
    let print = libbpf_rs::set_print(None);
    let mut attached = false;
    let mut failed = Vec::new();
    for (name, arguments) in FUNCTIONS {
        match program(progs, arguments).attach_kprobe(false, name) {
            Ok(link) => {
                links.push(link);
                attached = true;
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => failed.push(format!("{name} ({error})")),
        }
    }
    libbpf_rs::set_print(print);
    notice(attached, &failed).into_iter().collect()
}

/// What to tell the user if some functions cannot be observed.
fn notice(attached: bool, failed: &[String]) -> Option<String> {
    let which = if attached { "some " } else { "" };
    let functions = failed.join(", ");
    (!failed.is_empty()).then(|| {
        format!(
            "{which}insertions into DSQs are not visible: the kernel allows no probe of {functions}"
        )
    })
}

/// Whether attaching failed because the kernel has no function of the given name.
fn is_absent(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

fn program<'a, 'obj>(progs: &'a BpfProgs<'obj>, arguments: Arguments) -> &'a ProgramMut<'obj> {
    match arguments {
        Arguments::Fifo => &progs.on_insert_fifo,
        Arguments::Vtime => &progs.on_insert_vtime,
        Arguments::Struct => &progs.on_insert_args,
        Arguments::Move => &progs.on_move,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_names_all_functions() {
        assert_eq!(notice(true, &[]), None);
        let failed = ["a (EPERM)".to_owned(), "b (EPERM)".to_owned()];
        let text = notice(true, &failed).unwrap();
        assert!(text.starts_with("some insertions"), "{text}");
        assert!(text.ends_with("a (EPERM), b (EPERM)"), "{text}");
        assert!(notice(false, &failed).unwrap().starts_with("insertions"));
    }
}
