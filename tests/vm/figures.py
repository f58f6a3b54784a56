# SPDX-License-Identifier: GPL-2.0-only
"""Figures of loads under a scheduler, how long each CPU was idle meanwhile, and the runs of tasks,
in deterministic guests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

#: Runs a load, and prints the idle ticks of each CPU before and after the load.
SCRIPT = """
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
idle() {
    echo "idle $(grep "^cpu[0-9]" /proc/stat | cut -d " " -f 5 | tr "\\n" " ")"
}
idle
LOAD
idle
cat /sys/kernel/sched_ext/state
kill -INT $scheduler
wait $scheduler
"""

#: Ticks per second of /proc/stat.
USER_HZ = 100

Replayed = Callable[[str], str]


def scx_load(options: str) -> str:
    """The command of a load. The load has only the kinds of threads that the options name."""
    kinds = ("--hogs", "--sleepers", "--pipes", "--forks-per-s")
    options += "".join(f" {kind} 0" for kind in kinds if kind not in options.split())
    return f"scx_load {options} --json"


def measure_all(
    replayed: Replayed, scheduler: str, script: str
) -> tuple[list[dict[str, Any]], list[float]]:
    """The figures of all loads of a script, in the order in which the loads end, and the idle time
    of each CPU meanwhile, in s."""
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler).replace("LOAD", script))
    assert "enabled" in printed.splitlines(), printed
    figures = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    before, after = (
        [int(ticks) / USER_HZ for ticks in line.split()]
        for line in re.findall("^idle (.*)", printed, re.MULTILINE)
    )
    idle_s = [b - a for a, b in zip(before, after, strict=True)]
    return [json.loads(text) for text in figures], idle_s


def measure(replayed: Replayed, scheduler: str, options: str) -> tuple[dict[str, Any], list[float]]:
    """The figures of a single load with these options, and the idle time of each CPU meanwhile, in
    s."""
    (figures,), idle_s = measure_all(replayed, scheduler, scx_load(options))
    return figures, idle_s


#: Runs a load, and records the runs of some of its tasks.
RECORD = """
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
LOAD >/dev/null & load=$!
sleep 0.3
scx_switches --comm COMM --seconds SECONDS --json || exit 1
cat /sys/kernel/sched_ext/state
kill -INT $load
wait $load || exit 1
kill -INT $scheduler
wait $scheduler
"""


def record_runs(
    replayed: Replayed, scheduler: str, load: str, comm: str, seconds: float = 0.5
) -> list[dict[str, Any]]:
    """The runs of tasks with the name `comm`, in order of their starts. `load` is a command that
    runs until it gets SIGINT."""
    values = {"SCHEDULER": scheduler, "LOAD": load, "COMM": comm, "SECONDS": str(seconds)}
    script = RECORD
    for name, value in values.items():
        script = script.replace(name, value)
    printed = replayed(script)
    assert "enabled" in printed.splitlines(), printed
    lines = [json.loads(line) for line in re.findall(r"^\{.*\}$", printed, re.MULTILINE)]
    (summary,) = (line for line in lines if line["type"] == "summary")
    assert summary["lost"] == 0
    runs = [line for line in lines if line["type"] == "run"]
    return sorted(runs, key=lambda run: run["start_ns"])
