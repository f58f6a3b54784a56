// SPDX-License-Identifier: GPL-2.0-only
//! The programs that trace sockets, pipes and futexes. Each group of programs is optional. If the
//! kernel lacks a function that a group traces, or does not support tracing, the scheduler runs
//! without the group.

use anyhow::Result;
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::Link;
use scx_utils::bpf::Opened;
use scx_utils::compat::KernelBtf;

use crate::opts::{Economy, Opts};

/// Names of programs, each with the possible names of the kernel function that it traces. The first
/// name that the kernel has is used.
type Programs = &'static [(&'static str, &'static [&'static str])];

const SOCKETS: Programs = &[
    ("economy_stream_send", &["unix_stream_sendmsg"]),
    ("economy_stream_received", &["unix_stream_recvmsg"]),
    ("economy_packet_send", &["unix_seqpacket_sendmsg"]),
    ("economy_packet_received", &["unix_seqpacket_recvmsg"]),
    ("economy_closed", &["unix_release"]),
    ("economy_freed", &["unix_sock_destructor"]),
];

const PIPES: Programs = &[
    ("economy_pipe_write", &["anon_pipe_write", "pipe_write"]),
    ("economy_pipe_read", &["anon_pipe_read", "pipe_read"]),
    ("economy_pipe_freed", &["free_pipe_info"]),
];

const FUTEXES: Programs = &[
    ("economy_futex_lock", &["futex_lock_pi"]),
    ("economy_futex_locked", &["futex_lock_pi"]),
];

/// A group of programs that are loaded together.
struct Group {
    /// What the scheduler does only with these programs.
    effect: &'static str,
    programs: Programs,
    is_wanted: bool,
}

fn groups(opts: &Opts) -> [Group; 3] {
    let trades = opts.economy == Economy::On;
    [
        Group {
            effect: "payments over Unix sockets",
            programs: SOCKETS,
            is_wanted: trades,
        },
        Group {
            effect: "payments over pipes (--pipes)",
            programs: PIPES,
            is_wanted: trades && opts.pipes,
        },
        Group {
            effect: "loans to owners of futexes (--futex)",
            programs: FUTEXES,
            is_wanted: trades && opts.futex,
        },
    ]
}

/// Selects the programs to load.
///
/// # Errors
///
/// Errors of libbpf.
pub(crate) fn select<'obj, S: OpenSkel<'obj>>(
    opened: &mut Opened<S>,
    btf: &KernelBtf,
    opts: &Opts,
) -> Result<()> {
    for group in groups(opts) {
        let missing = missing(group.programs, btf);
        if let (true, Some(function)) = (group.is_wanted, missing) {
            tracing::warn!("no {}: the kernel lacks {function}()", group.effect);
        }
        let is_loaded = group.is_wanted && missing.is_none();
        for (name, functions) in group.programs {
            let mut programs = opened.open_object_mut().progs_mut();
            let Some(mut program) = programs.find(|program| program.name() == *name) else {
                continue;
            };
            program.set_autoload(is_loaded);
            if let (true, Some(function)) = (is_loaded, present(functions, btf)) {
                program.set_attach_target(0, Some(function.to_owned()))?;
            }
        }
    }
    Ok(())
}

/// The first of `functions` that the kernel has.
fn present(functions: &[&'static str], btf: &KernelBtf) -> Option<&'static str> {
    functions.iter().find(|name| btf.has_ksym(name)).copied()
}

/// Returns a function that one of `programs` traces and that the kernel lacks, if there is one.
fn missing(programs: Programs, btf: &KernelBtf) -> Option<&'static str> {
    let lacks = |functions: &&[&'static str]| present(functions, btf).is_none();
    let mut functions = programs.iter().map(|(_, functions)| *functions);
    functions.find(lacks)?.first().copied()
}

/// Attaches the programs that were loaded. If one of a group cannot be attached, none of the group
/// is attached.
pub(crate) fn attach<'obj>(skel: &mut impl Skel<'obj>, opts: &Opts) -> Vec<Link> {
    let mut links = Vec::new();
    for group in groups(opts) {
        let is_member = |name: &std::ffi::OsStr| group.programs.iter().any(|(own, _)| name == *own);
        let programs = skel.object_mut().progs_mut();
        let programs = programs.filter(|program| is_member(program.name()) && program.autoload());
        match programs
            .map(|program| program.attach())
            .collect::<Result<Vec<_>, _>>()
        {
            Ok(attached) => links.extend(attached),
            Err(error) => tracing::warn!("no {}: {error}", group.effect),
        }
    }
    links
}
