# SPDX-License-Identifier: GPL-2.0-only
"""Runs all rounds of a comparison: in parallel guests, or one after the other on this machine.

Rounds of the schedulers alternate, so that a temporary load of the machine affects all schedulers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from vm import progress
from vm.guest import GuestError

from .measure import Place, RoundError, Subject, measure
from .workloads import Values, Workload

#: The kernel's own scheduler, the reference.
EEVDF = Subject("EEVDF")


@dataclass(frozen=True)
class Plan:
    """A comparison: a round for each seed, workload and scheduler."""

    place: Place
    subjects: tuple[Subject, ...]
    workloads: tuple[Workload, ...]
    seeds: tuple[int, ...]

    def rounds(self) -> Iterator[tuple[int, Workload, Subject]]:
        """All rounds in starting order."""
        for seed in self.seeds:
            for workload in self.workloads:
                for subject in self.subjects:
                    yield seed, workload, subject


@dataclass(frozen=True)
class Round:
    """A finished round."""

    subject: str
    workload: str
    seed: int
    values: Values
    #: Why there are no values; empty if there are values.
    error: str = ""


@dataclass
class Results:
    """All finished rounds."""

    rounds: list[Round] = field(default_factory=list)
    #: Whether rounds are missing because the user has interrupted the run.
    is_interrupted: bool = False

    def values(self, subject: str, workload: str, figure: str) -> list[float]:
        """The values of a figure, in the order of the seeds."""
        found = [r for r in self.rounds if (r.subject, r.workload) == (subject, workload)]
        found.sort(key=lambda r: r.seed)
        return [r.values[figure] for r in found if figure in r.values]

    def errors(self) -> list[Round]:
        """Rounds without figures."""
        return [r for r in self.rounds if r.error]


def run(plan: Plan, jobs: int | None = None, program: str = "bench") -> Results:
    """Run all rounds, with `jobs` guests in parallel (default: one per CPU), or one after the other
    on the host. On Ctrl-C, running rounds are ended, and the finished rounds are returned.
    `program` is named in messages."""
    rounds = list(plan.rounds())
    results = Results()
    stop = threading.Event()
    # A guest uses one CPU of the host, so guests can run in parallel. Rounds on the host itself
    # would disturb each other.
    if not plan.place.kernel:
        jobs = 1
    jobs = jobs or len(os.sched_getaffinity(0))
    meter = _Meter(len(rounds), jobs, program)
    with ThreadPoolExecutor(jobs) as pool:
        pending = {pool.submit(_round, plan.place, *one, stop.is_set) for one in rounds}
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                _take(done, results, meter)
        except BaseException as error:
            stop.set()
            for future in pending:
                future.cancel()
            if not isinstance(error, KeyboardInterrupt):
                raise
            results.is_interrupted = True
            progress.warn(
                f"{program}: interrupted after {len(results.rounds)} of {len(rounds)} rounds"
            )
    return results


def _take(done: set[Future[Round]], results: Results, meter: _Meter) -> None:
    for future in done:
        over = future.result()
        results.rounds.append(over)
        meter.tell(over)


def _round(
    place: Place, seed: int, workload: Workload, subject: Subject, cancelled: Callable[[], bool]
) -> Round:
    try:
        values = measure(place, subject, workload, seed, cancelled)
    except (RoundError, GuestError) as error:
        return Round(subject.name, workload.name, seed, {}, str(error))
    return Round(subject.name, workload.name, seed, values)


class _Meter:
    """Progress display."""

    def __init__(self, nr_rounds: int, jobs: int, program: str) -> None:
        self._all = nr_rounds
        self._jobs = jobs
        self._program = program
        self._over = 0
        self._start_s = time.monotonic()

    def tell(self, over: Round) -> None:
        """Report a finished round, and an estimate of the remaining time."""
        self._over += 1
        what = f"{over.workload}, {over.subject}, seed {over.seed}"
        if over.error:
            progress.warn(f"{self._program}: {what}: {over.error}")
        left_s = (time.monotonic() - self._start_s) / self._over * (self._all - self._over)
        left = f"{left_s / 60:.0f} min left" if left_s > 90 else f"{left_s:.0f} s left"
        progress.note(f"{self._program}: {self._over} of {self._all} rounds ({what}), {left}")
