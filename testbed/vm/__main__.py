# SPDX-License-Identifier: GPL-2.0-only
"""The command line of the VM harness; see `--help`."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import debs

from . import kernel_build, kernels, progress, replay, topology
from .cli import UsageError, complain
from .guest import CommandError, Guest, GuestError, to_stdout
from .initramfs import InitramfsError
from .qemu import QemuError

STATUS_USAGE = 2
#: The harness failed, not the command in the guest.
STATUS_HARNESS = 125
#: The command was killed because of --timeout. The status is that of timeout(1).
STATUS_TIMEOUT = 124
STATUS_INTERRUPTED = 128 + signal.SIGINT

STATUS_BROKEN_PIPE = 128 + signal.SIGPIPE

#: Maximum of --for and --timeout.
_LONGEST_S = 7 * 24 * 3600.0
#: Maximum life time of a guest. It is longer than any limit of a command, so that the limit expires
#: first.
_LIFETIME_S = _LONGEST_S + 3600

_ERRORS = (
    *(CommandError, GuestError, InitramfsError, QemuError, OSError),
    *(debs.DebsError, kernels.KernelError),
)


_KERNEL_HELP = """\
ACTION is one of

  VERSION          print the path of this kernel; it is fetched if the archive
                   has it with sched_ext, else built
  list             local kernels, those in the archive, and those that can be built (default)
  fetch [VERSION]  fetch a kernel, never build one, and print its path
  btf [VERSION]    extract a kernel's BTF, print its path"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status."""
    options = _parser().parse_args(arguments)
    # Guests are cleaned up on SIGTERM, too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if options.quiet:
        progress.silence()
    try:
        return options.verb(options)
    except KeyboardInterrupt:
        return STATUS_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe. Discard the rest of the output, because flushing it at
        # exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STATUS_BROKEN_PIPE
    except (UsageError, topology.TopologyError) as error:
        return complain("vm", error, STATUS_USAGE)
    except _ERRORS as error:
        return complain("vm", error, STATUS_HARNESS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vm",
        description="Boot a kernel in QEMU and run commands in it. No root is needed.",
        epilog=f"Exit status: 2 for usage, {STATUS_HARNESS} when the harness or the guest fails. "
        "Environment: SCX_VM_KERNELS (directories with kernel images), SCX_CACHE, "
        "SCX_OFFLINE=1, SCX_VM_ACCEL=tcg|kvm.",
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--quiet", action="store_true", help="no progress on stderr")
    machine = _machine_options()
    _add_run(verbs.add_parser("run", parents=[common, machine], help="run a command in a guest"))
    shell = verbs.add_parser(
        "shell", parents=[common, machine], help="an interactive shell in a guest"
    )
    shell.set_defaults(verb=_shell)
    _add_kernel(verbs.add_parser("kernel", parents=[common], help="list, fetch, build kernels"))
    listing = verbs.add_parser("topology", parents=[common], help="list the topologies")
    listing.add_argument("action", nargs="?", choices=["list"], default="list")
    listing.set_defaults(verb=_topology)
    return parser


def _machine_options() -> argparse.ArgumentParser:
    """The options of every verb that boots a guest."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--kernel",
        metavar="K",
        help="a path, or a version such as 7.2 (default: the newest with sched_ext, up to "
        f"{'.'.join(map(str, kernels.NEWEST_KNOWN))})",
    )
    options.add_argument(
        "--topology",
        metavar="T",
        default=topology.DEFAULT,
        help=f"{', '.join(topology.TOPOLOGIES)}, or SOCKETSxCORESxTHREADS (default: %(default)s)",
    )
    options.add_argument(
        "--program",
        metavar="PATH",
        type=Path,
        action="append",
        default=[],
        help="add this program, with its libraries, to the guest's PATH; may be repeated",
    )
    options.add_argument(
        "--console", metavar="FILE", type=Path, help="write the guest's console log to this file"
    )
    return options


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", default="root", help="root (default) or nobody")
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="the same inputs and seed give the same output to the last byte; time is counted in "
        "instructions (docs/deterministic.md)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="seed of a deterministic run; default 1",
    )
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument(
        "--for",
        dest="for_s",
        type=float,
        metavar="SECONDS",
        help="interrupt the command, as Ctrl-C does, after this time",
    )
    limits.add_argument(
        "--timeout",
        dest="timeout_s",
        type=float,
        metavar="SECONDS",
        help=f"kill the command after this time; the exit status then is {STATUS_TIMEOUT}",
    )
    parser.add_argument(
        "command",
        nargs="+",
        metavar="COMMAND",
        help="program and arguments after --, or one word that is a shell script; "
        "its exit status is passed on",
    )
    parser.set_defaults(verb=_run)


def _add_kernel(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = _KERNEL_HELP
    parser.add_argument("action", nargs="?", default="list", metavar="ACTION")
    parser.add_argument("version", nargs="?", metavar="VERSION", help="default: the newest")
    parser.set_defaults(verb=_kernel)


def _check_limit(option: str, limit_s: float | None) -> None:
    # This form of the condition also rejects NaN.
    if limit_s is not None and not 0 < limit_s <= _LONGEST_S:
        limits = f"more than 0 and at most {_LONGEST_S:.0f} seconds (7 days)"
        raise UsageError(f"{option} {limit_s:g}: give {limits}")


def _run(options: argparse.Namespace) -> int:
    _check_limit("--for", options.for_s)
    _check_limit("--timeout", options.timeout_s)
    if options.deterministic:
        return _run_deterministic(options)
    if options.seed is not None:
        raise UsageError("--seed is for --deterministic")
    interrupt = options.for_s is not None
    command = options.command
    with _guest(options) as guest:
        result = guest.stream(
            command[0] if len(command) == 1 else command,
            user=options.user,
            timeout_s=options.for_s if interrupt else options.timeout_s,
            timeout_signal=signal.SIGINT if interrupt else signal.SIGKILL,
        )
    killed = result.timed_out and options.timeout_s is not None
    return STATUS_TIMEOUT if killed else result.status


def _run_deterministic(options: argparse.Namespace) -> int:
    seed = 1 if options.seed is None else options.seed
    if not 1 <= seed <= replay.MAX_SEED:
        raise UsageError(f"--seed {seed}: give a number from 1 to {replay.MAX_SEED}")
    if options.user != "root":
        raise UsageError("--user is not for --deterministic: use su in the command")
    limit = None
    if options.for_s is not None:
        limit = replay.Limit(options.for_s, signal.SIGINT)
    elif options.timeout_s is not None:
        limit = replay.Limit(options.timeout_s, signal.SIGKILL)
    command = options.command
    outcome = replay.run(
        kernels.resolve(options.kernel),
        topology.find(options.topology),
        command[0] if len(command) == 1 else shlex.join(command),
        programs=options.program,
        seed=seed,
        limit=limit,
        lifetime_s=_LIFETIME_S,
        sink=to_stdout,
    )
    if options.console:
        options.console.write_bytes(outcome.console)
    killed = outcome.timed_out and options.timeout_s is not None
    return STATUS_TIMEOUT if killed else outcome.status


def _shell(options: argparse.Namespace) -> int:
    if not sys.stdin.isatty():
        raise GuestError("shell needs a terminal as its standard input: use run instead")
    with _guest(options, with_terminal=True) as guest:
        progress.note("leave with 'exit' or Ctrl-A x")
        return guest.shell()


def _guest(options: argparse.Namespace, *, with_terminal: bool = False) -> Guest:
    shape = topology.find(options.topology)
    return Guest(
        kernels.resolve(options.kernel),
        shape,
        programs=options.program,
        lifetime_s=_LIFETIME_S,
        console_log=options.console,
        with_terminal=with_terminal,
    )


def _kernel(options: argparse.Namespace) -> int:
    action, version = options.action, options.version
    if action == "fetch":
        print(kernels.resolve(version).path)
    elif action == "btf":
        print(kernels.btf(kernels.resolve(version)))
    elif version is not None:
        raise UsageError(f"kernel {action} {version}: only fetch and btf take a version")
    elif action == "list":
        _list_kernels()
    else:
        print(kernel_build.obtain(action).path)
    return 0


def _list_kernels() -> None:
    at_hand = kernels.local()
    for kernel in at_hand:
        print(f"{kernel.release:32} {kernel.origin:18} {kernel.path}")
    for series in kernels.buildable():
        if not any(kernels.matches(kernel.release, series) for kernel in at_hand):
            print(f"{series:32} {'source':18} (not built: ./dev vm kernel {series})")
    known = {kernel.release for kernel in at_hand}
    try:
        for packaged in kernels.archived():
            if packaged.release not in known:
                print(f"{packaged.release:32} {packaged.suite:18} (not fetched)")
    except debs.DebsError as error:
        progress.note(f"kernels of the archive are not listed: {error}")


def _topology(_: argparse.Namespace) -> int:
    for shape in topology.TOPOLOGIES.values():
        print(f"{shape.name:10} {shape.description}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
