# SPDX-License-Identifier: GPL-2.0-only
"""A picture of the schedulers for users: a column of bars for each of a few figures."""

from __future__ import annotations

from xml.etree import ElementTree

import svg

from . import plot
from .rounds import EEVDF
from .summary import Row, number

#: The figures: the workload, the figure's name, and a title with the unit for users.
FIGURES = (
    ("wakeup", "lateness_p99_us", "wakeup, p99, µs"),
    ("frames", "missed_percent", "missed frames, %"),
    ("spawn", "spawn_p50_ms", "short command, p50, ms"),
    ("requests", "latency_p99_ms", "server's answer, p99, ms"),
)
#: Schedulers for everyday use. The tables in docs/results have all schedulers.
_SHOWN = (
    *(EEVDF.name, "scx_rustland", "scx_bpfland", "scx_flash", "scx_lavd"),
    *("scx_economy", "scx_rusty"),
)
#: Dimensions, in SVG units.
_WIDTH, _LEFT, _LINE, _TOP, _GAP = 880, 110, 24, 30, 16
_VALUE = 52


def draw(rows: list[Row]) -> str:
    """The picture, as SVG. Figures and schedulers that `rows` lacks are left out."""
    found = {(row.workload.name, row.figure.name): row for row in rows}
    columns = [(found[key[:2]], key[2]) for key in FIGURES if key[:2] in found]
    present = {cell.subject for row, _ in columns for cell in row.cells}
    names = [name for name in _SHOWN if name in present]
    picture = svg.picture(_WIDTH, _TOP + _LINE * len(names) + 8, "Schedulers compared")
    for index, name in enumerate(names):
        y = _TOP + _LINE * (index + 0.5) + 4
        svg.text(picture, _LEFT - 8, y, name, "end", svg.TEXT)
    width = (_WIDTH - _LEFT) / max(1, len(columns))
    for index, (row, title) in enumerate(columns):
        _column(picture, row, title, names, (_LEFT + index * width, width - _GAP))
    return svg.to_text(picture)


def _column(
    picture: ElementTree.Element,
    row: Row,
    title: str,
    names: list[str],
    place: tuple[float, float],
) -> None:
    """A column of bars from 0, at `place`: left edge and width."""
    left, width = place
    medians = {cell.subject: cell.median for cell in row.cells}
    most = max((medians[name] for name in names if name in medians), default=0) or 1
    svg.text(picture, left, _TOP - 12, title, "start", svg.TEXT)
    for index, name in enumerate(names):
        if name not in medians:
            continue
        y = _TOP + _LINE * index
        length = (width - _VALUE) * medians[name] / most
        colour = plot.COLOURS[0 if name == EEVDF.name else 1]
        svg.bar(picture, left, y + 5, max(length, 1), _LINE - 10, colour)
        svg.text(picture, left + length + 5, y + 16, number(medians[name]), "start", svg.TEXT)
