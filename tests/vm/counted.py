# SPDX-License-Identifier: GPL-2.0-only
"""What a scheduler counts under a load, in a guest whose time is its own: how often a CPU is idle,
or a decision late, is the scheduler's doing there, and not that of the machine below."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from recorder import Record
from statistics_client import SOCKET, TOTAL, payload

ROUND = """
COMMAND & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
scx_load LOAD --seconds 1 >/dev/null || exit 1
scx_stats_client SOCKET ask 'TOTAL'
kill -INT $scheduler
wait $scheduler || exit 1
"""


def answers(printed: str) -> list[Record]:
    """The statistics that a scheduler has told scx_stats_client."""
    return [payload(json.loads(line)) for line in re.findall(r"^\{.*\}$", printed, re.MULTILINE)]


def counted(
    replayed: Callable[[str], str], commands: Sequence[str], load: Sequence[str]
) -> list[Record]:
    """All that each of these command lines has counted in the same second of load."""
    common = ROUND.replace("LOAD", " ".join(load)).replace("SOCKET", SOCKET)
    common = common.replace("TOTAL", TOTAL)
    rounds = [common.replace("COMMAND", command) for command in commands]
    counts = answers(replayed("\n".join(rounds)))
    assert len(counts) == len(commands)
    return counts
