# SPDX-License-Identifier: GPL-2.0-only
"""The command line of the experiments; see `--help`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import debs
from bench import rounds
from bench.record import write
from vm import emulator, kernels, programs, progress, replay, topology
from vm.cli import UsageError, complain
from vm.guest import GuestError
from vm.initramfs import InitramfsError
from vm.qemu import QemuError

from . import checks, fifo_rr, page, server
from .trace import TraceError

STATUS_FAILED = 1
STATUS_USAGE = 2
STATUS_INTERRUPTED = 128 + signal.SIGINT

#: Where the pages are.
_PAGES = Path(__file__).resolve().parents[2] / "docs/experiments"
_LIFETIME_S = 900.0
_ERRORS = (
    *(GuestError, InitramfsError, QemuError, OSError, TraceError),
    *(debs.DebsError, kernels.KernelError),
)


class RoundsError(TraceError):
    """A round of server.plan() gave no figures."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.quiet:
        progress.silence()
    # Guests are ended on SIGTERM, as on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _fifo_rr(options)
    except KeyboardInterrupt:
        return STATUS_INTERRUPTED
    except UsageError as error:
        return complain("experiment", error, STATUS_USAGE)
    except _ERRORS as error:
        return complain("experiment", error, STATUS_FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="experiment",
        description="Reproduces a known experiment in deterministic guests, and writes its page "
        "with tables and timelines. The same build and seed give the same page.",
        epilog="Exit status: 0 all figures are as expected, 1 a figure is not, or a guest failed; "
        "2 wrong usage, 130 interrupted. The page is written only if all figures are as expected.",
    )
    parser.add_argument(
        "experiment",
        choices=["fifo-rr"],
        help="fifo-rr: scx_rlfifo --weighted runs tasks of nice -5 to completion, and tasks of "
        "nice 5 in round robin",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only compare the figures with what is expected; write nothing",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the guests (default: 1)"
    )
    parser.add_argument("--kernel", metavar="K", help="kernel of the guests: a version or a path")
    parser.add_argument(
        "--output",
        type=Path,
        default=_PAGES,
        metavar="DIR",
        help="directory of the page and its pictures (default: docs/experiments)",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="guests in parallel (default: one per CPU)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def _fifo_rr(options: argparse.Namespace) -> int:
    build = Path(os.environ.get("SCX_BUILD", "build")).absolute()
    _check_usage(options, build)
    kernel = kernels.resolve(options.kernel)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    printed = _record(kernel, build, options.seed, jobs)
    moves = fifo_rr.read_moves(printed.pop("migrations"))
    recordings = {
        slice_ms: fifo_rr.read(text, slice_ms)
        for slice_ms, text in zip(fifo_rr.SLICES_MS, printed.values(), strict=True)
    }
    found = [check for of in recordings.values() for check in checks.checks(of)]
    found.append(checks.check_moves(moves))
    if options.check:
        print(*(check.text() for check in found), sep="\n")
    if unmet := [check for check in found if not check.is_met]:
        raise TraceError(f"not as expected: {unmet[0].what}: {unmet[0].measured}")
    if options.check:
        return 0
    plan = server.plan(kernel, build, options.seed)
    results = rounds.run(plan, jobs, "experiment")
    if results.is_interrupted:
        return STATUS_INTERRUPTED
    if errors := results.errors():
        raise RoundsError(f"{errors[0].workload}, {errors[0].subject}: {errors[0].error}")
    qemu = f"QEMU {emulator.find().version()}"
    latencies = server.rows(plan, results)
    _write(
        options.output,
        page.Results(kernel.release, qemu, options.seed, recordings, moves, latencies),
    )
    return 0


def _check_usage(options: argparse.Namespace, build: Path) -> None:
    # Seed 0 is invalid: a guest with seed 0 is not reseeded.
    if not 1 <= options.seed <= replay.MAX_SEED:
        raise UsageError(f"--seed {options.seed}: give 1 to {replay.MAX_SEED}")
    if options.jobs is not None and options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: give 1 or more")
    if not options.check and not options.output.is_dir():
        raise UsageError(f"--output {options.output}: there is no such directory")
    for program in [*fifo_rr.programs(build), build / "rust/scx_rustland"]:
        if not programs.is_program(program):
            raise UsageError(f"{program} is missing: run ./dev build")


@dataclass(frozen=True)
class _Guest:
    """A guest to run."""

    name: str
    shape: str
    script: str


def _record(kernel: kernels.Kernel, build: Path, seed: int, jobs: int) -> dict[str, str]:
    """What each guest has printed, by the name of the guest: the slices in order, then
    `migrations`."""
    guests = [
        _Guest(f"slice {slice_ms} ms", fifo_rr.SHAPE, fifo_rr.script(slice_ms))
        for slice_ms in fifo_rr.SLICES_MS
    ]
    guests.append(_Guest("migrations", fifo_rr.SHAPE_OF_MOVES, fifo_rr.script_of_moves()))
    stop = threading.Event()

    def run(guest: _Guest) -> str:
        outcome = replay.run(
            kernel,
            topology.find(guest.shape),
            guest.script,
            programs=fifo_rr.programs(build),
            seed=seed,
            lifetime_s=_LIFETIME_S,
            cancelled=stop.is_set,
            is_announced=False,
        )
        progress.note(f"experiment: recorded {guest.name}")
        return outcome.output.decode(errors="replace")

    progress.note(f"experiment: recording in {len(guests)} guests; half a minute each")
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(run, guest) for guest in guests]
        try:
            # In order of completion, so that the first error is raised. Guests that are cancelled
            # afterwards would raise errors that say only that.
            for future in as_completed(futures):
                future.result()
        finally:
            stop.set()
            for future in futures:
                future.cancel()
    return {guest.name: future.result() for guest, future in zip(guests, futures, strict=True)}


def _write(folder: Path, results: page.Results) -> None:
    files = {"fifo-rr.md": page.text(results), **dict(page.pictures(results))}
    for name, content in files.items():
        write(folder / name, content)
    print(f"{folder / 'fifo-rr.md'}: written, with {len(files) - 1} pictures")


if __name__ == "__main__":
    sys.exit(main())
