# SPDX-License-Identifier: GPL-2.0-only
"""Checks of schedulers against the committed results (docs/results/figures.json), which are the
baseline. Each figure has a band, which is its expected range.

A rebuild changes the figures as much as another seed does, and figures that depend on a few events
vary between seeds. So a check uses the median of several seeds, and a band is wider than the range
of all committed seeds. A check fails only on figures that are worse than their band, or missing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import record
from .measure import Place
from .rounds import Results
from .summary import ROUND_US, number
from .workloads import IN_US, OF_SCHEDULER, Figure, Workload

#: Figures without a band: each is the value of a single event, and varies with the build.
LEFT_OUT = {"lateness_max_us", "gap_max_ms"}

#: Number of seeds in the median of a check.
NR_SEEDS_OF_CHECK = 3

#: Minimum margin of a band on both sides, as a fraction of the median.
SLACK = 0.25
#: Minimum margins of figures that are close to 0 for most schedulers, in the unit of the figure.
SLACK_MIN = {"scheduler_cpu_percent": 0.5, "switch_cost_ns": 500.0}


class BaselineError(Exception):
    """There are no results to compare with. The text is for the user."""


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
    """A figure of a scheduler, with its band."""

    scheduler: str
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
        name = f"{self.workload}: {self.figure.title}, {self.figure.unit}".removesuffix(", ")
        value = "none" if self.value is None else number(self.value)
        band = f"{number(self.band.least)} … {number(self.band.most)}"
        line = f"{self.scheduler:13} {name:54} {value:>9}  {band:17}"
        return f"{line} {'worse' if self.is_worse else ''}".rstrip()


def band(values: list[float], figure: Figure) -> Band:
    """The range of the committed values, extended on both sides by its width or by the minimum
    margin, whichever is more, but not below 0."""
    slack = max(SLACK * statistics.median(values), max(values) - min(values))
    slack = max(slack, SLACK_MIN.get(figure.name, 0))
    if figure.is_latency:
        slack = max(slack, ROUND_US / IN_US[figure.unit])
    # If the median is 0, the relative margin is 0, too. The margin of a percentage is at least 1,
    # which is one missed frame of a hundred.
    if figure.unit == "%":
        slack = max(slack, 1.0)
    return Band(max(0.0, min(values) - slack), max(values) + slack)


def load(file: Path, place: Place, emulator: str) -> Results:
    """The committed rounds. Raises OSError, RecordError, or BaselineError if they are of another
    kernel, emulator or topology, since figures depend on all three."""
    plan, found, of_emulator = record.load(file, place.tools)
    there, wanted = record.origin(plan.place, of_emulator), record.origin(place, emulator)
    if there != wanted:
        raise BaselineError(f"{file.name} has results of {there}, not of {wanted}: use --results")
    return found


def judge(
    found: Results, known: Results, schedulers: Iterable[str], workloads: Iterable[Workload]
) -> list[Verdict]:
    """Each known figure of the schedulers and workloads, with the result of a check."""
    verdicts = []
    chosen = list(workloads)
    for scheduler in schedulers:
        for workload in chosen:
            for figure in (*workload.figures, *OF_SCHEDULER):
                expected = known.values(scheduler, workload.name, figure.name)
                if not expected or figure.name in LEFT_OUT:
                    continue
                values = found.values(scheduler, workload.name, figure.name)
                value = statistics.median(values) if values else None
                verdicts.append(
                    Verdict(scheduler, workload.name, figure, band(expected, figure), value)
                )
    return verdicts
