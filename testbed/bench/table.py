# SPDX-License-Identifier: GPL-2.0-only
"""The figures as text: a block for each workload, a line for each figure and scheduler."""

from __future__ import annotations

from itertools import groupby

from .summary import ROUND_US, Cell, Row, number


def text(rows: list[Row]) -> str:
    """The table; empty if there are no figures."""
    blocks = []
    for name, group in groupby(rows, key=lambda row: row.workload.name):
        of_workload = list(group)
        lines = [f"{name}: {of_workload[0].workload.title}"]
        for row in of_workload:
            lines += _lines(row)
        blocks.append("\n".join(lines))
    if any(cell.is_within_round for row in rows for cell in row.cells):
        blocks.append(f"~ differs from EEVDF by less than the emulator's round of {ROUND_US:g} µs")
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _lines(row: Row) -> list[str]:
    title = f"{row.figure.title}, {row.figure.unit}" if row.figure.unit else row.figure.title
    names = [title] + [""] * (len(row.cells) - 1)
    return [
        f"  {name:40} {_figures(cell)}".rstrip()
        for name, cell in zip(names, row.cells, strict=True)
    ]


def _figures(cell: Cell) -> str:
    return f"{cell.subject:16} {number(cell.median):>9}  {_spread(cell):17} {_ratio(cell)}"


def _spread(cell: Cell) -> str:
    return f"{number(cell.least)} … {number(cell.most)}" if len(cell.values) > 1 else ""


def _ratio(cell: Cell) -> str:
    if cell.times_better is None:
        return ""
    mark = " ~" if cell.is_within_round else ""
    return f"{cell.times_better:.2f} × as good{mark}"
