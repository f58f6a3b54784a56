# SPDX-License-Identifier: GPL-2.0-only
"""A timeline as SVG: a lane for each task, with a bar for each of its turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import svg

from .trace import NS_PER_MS, Turn

#: Dimensions, in SVG units.
_WIDTH, _LEFT, _RIGHT, _LANE, _BAR, _TOP, _BOTTOM = 900, 130, 20, 24, 14, 6, 40
#: Colours of the bars: one for each name of a task, in the order of `labels`.
BARS = ("#2f7fc1", "#c2651a")
#: The picture shows this much of a recording, from the start of the first turn.
WINDOW_MS = 600.0


def draw(turns: Sequence[Turn], title: str, labels: Mapping[str, str]) -> str:
    """The picture. `labels` has the label of a lane for each name of a task. The lanes are in the
    order of the tasks' first turns."""
    start_ns = turns[0].start_ns
    end_ns = start_ns + min(round(WINDOW_MS * NS_PER_MS), turns[-1].stop_ns - start_ns)
    lanes: dict[int, list[Turn]] = {}
    for turn in turns:
        if turn.start_ns < end_ns:
            lanes.setdefault(turn.pid, []).append(turn)
    bottom = _TOP + _LANE * len(lanes)
    picture = svg.picture(_WIDTH, bottom + _BOTTOM, title)
    scale = (_WIDTH - _LEFT - _RIGHT) / (end_ns - start_ns)
    _axis(picture, (end_ns - start_ns) / NS_PER_MS, bottom)
    for index, of_task in enumerate(lanes.values()):
        comm = of_task[0].comm
        number = sum(lane[0].comm == comm for lane in list(lanes.values())[: index + 1])
        y = _TOP + _LANE * index + (_LANE - _BAR) / 2
        svg.text(picture, _LEFT - 10, y + _BAR - 2, f"{labels[comm]}, {number}", "end", svg.TEXT)
        path = "".join(
            _bar(
                _LEFT + (turn.start_ns - start_ns) * scale,
                _LEFT + (min(turn.stop_ns, end_ns) - start_ns) * scale,
                y,
            )
            for turn in of_task
        )
        colour = BARS[list(labels).index(comm) % len(BARS)]
        ElementTree.SubElement(picture, "path", d=path, fill=colour)
    return svg.to_text(picture) + "\n"


def _axis(picture: svg.Element, end_ms: float, bottom: float) -> None:
    for tick in svg.ticks(end_ms):
        x = _LEFT + tick / end_ms * (_WIDTH - _LEFT - _RIGHT)
        svg.line(picture, x, _TOP, x, bottom, svg.GRID, 0.5)
        svg.text(picture, x, bottom + 16, f"{tick:g}", "middle", svg.TEXT)
    svg.text(picture, (_LEFT + _WIDTH - _RIGHT) / 2, bottom + 34, "time, ms", "middle", svg.TEXT)


def _bar(left: float, right: float, y: float) -> str:
    """A rectangle, as a part of a path."""
    return f"M{left:.1f} {y:g}H{right:.1f}v{_BAR}H{left:.1f}z"
