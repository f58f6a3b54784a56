# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/kernels.md: a row for each scheduler, a column for each kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).parents[2] / "docs/kernels.md"

_ROW = re.compile(r"^\| (scx_\w+) \|(.*)\|$")


@dataclass
class Table:
    """The kernel series of the columns, and the cells by scheduler and series."""

    series: list[str]
    cells: dict[str, dict[str, str]]

    def lines(self) -> list[str]:
        head = [
            "| scheduler | " + " | ".join(self.series) + " |",
            "|---" * (len(self.series) + 1) + "|",
        ]
        return head + [
            f"| {name} | " + " | ".join(cells.get(s, "") for s in self.series) + " |"
            for name, cells in sorted(self.cells.items())
        ]


def _parse(text: str) -> tuple[list[str], list[Table]]:
    """The texts before, between and after the tables; and the tables."""
    texts, tables = [""], []
    for line in text.splitlines(keepends=True):
        if line.startswith("| scheduler |"):
            tables.append(Table([cell.strip() for cell in line.split("|")[2:-1]], {}))
            texts.append("")
        elif row := _ROW.match(line):
            cells = [cell.strip() for cell in row[2].split("|")]
            tables[-1].cells[row[1]] = dict(zip(tables[-1].series, cells, strict=True))
        elif not line.startswith("|---"):
            texts[-1] += line
    return texts, tables


def read() -> list[Table]:
    return _parse(PATH.read_text())[1]


def write(tables: list[Table]) -> None:
    texts, _ = _parse(PATH.read_text())
    parts = [texts[0]]
    for table, after in zip(tables, texts[1:], strict=True):
        parts += ["\n".join(table.lines()) + "\n", after]
    PATH.write_text("".join(parts))
