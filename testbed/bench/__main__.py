# SPDX-License-Identifier: GPL-2.0-only
"""The command line of the bench; see `--help`."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import debs
from vm import emulator, kernels, programs, progress, replay, topology
from vm.cli import UsageError, complain
from vm.guest import GuestError
from vm.initramfs import InitramfsError
from vm.qemu import QemuError

from . import baseline, functions, page, record, results, rounds, summary, table
from .measure import Place, RoundError, Subject
from .rounds import EEVDF, Plan, Results
from .workloads import WORKLOADS, Workload

STATUS_FAILED = 1
STATUS_USAGE = 2
STATUS_INTERRUPTED = 128 + signal.SIGINT

_SEEDS_MAX = 100
_ERRORS = (
    baseline.BaselineError,
    record.RecordError,
    RoundError,
    GuestError,
    InitramfsError,
    QemuError,
    OSError,
    debs.DebsError,
    kernels.KernelError,
)
_STATE = Path("/sys/kernel/sched_ext/state")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        for workload in WORKLOADS.values():
            print(f"{workload.name:12} {workload.title}")
        return 0
    if options.jobs is not None and options.jobs < 1:
        return complain("bench", UsageError(f"--jobs {options.jobs}: give 1 or more"), STATUS_USAGE)
    if options.quiet:
        progress.silence()
    # Report the finished rounds on SIGTERM, as on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.functions is not None:
            return _functions(options)
        return _check(options) if options.check else _bench(options)
    except (UsageError, topology.TopologyError) as error:
        return complain("bench", error, STATUS_USAGE)
    except _ERRORS as error:
        return complain("bench", error, STATUS_FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Compares schedulers with each other and with the kernel's own, EEVDF, in "
        "deterministic guests or on this machine. docs/bench.md explains the figures.",
        epilog="Exit status: 0 all rounds gave figures, 1 a round gave none, or a figure is worse "
        "than in docs/results, 2 wrong usage, 130 interrupted; finished rounds are reported in any "
        "case.",
    )
    parser.add_argument(
        "schedulers",
        nargs="*",
        metavar="SCHEDULER",
        help="one of this tree by name, any other by its path; quote it together with its options: "
        "'scx_rustland --slice-boost 0'",
    )
    parser.add_argument(
        "--workload",
        metavar="W",
        action="append",
        choices=list(WORKLOADS),
        help="run only this workload; may be repeated (default: all)",
    )
    parser.add_argument("--list", action="store_true", help="list the workloads")
    parser.add_argument("--alone", action="store_true", help="without EEVDF")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="number of rounds, with seeds 1 to N (default: 3)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="only this seed, to repeat a round")
    parser.add_argument(
        "--host", action="store_true", help="on this machine, as root; its kernel needs sched_ext"
    )
    parser.add_argument("--kernel", metavar="K", help="kernel of the guests: a version or a path")
    parser.add_argument(
        "--topology",
        metavar="T",
        default=topology.DEFAULT,
        help="CPUs of the guests (default: %(default)s)",
    )
    of_results = parser.add_mutually_exclusive_group()
    of_results.add_argument(
        "--check",
        action="store_true",
        help="compare all schedulers, or these, with docs/results: the median of "
        f"{baseline.NR_SEEDS_OF_CHECK} seeds",
    )
    of_results.add_argument(
        "--results",
        action="store_true",
        help="measure all schedulers with most workloads, and write docs/results, which takes more "
        "than half an hour; or measure these, and keep the results of the others",
    )
    of_results.add_argument(
        "--functions",
        metavar="N",
        nargs="?",
        const=40,
        type=int,
        help="print the N functions of the kernel and BPF programs that execute the most "
        "instructions per context switch in one workload (default: 40; pingpong-many)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        type=Path,
        help="report the rounds of a file of --json instead of measuring",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="guests in parallel (default: one per CPU)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all rounds to this file")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page with plots")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def _bench(options: argparse.Namespace) -> int:
    for path in (options.json, options.html):
        if path and not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: there is no such directory")
    plan, found, emulator = _loaded(options) if options.source else _measured(options)
    _tell(options, plan, found, emulator)
    if found.is_interrupted:
        return STATUS_INTERRUPTED
    return STATUS_FAILED if found.errors() else 0


def _measured(options: argparse.Namespace) -> tuple[Plan, Results, str]:
    build = _build()
    if options.results:
        _refuse_beside(options, "--results", ("--workload", *FIXED))
        options.workload = list(results.CHOSEN)
        _take_listed(options)
        if options.seeds is None:
            options.seeds = results.nr_seeds(build) if options.alone else results.NR_SEEDS
    seeds = _seeds(options)
    subjects = _subjects(options, build)
    place = _place(options, build)
    plan = Plan(place, subjects, _workloads(options), seeds)
    if options.results and options.alone:
        results.require_same(plan, _emulator(place))
    return plan, rounds.run(plan, options.jobs), _emulator(place)


def _take_listed(options: argparse.Namespace) -> None:
    """Take all schedulers of docs/results and EEVDF, or only the given ones."""
    options.alone = bool(options.schedulers)
    options.schedulers = options.schedulers or list(results.SCHEDULERS)
    for name in options.schedulers:
        if name not in results.SCHEDULERS:
            raise UsageError(f"{name} is not in docs/results")


def _loaded(options: argparse.Namespace) -> tuple[Plan, Results, str]:
    _refuse_beside(
        options, "--from", ("a scheduler", "--workload", "--seeds", *FIXED, "--kernel", "--jobs")
    )
    return record.load(options.source, _build() / "rust")


def _build() -> Path:
    return Path(os.environ.get("SCX_BUILD", "build")).absolute()


def _emulator(place: Place) -> str:
    return f"QEMU {emulator.find().version()}" if place.kernel else platform.machine()


def _check(options: argparse.Namespace) -> int:
    """Implements --check."""
    _refuse_beside(options, "--check", (*FIXED, "--seeds", "--json", "--html", "--from"))
    chosen = options.workload or list(results.CHOSEN)
    if unknown := sorted(set(chosen) - set(results.CHOSEN)):
        raise UsageError(f"--workload {unknown[0]} is not in docs/results")
    _take_listed(options)
    build = _build()
    place = _place(options, build)
    # Load the results before the measurements, which take minutes, so that missing results are
    # reported at once.
    known = baseline.load(results.FOLDER / results.FIGURES, place, _emulator(place))
    workloads = tuple(WORKLOADS[name] for name in results.CHOSEN if name in chosen)
    options.alone = True
    plan = Plan(place, _subjects(options, build), workloads, baseline.seeds_of_check())
    found = rounds.run(plan, options.jobs)
    verdicts = baseline.judge(found, known, options.schedulers, workloads)
    if found.is_interrupted:
        verdicts = [verdict for verdict in verdicts if verdict.value is not None]
    nr_worse = sum(verdict.is_worse for verdict in verdicts)
    print(*(verdict.text() for verdict in verdicts), sep="\n")
    print(f"{nr_worse} of {len(verdicts)} figures are worse than in docs/results")
    if found.is_interrupted:
        return STATUS_INTERRUPTED
    return STATUS_FAILED if nr_worse else 0


def _functions(options: argparse.Namespace) -> int:
    """Implements --functions."""
    _refuse_beside(options, "--functions", ("--host", "--seeds", "--json", "--html", "--from"))
    if options.functions < 1:
        raise UsageError(f"--functions {options.functions}: give 1 or more")
    options.workload = options.workload or ["pingpong-many"]
    if len(options.workload) > 1:
        raise UsageError("--functions: give one --workload")
    options.seed = 1 if options.seed is None else options.seed
    build = _build()
    subjects = _subjects(options, build)
    (workload,), (seed,) = _workloads(options), _seeds(options)
    found = functions.profiles(_place(options, build), subjects, workload, seed, options.jobs)
    print(functions.text(found, options.functions), end="")
    return 0


#: Options that cannot be combined with --check, --results or --from, because each of these three
#: determines the rounds.
FIXED = ("--alone", "--seed", "--host", "--topology")


def _refuse_beside(options: argparse.Namespace, verb: str, refused: Sequence[str]) -> None:
    """Raises UsageError if one of `refused` is given beside `verb`."""
    given = {
        "a scheduler": options.schedulers,
        "--workload": options.workload,
        "--alone": options.alone,
        "--seeds": options.seeds,
        "--seed": options.seed is not None,
        "--host": options.host,
        "--kernel": options.kernel,
        "--topology": options.topology != topology.DEFAULT,
        "--json": options.json,
        "--html": options.html,
        "--from": options.source,
        "--jobs": options.jobs,
    }
    if wrong := [name for name in refused if given[name]]:
        raise UsageError(f"{verb} cannot be combined with {wrong[0]}")


def _tell(options: argparse.Namespace, plan: Plan, found: Results, emulator: str) -> None:
    rows = summary.rows(plan, found)
    print(table.text(rows), end="")
    if options.json:
        record.write(options.json, record.to_json(plan, found, emulator))
    if options.html:
        record.write(options.html, page.html(plan, found, rows, emulator))
    if options.results and not found.is_interrupted:
        results.write(plan, found, emulator)


def _place(options: argparse.Namespace, build: Path) -> Place:
    tools = build / "rust"
    if not options.host:
        kernel = kernels.resolve(options.kernel)
        return Place(kernel, topology.find(options.topology), tools)
    of_guests = {
        "--kernel": options.kernel,
        "--topology": options.topology != topology.DEFAULT,
        "--seed": options.seed is not None,
    }
    if wrong := [name for name, is_given in of_guests.items() if is_given]:
        raise UsageError(f"{wrong[0]} is for guests, not for --host")
    if not _STATE.exists():
        raise UsageError("--host: this kernel has no sched_ext; omit --host to use guests")
    if _STATE.read_text().strip() != "disabled":
        raise UsageError("--host: a scheduler is loaded already: stop it first")
    return Place(None, None, tools)


def _subjects(options: argparse.Namespace, build: Path) -> tuple[Subject, ...]:
    given = [_subject(words, build) for words in options.schedulers]
    if len({subject.name for subject in given}) != len(given):
        raise UsageError("a scheduler was given twice")
    if options.alone and not given:
        raise UsageError("--alone: name a scheduler")
    return tuple(given) if options.alone else (EEVDF, *given)


def _subject(words: str, build: Path) -> Subject:
    name, *arguments = shlex.split(words) or [""]
    is_ours = "/" not in name
    file = programs.scheduler(build, name) if is_ours else Path(name)
    if file and programs.is_program(file):
        return Subject(words, file.absolute(), tuple(arguments), is_ours)
    raise UsageError(
        f"there is no scheduler '{name}': give one of this tree by name, any other by its path"
    )


def _workloads(options: argparse.Namespace) -> tuple[Workload, ...]:
    chosen = options.workload or list(WORKLOADS)
    found = []
    for workload in WORKLOADS.values():
        if workload.name not in chosen:
            continue
        is_there = workload.program == "scx_load" or shutil.which(workload.program)
        if is_there:
            found.append(workload)
        elif options.workload:
            raise UsageError(f"--workload {workload.name}: {workload.program} is not installed")
        else:
            progress.note(f"bench: {workload.name} is skipped: {workload.program} is missing")
    return tuple(found)


def _seeds(options: argparse.Namespace) -> tuple[int, ...]:
    if options.seed is not None:
        if options.seeds is not None:
            raise UsageError("--seed and --seeds exclude each other")
        # Seed 0 is invalid: a guest with seed 0 is not reseeded.
        if not 1 <= options.seed <= replay.MAX_SEED:
            raise UsageError(f"--seed {options.seed}: give 1 to {replay.MAX_SEED}")
        return (options.seed,)
    count = 3 if options.seeds is None else options.seeds
    if not 1 <= count <= _SEEDS_MAX:
        raise UsageError(f"--seeds {count}: give 1 to {_SEEDS_MAX}")
    return tuple(range(1, count + 1))


if __name__ == "__main__":
    sys.exit(main())
