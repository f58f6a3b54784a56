# SPDX-License-Identifier: GPL-2.0-only
"""A recording of context switches (`scx_switches --json`), and the turns of tasks in it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

NS_PER_MS = 1_000_000


class TraceError(Exception):
    """A recording cannot be used, or is not as expected; the text is for the user."""


@dataclass(frozen=True)
class Run:
    """A task on a CPU, from one context switch to the next."""

    start_ns: int
    stop_ns: int
    #: Time on the CPU, including interrupts.
    ran_ns: int
    cpu: int
    pid: int
    comm: str


@dataclass(frozen=True)
class Turn:
    """Consecutive runs of a task: none of the other tasks under observation ran in between."""

    pid: int
    comm: str
    start_ns: int
    stop_ns: int
    #: The CPU time of each run.
    runs_ns: tuple[int, ...]

    @property
    def ran_ms(self) -> float:
        """The CPU time of all runs of the turn."""
        return sum(self.runs_ns) / NS_PER_MS

    @property
    def interrupted_ms(self) -> float:
        """The time between the runs of the turn."""
        return (self.stop_ns - self.start_ns) / NS_PER_MS - self.ran_ms


def parse(printed: str) -> list[Run]:
    """The runs of all tasks. Raises TraceError if records were lost, or there are none."""
    runs = []
    for line in printed.splitlines():
        record = json.loads(line)
        if record["type"] == "run":
            names = ("start_ns", "stop_ns", "ran_ns", "cpu", "pid", "comm")
            runs.append(Run(*(record[name] for name in names)))
        elif record["lost"]:
            raise TraceError(f"scx_switches lost {record['lost']} runs")
    if not runs:
        raise TraceError("scx_switches recorded nothing")
    return runs


def turns(runs: Iterable[Run], comms: Collection[str]) -> list[Turn]:
    """The turns of the tasks whose names are in `comms`. `runs` must be those of one CPU. Runs of
    other tasks, such as kernel threads, only interrupt a turn."""
    found: list[Turn] = []
    for run in runs:
        if run.comm not in comms:
            continue
        if found and found[-1].pid == run.pid:
            last = found[-1]
            found[-1] = replace(last, stop_ns=run.stop_ns, runs_ns=(*last.runs_ns, run.ran_ns))
        else:
            found.append(Turn(run.pid, run.comm, run.start_ns, run.stop_ns, (run.ran_ns,)))
    return found


def contended(found: Sequence[Turn]) -> list[Turn]:
    """The turns during which all tasks were running or waiting: those after the first turn of every
    task, and before the last turn of any task."""
    order = [turn.pid for turn in found]
    pids = set(order)
    if not pids:
        return []
    begin = max(order.index(pid) for pid in pids) + 1
    end = len(order) - max(order[::-1].index(pid) for pid in pids) - 1
    return list(found[begin:end])


def moves(runs: Iterable[Run], comm: str) -> tuple[int, int]:
    """The number of runs of the tasks called `comm`, and how many of them began on another CPU than
    the task's previous run."""
    cpus: dict[int, int] = {}
    nr_runs = nr_moves = 0
    for run in runs:
        if run.comm == comm:
            nr_runs += 1
            nr_moves += cpus.get(run.pid, run.cpu) != run.cpu
            cpus[run.pid] = run.cpu
    return nr_runs, nr_moves


def percentile(values: Sequence[float], rank: float) -> float:
    """The smallest value that at least `rank` per cent of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(rank / 100 * len(values)) - 1)]


def tick_ns(before: str, after: str) -> int:
    """The period of the kernel's tick, from the lines `now at` and `jiffies` of two readings of
    /proc/timer_list. Raises TraceError."""
    (then_ns, jiffies), (now_ns, more) = (_clocks(text) for text in (before, after))
    # The measured rate is not exact, because the readings are not taken at ticks.
    hz = (more - jiffies) / (now_ns - then_ns) * 1e9
    known = min((100, 250, 300, 1000), key=lambda known: abs(known - hz))
    if abs(hz / known - 1) > 0.05:
        raise TraceError(f"{hz:.0f} ticks per second are unexpected")
    return round(1e9 / known)


def _clocks(text: str) -> tuple[int, int]:
    now = re.search(r"^now at (\d+) nsecs", text, re.MULTILINE)
    jiffies = re.search(r"^jiffies: (\d+)", text, re.MULTILINE)
    if not now or not jiffies:
        raise TraceError("/proc/timer_list has no clock")
    return int(now[1]), int(jiffies[1])
