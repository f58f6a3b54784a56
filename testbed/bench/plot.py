# SPDX-License-Identifier: GPL-2.0-only
"""A plot of one figure as SVG: a line for each scheduler, a ring for each round."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from .summary import Row

#: Dimensions of the picture, in SVG units.
_WIDTH, _LEFT, _RIGHT, _LINE, _TOP = 760, 150, 20, 30, 8
_COLOURS = ("#555", "#0b62a4", "#b4510f", "#2b7d3a", "#7a3a9a", "#9a6a00")
#: Above this ratio of the values the axis is logarithmic.
_LOG_FROM = 20


class _Axis:
    """Maps values to positions."""

    def __init__(self, values: list[float]) -> None:
        least, most = min(values), max(values)
        self.is_log = least > 0 and most / least > _LOG_FROM
        if self.is_log:
            self.low, self.high = 10 ** math.floor(math.log10(least)), most * 1.15
        else:
            # From 0, so that distances are proportional to the values.
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
        step = 10 ** math.floor(math.log10(self.high / 2))
        step *= next(factor for factor in (1, 2, 5, 10) if self.high / (step * factor) <= 6)
        return [index * step for index in range(int(self.high / step) + 1)]


def dots(row: Row, names: list[str]) -> str:
    """The plot; a scheduler's colour is that of its index in `names`."""
    axis = _Axis([value for cell in row.cells for value in cell.values])
    bottom = _TOP + _LINE * len(row.cells)
    picture = ElementTree.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {bottom + 24}"
    )
    picture.set("role", "img")
    picture.set("font-size", "13")
    ElementTree.SubElement(picture, "title").text = f"{row.workload.name}: {row.figure.title}"
    for tick in axis.ticks():
        _line(picture, axis.x(tick), _TOP, axis.x(tick), bottom, "#ddd", 1)
        _text(picture, axis.x(tick), bottom + 16, f"{tick:.10g}", "middle", "#666")
    for index, cell in enumerate(row.cells):
        y = _TOP + _LINE * (index + 0.5)
        colour = _COLOURS[names.index(cell.subject) % len(_COLOURS)]
        _text(picture, _LEFT - 10, y + 4, cell.subject, "end", "#222")
        _line(picture, axis.x(cell.least), y, axis.x(cell.most), y, colour, 1)
        for value in cell.values:
            ring = ElementTree.SubElement(picture, "circle", cx=f"{axis.x(value):.1f}", cy=str(y))
            ring.attrib |= {"r": "4.5", "fill": "#fff", "stroke": colour, "stroke-width": "1.5"}
        median = axis.x(cell.median)
        _line(picture, median, y - 10, median, y + 10, colour, 3)
    return ElementTree.tostring(picture, encoding="unicode")


def _line(
    parent: ElementTree.Element, x1: float, y1: float, x2: float, y2: float, colour: str, width: int
) -> None:
    ends = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
    line = ElementTree.SubElement(parent, "line", {name: f"{value:.1f}" for name, value in ends})
    line.attrib |= {"stroke": colour, "stroke-width": str(width)}


def _text(
    parent: ElementTree.Element, x: float, y: float, text: str, anchor: str, colour: str
) -> None:
    element = ElementTree.SubElement(parent, "text", x=f"{x:.1f}", y=f"{y:.1f}", fill=colour)
    element.set("text-anchor", anchor)
    element.text = text
