# SPDX-License-Identifier: GPL-2.0-only
"""scx_bpfland on a real kernel; more in test_deadlines.py."""

from __future__ import annotations

import json

import pytest
from figures import Replayed, measure_all, scx_load
from sched_ext import counters


@pytest.mark.parametrize(
    ("options", "least", "most"), [("", 0.2, 0.7), ("--local-pcpu", 0.9, 1.01)]
)
def test_pinned_task_beside_others(
    replayed: Replayed, options: str, least: float, most: float
) -> None:
    """One hog is pinned to a CPU, and six hogs may run on any of four CPUs. All make progress. With
    --local-pcpu, the pinned hog runs before the other hogs."""
    one, six = (scx_load(f"--hogs {count} --seconds 2") for count in (1, 6))
    script = f"taskset 1 {one} & pinned=$!\n{six}\nwait $pinned"
    figures, _ = measure_all(replayed, f"scx_bpfland {options}", script)
    cpu_s = sorted((load["hogs"]["cpu_s"] for load in figures), key=len)
    print(cpu_s)
    assert least <= cpu_s[0][0] / 2 <= most
    assert min(cpu_s[1]) > 0.3


#: Leaves one CPU online. All tasks may use four CPUs, so none of them is pinned. Prints the state
#: of sched_ext, the last statistics of the scheduler, and the figures of a load.
ONE_ONLINE = """
for cpu in 1 2 3; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done
scx_bpfland OPTIONS --stats 0.5 >/tmp/stats & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
LOAD >/tmp/load
cat /sys/kernel/sched_ext/state
kill -INT $scheduler
wait $scheduler
tail -n 1 /tmp/stats
cat /tmp/load
"""


@pytest.mark.parametrize("options", ["", "--sticky-tasks"])
def test_sticky_tasks_do_not_starve_others(replayed: Replayed, options: str) -> None:
    """Two tasks that wake each other run for less than 10 us at a time, beside three hogs. With
    --sticky-tasks, the two wait in the DSQ of their CPU, but still take only their share."""
    script = ONE_ONLINE.replace("OPTIONS", options)
    printed = replayed(script.replace("LOAD", scx_load("--hogs 3 --pipes 1 --seconds 2")))
    assert "enabled" in printed.splitlines(), printed
    (line,) = (counters(line) for line in printed.splitlines() if line.startswith("running="))
    figures = json.loads(printed[printed.index("{\n") :])
    print(line, figures["hogs"]["cpu_s"], figures["pipes"])
    if options:
        assert line["direct"] > 10 * line["shared"]
    else:
        assert line["shared"] > 10 * line["direct"]
    # The fair share of each of the five tasks is 0.4 s.
    assert min(figures["hogs"]["cpu_s"]) > 0.3
    assert figures["pipes"]["round_trips"] > 10_000
