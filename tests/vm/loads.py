# SPDX-License-Identifier: GPL-2.0-only
"""Loads for tests of schedulers, and their figures: see testbed/load."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence

from recorder import Record
from sched_ext import TIMEOUT_S, wait_for
from vm.guest import Guest, Process

#: Options of scx_load: a mixture to combine with hogs, and no load except hogs.
MIXED = ("--sleepers", "16", "--pipes", "4", "--forks-per-s", "20")
QUIET = ("--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")

#: A real-time task on CPU 1 that computes for 4 s. It ends by itself, since a task that should kill
#: it may not get to run; and before the kernel ejects the scheduler because kernel threads of that
#: CPU starve.
SPIN = ("chrt", "-f", "50", "taskset", "2", "scx_spin", "4")


def finished(process: Process, timeout_s: float = TIMEOUT_S) -> Record:
    """The figures of a load that has ended by itself."""
    assert process.wait(timeout_s) == 0, process.stderr()
    return json.loads(process.stdout())


def hog_times_s(guest: Guest, load: Process) -> list[float]:
    """CPU times of a load's hogs so far, as accounted by the kernel; empty before they exist."""
    tasks = f"/proc/{load.pid}/task"
    script = f"for t in {tasks}/*; do grep -q hog $t/comm && cat $t/schedstat; done; true"
    done = guest.run(script, is_urgent=True).check()
    return [int(line.split()[0]) / 1e9 for line in done.stdout.splitlines()]


def shares_beside_real_time(guest: Guest, loads: Sequence[tuple[Process, int]]) -> list[float]:
    """Runs a real-time task on CPU 1 beside loads. `loads` has each load and its number of hogs.
    Returns, for each load, the smallest share of a CPU that one of its hogs got meanwhile. Ends the
    loads.

    The hogs run before the real-time task starts, and never sleep: before 6.19, a task that wakes
    up on an idle CPU just as a real-time task starts there has to wait for that task, because the
    kernel calls ops.cpu_release() only if the real-time task preempts a task of the scheduler.
    """
    for load, count in loads:
        wait_for(
            "all hogs run",
            lambda load=load, count=count: (
                sum(used_s > 0.05 for used_s in hog_times_s(guest, load)) == count
            ),
        )
    begin_s, before = uptime_s(guest), [hog_times_s(guest, load) for load, _ in loads]
    real_time = guest.spawn("real_time", SPIN)
    assert real_time.wait(TIMEOUT_S) == 0
    after, end_s = [hog_times_s(guest, load) for load, _ in loads], uptime_s(guest)
    for load, _ in loads:
        load.signal(signal.SIGINT)
        finished(load)
    return [
        min(end - begin for begin, end in zip(*times, strict=True)) / (end_s - begin_s)
        for times in zip(before, after, strict=True)
    ]


def uptime_s(guest: Guest) -> float:
    return float(guest.run("cat /proc/uptime", is_urgent=True).check().stdout.split()[0])
