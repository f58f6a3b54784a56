# SPDX-License-Identifier: GPL-2.0-only
"""Loads for tests of schedulers, and their figures: see testbed/load."""

from __future__ import annotations

import json

from recorder import Record
from sched_ext import TIMEOUT_S
from vm.guest import Guest, Process

#: Options of scx_load: a mixture to combine with hogs, and no load except hogs.
MIXED = ("--sleepers", "16", "--pipes", "4", "--forks-per-s", "20")
QUIET = ("--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")

#: A shell script that computes for 4 s, to be started as a real-time task. It ends by itself, since
#: a task that should kill it may not get to run; and early enough that the kernel does not eject
#: the scheduler because kernel threads of the CPU starve.
_NOW = "IFS=. read -r now rest </proc/uptime"
SPIN = f"{_NOW}; end=$((now + 4)); while [ $now -lt $end ]; do {_NOW}; done"


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
