# SPDX-License-Identifier: GPL-2.0-only
"""Loads for tests of schedulers, and their figures: see testbed/load."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence

from recorder import Record
from sched_ext import TIMEOUT_S, wait_for
from vm.guest import Guest, Process

#: Options of scx_load, to combine with --hogs: MIXED adds other kinds of load, QUIET omits them.
#: Only one pair of threads passes bytes through pipes, because the emulator takes much longer for a
#: second of context switches than for a second of a hog.
MIXED = ("--sleepers", "16", "--pipes", "1", "--forks-per-s", "20")
QUIET = ("--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")


def finished(process: Process, timeout_s: float = TIMEOUT_S) -> Record:
    """Waits for the end of a load, which must succeed. Returns its figures."""
    assert process.wait(timeout_s) == 0, process.stderr()
    return json.loads(process.stdout())


def end_load(load: Process) -> None:
    """Ends a load. Called before the scheduler ends, this shows that the scheduler has lost no task
    of the load, because each thread has to run in order to end."""
    load.signal(signal.SIGINT)
    assert load.wait(TIMEOUT_S) == 0, load.stderr()


def of_hogs(guest: Guest, load: Process, file: str) -> list[str]:
    """The contents of /proc/PID/task/TID/`file`, which has one line, for each hog that the load has
    started so far."""
    tasks = f"/proc/{load.pid}/task"
    script = f"for t in {tasks}/*; do grep -q hog $t/comm && cat $t/{file}; done; true"
    return guest.run(script, is_urgent=True).check().stdout.splitlines()


def hog_times_s(guest: Guest, load: Process) -> list[float]:
    """CPU times of a load's hogs so far in s, as accounted by the kernel."""
    return [int(line.split()[0]) / 1e9 for line in of_hogs(guest, load, "schedstat")]


def times_s(guest: Guest, loads: Sequence[Process]) -> tuple[float, list[list[float]]]:
    """The uptime in s, and the CPU times of each load's hogs in s. One command reads all of them,
    because much guest time may pass between two commands."""
    hogs = "for t in /proc/{}/task/*; do grep -q hog $t/comm && cat $t/schedstat; done"
    script = "; echo; ".join(["cat /proc/uptime", *(hogs.format(load.pid) for load in loads)])
    text = guest.run(f"{script}; true", is_urgent=True).check().stdout
    uptime, *lines = (part.splitlines() for part in text.split("\n\n"))
    return float(uptime[0].split()[0]), [[int(s.split()[0]) / 1e9 for s in of] for of in lines]


def cpus_of_hogs(guest: Guest, load: Process) -> list[int]:
    """For each hog of a load, the CPU that it runs on or ran on last."""
    # The CPU is field 39. Field 2, the name in parentheses, may contain spaces.
    return [int(line.rpartition(")")[2].split()[36]) for line in of_hogs(guest, load, "stat")]


#: The prefix of a command that makes it a real-time task.
REAL_TIME = ("chrt", "-f", "50")


def spin(cpu: int, through: Sequence[str] = REAL_TIME) -> list[str]:
    """The command of a task that computes on `cpu` for 4 s. By default this is a real-time task,
    which preempts the task that runs there.

    The task ends by itself, because a process that is to kill it might not get to run. It must not
    run for much longer than 4 s, because the kernel threads of this CPU wait meanwhile, and the
    kernel ejects a scheduler if a task waits for too long.
    """
    return [*through, "taskset", "-c", str(cpu), "scx_spin", "4"]


def shares_beside_real_time(
    guest: Guest,
    loads: Sequence[tuple[Process, int]],
    cpu: int | None = None,
    through: Sequence[str] = REAL_TIME,
) -> list[list[float]]:
    """Runs a task of a higher class on `cpu`, by default on the CPU of a hog of the first load.
    `loads` has each load and its number of hogs. Returns, for each load, the share of a CPU that
    each of its hogs got meanwhile. Ends the loads.

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
    begin_s, before = times_s(guest, [load for load, _ in loads])
    on_hog = max(cpus_of_hogs(guest, loads[0][0]))
    real_time = guest.spawn("real_time", spin(on_hog if cpu is None else cpu, through))
    assert real_time.wait(TIMEOUT_S) == 0
    end_s, after = times_s(guest, [load for load, _ in loads])
    for load, _ in loads:
        load.signal(signal.SIGINT)
        finished(load)
    return [
        [(end - begin) / (end_s - begin_s) for begin, end in zip(*times, strict=True)]
        for times in zip(before, after, strict=True)
    ]


#: The minimum of each result of shares_beside_real_time() if the other CPUs suffice for all hogs. A
#: hog that waits until the real-time task ends gets hardly any CPU time. A hog that waits for a
#: second, until the kernel's deadline server preempts the real-time task, gets three quarters of a
#: CPU.
SHARE_MIN = 0.8


def uptime_s(guest: Guest) -> float:
    return float(guest.read("/proc/uptime").check().stdout.split()[0])
