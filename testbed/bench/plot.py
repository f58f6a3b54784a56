# SPDX-License-Identifier: GPL-2.0-only
"""A plot of one figure as SVG: a line for each scheduler, a ring for each round."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import svg

from .summary import Row

#: Dimensions of the picture, in SVG units.
_WIDTH, _LEFT, _RIGHT, _LINE, _TOP = 760, 150, 20, 30, 8
COLOURS = ("#7a7a7a", "#2f7fc1", "#c2651a", "#2f8a43", "#9a5fb8", "#9a7400")
#: The axis is logarithmic if all values are above 0, and the largest value is more than this many
#: times the smallest value.
_LOG_FROM = 20


class _Axis:
    """Maps values to positions."""

    def __init__(self, values: list[float]) -> None:
        least, most = min(values), max(values)
        self.is_log = least > 0 and most / least > _LOG_FROM
        if self.is_log:
            self.low, self.high = 10 ** math.floor(math.log10(least)), most * 1.15
        else:
            # The axis starts at 0, so that distances are proportional to the values.
            self.low, self.high = 0.0, most * 1.08 or 1.0

    def x(self, value: float) -> float:
        """Position of a value."""
        if self.is_log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> list[float]:
        """Round numbers for ticks."""
        if self.is_log:
            decades = range(round(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            steps = (1, 3) if len(decades) < 4 else (1,)
            marks = [factor * 10.0**decade for decade in decades for factor in steps]
            return [mark for mark in marks if mark <= self.high]
        return svg.ticks(self.high)


def dots(row: Row, names: list[str]) -> str:
    """The plot. The index of a scheduler in `names` determines its colour."""
    axis = _Axis([value for cell in row.cells for value in cell.values])
    bottom = _TOP + _LINE * len(row.cells)
    picture = svg.picture(_WIDTH, bottom + 24, f"{row.workload.name}: {row.figure.title}")
    for tick in axis.ticks():
        svg.line(picture, axis.x(tick), _TOP, axis.x(tick), bottom, svg.GRID, 0.5)
        svg.text(picture, axis.x(tick), bottom + 16, f"{tick:.10g}", "middle", svg.TEXT)
    for index, cell in enumerate(row.cells):
        y = _TOP + _LINE * (index + 0.5)
        colour = COLOURS[names.index(cell.subject) % len(COLOURS)]
        svg.text(picture, _LEFT - 10, y + 4, cell.subject, "end", svg.TEXT)
        svg.line(picture, axis.x(cell.least), y, axis.x(cell.most), y, colour, 1)
        for value in cell.values:
            ring = ElementTree.SubElement(picture, "circle", cx=f"{axis.x(value):.1f}", cy=str(y))
            ring.attrib |= {"r": "4.5", "fill": "none", "stroke": colour, "stroke-width": "1.5"}
        median = axis.x(cell.median)
        svg.line(picture, median, y - 10, median, y + 10, colour, 3)
    return svg.to_text(picture)
