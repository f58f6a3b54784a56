# SPDX-License-Identifier: GPL-2.0-only
"""Counters of a scheduler under load, in a deterministic guest, where idle CPUs and late decisions
are caused by the scheduler, not by the host."""

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
    """The statistics that scx_stats_client has printed."""
    return [payload(json.loads(line)) for line in re.findall(r"^\{.*\}$", printed, re.MULTILINE)]


def counted(
    replayed: Callable[[str], str], commands: Sequence[str], load: Sequence[str]
) -> list[Record]:
    """The counters of the scheduler of each command, after a second of this load."""
    common = ROUND.replace("LOAD", " ".join(load)).replace("SOCKET", SOCKET)
    common = common.replace("TOTAL", TOTAL)
    rounds = [common.replace("COMMAND", command) for command in commands]
    counts = answers(replayed("\n".join(rounds)))
    assert len(counts) == len(commands)
    return counts
