# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/results for `./dev bench --results`: a page in Markdown, and pictures, that compare
all schedulers of this tree with the kernel's own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import markdown

from . import overview, plot, record
from .rounds import EEVDF, Plan, Results
from .summary import Cell, Row, number
from .workloads import WORKLOADS, Workload

#: The schedulers, in the order of the tables.
SCHEDULERS = (
    *("scx_rustland", "scx_bpfland", "scx_flash", "scx_lavd", "scx_economy", "scx_rusty"),
    *("scx_simple", "scx_prev", "scx_nest", "scx_flatcg", "scx_rlfifo", "scx_fifo"),
    *("scx_qmap", "scx_userland", "scx_central", "scx_pair"),
)
CHOSEN = (
    *("wakeup", "spawn", "frames", "audio", "requests", "locks", "messaging", "pingpong"),
    *("throughput", "fairness"),
)
NR_SEEDS = 3
FOLDER = Path(__file__).parents[2] / "docs" / "results"
PAGE = "README.md"
OVERVIEW = "overview.svg"

_HEAD = """\
# Results

All schedulers of this tree beside the kernel's own, EEVDF: Linux {release}, {cpus} CPUs
({topology}), seeds 1 to {seeds}, in deterministic guests of {emulator}. This page is written by

    ./dev bench --results

The clock of these guests counts instructions, so a figure depends on the decisions of a scheduler,
but not on the speed of caches and memory or on CPU frequencies; "Interpreting the figures" in
[bench.md](../bench.md) says what can be compared. Each figure is reproduced to the last digit, if
the programs are the same, by a command such as

    {command}

A cell is the median, with the range of all seeds, and the ratio to EEVDF: 2.00 × is twice as good.
In the pictures, a ring is one seed and the bar is the median. Beside this page:
[a server of four clients](economy.md), and [the choices of scxctl recommend](recommend.md).

## Overview

![The schedulers in four workloads]({picture})
"""


def workloads() -> tuple[Workload, ...]:
    """The workloads of the page."""
    return tuple(WORKLOADS[name] for name in CHOSEN)


def write(plan: Plan, results: Results, rows: list[Row], emulator: str) -> None:
    """Write the page and its pictures to FOLDER. Raises OSError."""
    names = [subject.name for subject in plan.subjects]
    for row in rows:
        if row.figure == row.workload.figures[0]:
            record.write(FOLDER / f"{row.workload.name}.svg", plot.dots(row, names) + "\n")
    record.write(FOLDER / OVERVIEW, overview.draw(rows) + "\n")
    record.write(FOLDER / PAGE, text(plan, results, rows, emulator))


def text(plan: Plan, results: Results, rows: list[Row], emulator: str) -> str:
    """The page."""
    place = plan.place
    assert place.kernel and place.topology
    sections = [
        _HEAD.format(
            release=place.kernel.release,
            cpus=place.cpus,
            topology=place.topology.name,
            seeds=plan.seeds[-1],
            emulator=emulator,
            command=record.command(plan, plan.subjects[-1], plan.workloads[0].name, 1),
            picture=OVERVIEW,
        )
    ]
    for _, group in groupby(rows, key=lambda row: row.workload.name):
        sections.append("\n".join(_section(plan, results, list(group))))
    return "\n".join(sections)


def _section(plan: Plan, results: Results, rows: list[Row]) -> Iterator[str]:
    workload = rows[0].workload
    first, own = rows[0].figure, [row for row in rows if row.figure in workload.figures]
    yield f"## {workload.name}\n"
    yield f"{workload.title[:1].upper()}{workload.title[1:]}.\n"
    yield f"![{first.title}, {first.unit}]({workload.name}.svg)\n"
    cells = {(row.figure.name, cell.subject): cell for row in own for cell in row.cells}
    lines = [
        (subject.name, *(_cell(cells.get((row.figure.name, subject.name))) for row in own))
        for subject in plan.subjects
    ]
    yield markdown.table(("", *(_title(row) for row in own)), lines) + "\n"
    for error in results.errors():
        if error.workload == workload.name:
            yield f"{error.subject}, seed {error.seed}: no figures: {error.error}\n"


def _title(row: Row) -> str:
    more = ", more is better" if row.figure.better == "higher" else ""
    return f"{row.figure.title}, {row.figure.unit}{more}"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    said = f"{number(cell.median)} ({number(cell.least)} … {number(cell.most)})"
    if cell.subject == EEVDF.name or cell.times_better is None:
        return said
    mark = " ~" if cell.is_within_round else ""
    return f"{said} {cell.times_better:.2f} ×{mark}"
