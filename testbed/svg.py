# SPDX-License-Identifier: GPL-2.0-only
"""Elements of SVG pictures, for the plots of the testbed. The background is transparent. All
colours are visible on white and on black."""

from __future__ import annotations

import math
from xml.etree import ElementTree

Element = ElementTree.Element

TEXT, GRID = "#7a7a7a", "#999999"


def picture(width: float, height: float, title: str) -> Element:
    """An empty picture."""
    root = ElementTree.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}"
    )
    root.set("role", "img")
    root.set("font-size", "13")
    root.set("font-family", "sans-serif")
    ElementTree.SubElement(root, "title").text = title
    return root


def bar(parent: Element, x: float, y: float, width: float, height: float, colour: str) -> None:
    """A filled rectangle."""
    element = ElementTree.SubElement(parent, "rect", fill=colour)
    for name, value in (("x", x), ("y", y), ("width", width), ("height", height)):
        element.set(name, f"{value:.1f}".removesuffix(".0"))


def line(
    parent: Element, x1: float, y1: float, x2: float, y2: float, colour: str, width: float
) -> None:
    """A straight line."""
    ends = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
    element = ElementTree.SubElement(parent, "line", {name: f"{value:.1f}" for name, value in ends})
    element.attrib |= {"stroke": colour, "stroke-width": f"{width:g}"}


def text(parent: Element, x: float, y: float, words: str, anchor: str, colour: str) -> None:
    """A text, aligned by its `anchor`: start, middle or end."""
    element = ElementTree.SubElement(parent, "text", x=f"{x:.1f}", y=f"{y:.1f}", fill=colour)
    element.set("text-anchor", anchor)
    element.text = words


def ticks(high: float) -> list[float]:
    """Round numbers from 0 to `high`, at most seven."""
    step = 10 ** math.floor(math.log10(high / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 6)
    return [index * step for index in range(int(high / step) + 1)]


def to_text(root: Element) -> str:
    """The picture as text."""
    return ElementTree.tostring(root, encoding="unicode")
