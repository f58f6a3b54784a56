# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/results for `./dev bench --results`: a page in Markdown, and pictures, that compare
all schedulers of this tree with the kernel's own, and a record of the rounds.

The record (FIGURES) is what the page is made of, and what `--check` compares with. If only some
schedulers are measured, the others keep their rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import markdown

from . import overview, plot, record, summary
from .measure import Subject
from .rounds import EEVDF, Plan, Results, Round
from .summary import Cell, Row, number
from .workloads import WORKLOADS, Workload

#: The schedulers, in the order of the tables.
SCHEDULERS = (
    *("scx_rustland", "scx_bpfland", "scx_flash", "scx_lavd", "scx_economy", "scx_rusty"),
    *("scx_simple", "scx_prev", "scx_nest", "scx_flatcg", "scx_rlfifo", "scx_fifo"),
    *("scx_qmap", "scx_userland", "scx_central", "scx_pair"),
)
CHOSEN = (
    *("wakeup", "spawn", "requests", "locks", "pingpong", "pingpong-pinned", "pingpong-many"),
    *("messaging", "frames", "audio", "throughput", "fairness"),
)
#: Default number of seeds, if all schedulers are measured.
NR_SEEDS = 5
FOLDER = Path(__file__).parents[2] / "docs" / "results"
PAGE = "README.md"
FIGURES = "figures.json"
OVERVIEW = "overview.svg"

_HEAD = """\
# Results

All schedulers of this tree, compared with the kernel's own, EEVDF: Linux {release}, {cpus} CPUs
({topology}), seeds 1 to {seeds}, in deterministic guests of {emulator}. This page is written by

    ./dev bench --results

and its figures are in [figures.json](figures.json). `./dev bench --check` compares a build with
them. The clock of these guests counts instructions, so a figure depends on the decisions of a
scheduler, but not on the speed of caches and memory or on CPU frequencies; "Interpreting the
figures" in [bench.md](../bench.md) says what can be compared. Each figure is reproduced, if the
programs are the same, by a command such as

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


def write(plan: Plan, results: Results, emulator: str) -> None:
    """Write the page, its pictures and the record to FOLDER. Rounds of schedulers that `plan` lacks
    come from the committed record. Raises OSError, RecordError."""
    if not {EEVDF.name, *SCHEDULERS} <= {subject.name for subject in plan.subjects}:
        plan, results = _completed(plan, results, emulator)
    results = Results([_rounded(one) for one in results.rounds])
    names = [subject.name for subject in plan.subjects]
    rows = summary.rows(plan, results)
    for row in rows:
        if row.figure == row.workload.figures[0]:
            record.write(FOLDER / f"{row.workload.name}.svg", plot.dots(row, names) + "\n")
    record.write(FOLDER / OVERVIEW, overview.draw(rows) + "\n")
    record.write(FOLDER / FIGURES, record.to_json(plan, results, emulator))
    record.write(FOLDER / PAGE, text(plan, results, rows, emulator))


def require_same(plan: Plan, emulator: str) -> None:
    """Raises RecordError if rounds of this plan cannot be combined with the committed ones."""
    file = FOLDER / FIGURES
    known, _, of_emulator = record.load(file, plan.place.tools)
    for there, wanted in (
        (record.origin(known.place, of_emulator), record.origin(plan.place, emulator)),
        (_of_seeds(known), _of_seeds(plan)),
        (_names(known.workloads), _names(plan.workloads)),
    ):
        if there != wanted:
            raise record.RecordError(
                f"{file.name} has results of {there}, not of {wanted}: measure all schedulers"
            )


def nr_seeds(tools: Path) -> int:
    """The number of seeds of the committed record. Raises OSError, RecordError."""
    return len(record.load(FOLDER / FIGURES, tools)[0].seeds)


def _of_seeds(plan: Plan) -> str:
    return f"seeds 1 to {len(plan.seeds)}"


def _names(named: tuple[Workload, ...] | tuple[Subject, ...]) -> str:
    return ", ".join(sorted(one.name for one in named))


def _completed(plan: Plan, results: Results, emulator: str) -> tuple[Plan, Results]:
    """The plan and the results, with the committed rounds of the schedulers that `plan` lacks."""
    require_same(plan, emulator)
    known, found, _ = record.load(FOLDER / FIGURES, plan.place.tools)
    subjects = {subject.name: subject for subject in (*known.subjects, *plan.subjects)}
    order = [name for name in (EEVDF.name, *SCHEDULERS) if name in subjects]
    measured = {subject.name for subject in plan.subjects}
    rounds = [one for one in found.rounds if one.subject not in measured] + results.rounds
    rounds.sort(key=lambda one: (one.seed, CHOSEN.index(one.workload), order.index(one.subject)))
    return replace(plan, subjects=tuple(subjects[name] for name in order)), Results(rounds)


def _rounded(one: Round) -> Round:
    """The round with five significant digits of each figure."""
    return replace(one, values={name: float(f"{value:.5g}") for name, value in one.values.items()})


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
