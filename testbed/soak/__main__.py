# SPDX-License-Identifier: GPL-2.0-only
"""The command line of the stress test; see `--help`."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

import debs
from vm import kernels, programs, progress, topology
from vm.cli import UsageError, complain
from vm.guest import CommandError, GuestError
from vm.initramfs import InitramfsError
from vm.qemu import QemuError

from . import soak

STATUS_FAILED = 1
STATUS_USAGE = 2
STATUS_INTERRUPTED = 128 + signal.SIGINT

_ROOT = Path(__file__).resolve().parents[2]
_ERRORS = (
    *(CommandError, GuestError, InitramfsError, QemuError, OSError),
    *(debs.DebsError, kernels.KernelError),
)
_MINUTES_MAX = 7 * 24 * 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.quiet:
        progress.silence()
    try:
        setup = _setup(options)
        verdict = soak.run(setup, lambda line: progress.note(f"soak: {line}"))
    except KeyboardInterrupt:
        return STATUS_INTERRUPTED
    except (UsageError, topology.TopologyError) as error:
        return complain("soak", error, STATUS_USAGE)
    except _ERRORS as error:
        return complain("soak", error, STATUS_FAILED)
    return _tell(setup, verdict, _again(options, setup))


def _tell(setup: soak.Setup, verdict: soak.Verdict, again: str) -> int:
    for fault in verdict.faults:
        print(f"soak: {fault}")
    where = f"Linux {setup.kernel.release} ({setup.topology.name})"
    what = f"{setup.scheduler.name}, {where}, {verdict.nr_actions} actions"
    if verdict.faults:
        print(f"FAILED: {what}; output: {verdict.log or 'none'}")
        print(f"repeat the sequence: {again}")
        return STATUS_FAILED
    memory = "{} KiB, before {} KiB".format(*reversed(verdict.memory_kib))
    print(f"PASSED: {what}; page faults {verdict.page_faults}; memory {memory}; seed {setup.seed}")
    return 0


def _again(options: argparse.Namespace, setup: soak.Setup) -> str:
    words = ["./dev", "soak", f"{options.minutes:g}", options.scheduler, "--seed", str(setup.seed)]
    words += ["--kernel", setup.kernel.wanted, "--topology", setup.topology.name]
    return shlex.join(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="soak",
        description="Runs a scheduler in a guest under a random sequence of loads, fork storms, "
        "affinity storms, changes of nice value, policy and cgroup, real-time hogs, CPU hotplug, "
        "statistics clients and SIGSTOPs of the scheduler. Checks that the scheduler stays loaded, "
        "without kernel error messages, page faults of a user-space policy, or memory growth.",
        epilog="Exit status: 0 passed, 1 failed, 2 wrong usage, 130 interrupted. The same seed "
        "gives the same sequence, but not the same timing.",
    )
    parser.add_argument(
        "minutes", nargs="?", type=float, default=20.0, metavar="MINUTES", help="default: 20"
    )
    parser.add_argument(
        "scheduler",
        nargs="?",
        default="scx_rustland",
        metavar="SCHEDULER",
        help="one of this tree; quote it together with its options: 'scx_rustland --slice-boost 0'",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed of the sequence (default: random)"
    )
    parser.add_argument("--kernel", metavar="K", help="kernel of the guest: a version or a path")
    parser.add_argument(
        "--topology",
        metavar="T",
        default=topology.DEFAULT,
        help="CPUs of the guest (default: %(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def _setup(options: argparse.Namespace) -> soak.Setup:
    if not 0 < options.minutes <= _MINUTES_MAX:
        raise UsageError(f"{options.minutes:g} minutes: give more than 0, at most {_MINUTES_MAX:g}")
    if options.seed is not None and options.seed < 0:
        raise UsageError(f"--seed {options.seed}: give 0 or more")
    build = Path(os.environ.get("SCX_BUILD", "build")).absolute()
    seed = SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    name, *arguments = shlex.split(options.scheduler) or [""]
    return setup_of(
        build,
        name,
        tuple(arguments),
        kernels.resolve(options.kernel),
        topology.find(options.topology),
        seed,
        options.minutes * 60,
    )


def setup_of(
    build: Path,
    scheduler: str,
    arguments: tuple[str, ...],
    kernel: kernels.Kernel,
    shape: topology.Topology,
    seed: int,
    seconds: float,
) -> soak.Setup:
    """The setup for a scheduler of this tree. Raises UsageError."""
    program = programs.scheduler(build, scheduler)
    if program is None:
        raise UsageError(f"there is no scheduler '{scheduler}': see scheds/")
    manifest = _ROOT / "scheds/rust" / scheduler / "Cargo.toml"
    return soak.Setup(
        kernel,
        shape,
        program,
        arguments,
        (build / "rust/scx_load", *programs.lacking()),
        seed,
        seconds,
        is_in_user_space=manifest.exists() and "scx_rustland_core" in manifest.read_text(),
        has_monitor=manifest.exists(),
    )


if __name__ == "__main__":
    sys.exit(main())
