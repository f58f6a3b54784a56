# SPDX-License-Identifier: GPL-2.0-only
"""The committed baseline of a scheduler, and checks against it. The baseline has a band for each
figure, which is the expected range of the figure.

A rebuild changes the figures as much as another seed does, and figures that depend on a few events
vary between seeds. So a check uses the median of several seeds. A band is derived from several
checks of one build, and is wider than the range of their results. A check fails only on figures
that are worse than their band, or missing.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .measure import Place, Subject
from .record import write
from .rounds import Plan, Results
from .summary import ROUND_US, number
from .workloads import IN_US, OF_SCHEDULER, WORKLOADS, Figure, Workload

FILE = Path(__file__).with_name("baseline.json")

#: The scheduler and the workloads of the baseline. The workloads are few enough to be checked with
#: each change.
SCHEDULER = "scx_rustland"
CHOSEN = tuple(WORKLOADS[name] for name in ("wakeup", "spawn", "messaging", "frames"))
#: Figures without a band: each is the value of a single event, and varies with the build.
LEFT_OUT = {"lateness_max_us", "gap_max_ms"}

#: Number of seeds in the median of a check.
NR_SEEDS_OF_CHECK = 3
#: Seeds from which a band is derived: the seeds of five checks.
SEEDS = tuple(range(1, 5 * NR_SEEDS_OF_CHECK + 1))

#: Minimum margin of a band on both sides, as a fraction of the median.
SLACK = 0.25


class BaselineError(Exception):
    """There is no baseline to compare with, or a seed gave no figure for a new baseline. The text
    is for the user."""


def seeds_of_check(number: int = 1) -> tuple[int, ...]:
    """The seeds of a check. Checks have numbers from 1 on, and no two checks share a seed."""
    return tuple(range((number - 1) * NR_SEEDS_OF_CHECK + 1, number * NR_SEEDS_OF_CHECK + 1))


@dataclass(frozen=True)
class Band:
    """The expected range of a figure, inclusive."""

    least: float
    most: float


@dataclass(frozen=True)
class Verdict:
    """A figure with its band."""

    workload: str
    figure: Figure
    band: Band
    #: None if the check did not measure the figure.
    value: float | None

    @property
    def is_worse(self) -> bool:
        """Whether the figure is missing, or is beyond the worse end of the band."""
        if self.value is None:
            return True
        if self.figure.better == "lower":
            return self.value > self.band.most
        return self.value < self.band.least

    def text(self) -> str:
        """The verdict as a line of text."""
        name = f"{self.workload}: {self.figure.title}, {self.figure.unit}"
        value = "none" if self.value is None else number(self.value)
        band = f"{number(self.band.least)} … {number(self.band.most)}"
        return f"{name:50} {value:>9}  {band:17} {'worse' if self.is_worse else ''}".rstrip()


def plan(place: Place, program: Path, seeds: tuple[int, ...]) -> Plan:
    """The rounds of a baseline."""
    return Plan(place, (Subject(SCHEDULER, program),), CHOSEN, seeds)


def key(kernel: str, emulator: str) -> str:
    """The key of a baseline: figures also depend on the kernel and the emulator."""
    return f"Linux {kernel}, {emulator}"


def _figures() -> Iterator[tuple[Workload, Figure]]:
    for workload in CHOSEN:
        for figure in (*workload.figures, *OF_SCHEDULER):
            if figure.name not in LEFT_OUT:
                yield workload, figure


def band(values: list[float], figure: Figure) -> Band:
    """The range of the results of all checks, extended on both sides by its width or by the minimum
    margin, whichever is more, but not below 0. `values` are these results."""
    slack = max(SLACK * statistics.median(values), max(values) - min(values))
    if figure.is_latency:
        slack = max(slack, ROUND_US / IN_US[figure.unit])
    # If the median is 0, the relative margin is 0, too. Accept one missed frame of a hundred.
    if figure.unit == "%":
        slack = max(slack, 1.0)
    return Band(max(0.0, min(values) - slack), max(values) + slack)


def bands(results: Results) -> dict[str, dict[str, Band]]:
    """The bands by workload and figure. Raises BaselineError if a seed gave no figure."""
    found: dict[str, dict[str, Band]] = {}
    for workload, figure in _figures():
        values = results.values(SCHEDULER, workload.name, figure.name)
        if len(values) < len(SEEDS):
            raise BaselineError(f"{workload.name} gave {len(values)} of {len(SEEDS)} figures")
        found.setdefault(workload.name, {})[figure.name] = band(_checks(values), figure)
    return found


def _checks(values: list[float]) -> list[float]:
    """The results of the checks, from the values of all seeds in order."""
    nr = NR_SEEDS_OF_CHECK
    return [statistics.median(values[i : i + nr]) for i in range(0, len(values), nr)]


def judge(results: Results, known: dict[str, dict[str, Band]]) -> list[Verdict]:
    """Each figure that has a known band, with the result of a check."""
    found = []
    for workload, figure in _figures():
        if expected := known.get(workload.name, {}).get(figure.name):
            values = results.values(SCHEDULER, workload.name, figure.name)
            value = statistics.median(values) if values else None
            found.append(Verdict(workload.name, figure, expected, value))
    return found


def load(wanted: str, file: Path = FILE) -> dict[str, dict[str, Band]]:
    """The bands with the key `wanted`. Raises BaselineError if there are none."""
    known = _read(file)
    if wanted not in known:
        there = "; ".join(known) or "none"
        raise BaselineError(f"no baseline for {wanted} (there are: {there}): use --renew")
    return {
        workload: {figure: Band(*ends) for figure, ends in of_workload.items()}
        for workload, of_workload in known[wanted].items()
    }


def save(made: str, found: dict[str, dict[str, Band]], file: Path = FILE) -> None:
    """Add the bands of one kernel and emulator. They replace all bands of the same kernel
    series."""
    series = made.split(".")[:2]
    known = {name: value for name, value in _read(file).items() if name.split(".")[:2] != series}
    known[made] = {
        workload: {
            figure: [float(f"{end:.4g}") for end in (one.least, one.most)]
            for figure, one in of_workload.items()
        }
        for workload, of_workload in found.items()
    }
    write(file, json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}
