# SPDX-License-Identifier: GPL-2.0-only
"""Who gets how much of a CPU that is shared: hogs with nice values, as the kernel accounts them."""

from __future__ import annotations

from collections.abc import Callable

from sched_ext import state, wait_for
from vm.guest import Guest, Process

Load = Callable[..., Process]

ONE_HOG = ("--hogs", "1", "--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")


def run_times_s(guest: Guest, *processes: Process) -> list[float]:
    """CPU time of all threads of each process so far, read at one time."""
    files = (f"cat /proc/{process.pid}/task/*/schedstat; echo" for process in processes)
    parts = guest.run("; ".join(files)).check().stdout.split("\n\n")
    return [sum(int(line.split()[0]) for line in part.splitlines()) / 1e9 for part in parts[:-1]]


def wait_ran(guest: Guest, process: Process, seconds: float) -> None:
    """Until the process has had so much CPU time."""
    wait_for("the hog runs", lambda: run_times_s(guest, process)[0] > seconds)


def shares(guest: Guest, load: Load, nices: list[int]) -> list[float]:
    """CPU time of hogs with these nice values that share CPU 0, in the same few seconds."""
    hogs = [load(*ONE_HOG, through=f"nice -n {nice} taskset 1") for nice in nices]
    for hog in hogs:
        wait_ran(guest, hog, 0.2)
    before_s = run_times_s(guest, *hogs)
    # So long that single slices do not count.
    wait_ran(guest, hogs[0], before_s[0] + 8)
    after_s = run_times_s(guest, *hogs)
    # The kernel's own scheduler shares by weight too.
    assert state(guest) == "enabled"
    return [after - before for after, before in zip(after_s, before_s, strict=True)]
