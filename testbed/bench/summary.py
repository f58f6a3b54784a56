# SPDX-License-Identifier: GPL-2.0-only
"""Aggregates the rounds: median, spread and comparison with EEVDF of each figure and
scheduler."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from .rounds import EEVDF, Plan, Results
from .workloads import IN_US, OF_SCHEDULER, Figure, Workload

#: The maximum time in which each CPU of a deterministic guest has one turn, in µs: see
#: docs/deterministic.md. Smaller differences of latency are not significant.
ROUND_US = 122.0


@dataclass(frozen=True)
class Cell:
    """One scheduler's figure."""

    subject: str
    #: The values of all seeds, in the order of the seeds.
    values: tuple[float, ...]
    median: float
    least: float
    most: float
    #: How many times better the median is than EEVDF's median; less than 1 is worse. None for EEVDF
    #: itself, and if EEVDF has no median, or one of the two medians is 0.
    times_better: float | None
    #: Whether the figure is a latency in a guest, and its median differs from EEVDF's, but by less
    #: than ROUND_US.
    is_within_round: bool


@dataclass(frozen=True)
class Row:
    """One figure of a workload, for each scheduler that has this figure."""

    workload: Workload
    figure: Figure
    cells: tuple[Cell, ...]


def rows(plan: Plan, results: Results) -> list[Row]:
    """All figures, in the order of the workloads."""
    found = []
    for workload in plan.workloads:
        for figure in (*workload.figures, *OF_SCHEDULER):
            cells = tuple(_cells(plan, results, workload, figure))
            if cells:
                found.append(Row(workload, figure, cells))
    return found


def _cells(plan: Plan, results: Results, workload: Workload, figure: Figure) -> list[Cell]:
    own = results.values(EEVDF.name, workload.name, figure.name)
    base = statistics.median(own) if own else None
    cells = []
    for subject in plan.subjects:
        values = results.values(subject.name, workload.name, figure.name)
        if not values:
            continue
        median = statistics.median(values)
        cells.append(
            Cell(
                subject.name,
                tuple(values),
                median,
                min(values),
                max(values),
                None if subject == EEVDF else _times_better(median, base, figure),
                plan.place.kernel is not None and _is_within_round(median, base, figure),
            )
        )
    return cells


def _times_better(median: float, base: float | None, figure: Figure) -> float | None:
    if not base or not median:
        return None
    return base / median if figure.better == "lower" else median / base


def _is_within_round(median: float, base: float | None, figure: Figure) -> bool:
    if base is None or not figure.is_latency:
        return False
    return 0 < abs(median - base) * IN_US[figure.unit] < ROUND_US


def number(value: float) -> str:
    """The value without an exponent. A value of at least 1 has at least three digits, a smaller
    value three decimals without trailing zeros."""
    for limit, decimals in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= limit:
            return f"{value:.{decimals}f}"
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"
