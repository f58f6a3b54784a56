# SPDX-License-Identifier: GPL-2.0-only
"""A scheduler whose policy is in user space and whose BPF half is its own (RustLandBuilder): the
policy is not asked about tasks of little weight."""

from __future__ import annotations

import re
import signal

from sched_ext import TIMEOUT_S, Load, Scheduler, Start, ops
from vm.guest import Guest

PROGRAM = "scx_own_rust"


def end(scheduler: Scheduler) -> dict[str, int]:
    """The sums of its statistics, when it has ended by itself and all adds up."""
    assert scheduler.end(signal.SIGINT) == 0
    assert re.search(f"^{PROGRAM}: healthy: ", scheduler.process.stderr(), re.MULTILINE)
    sums = {"asked": 0, "background": 0}
    for line in scheduler.lines():
        for name, count in re.findall(r"(\w+)=(\d+)", line):
            sums[name] += int(count)
    return sums


def run_with_background(start: Start, load: Load, *args: str) -> dict[str, int]:
    scheduler = start(PROGRAM, "--stats", "0.5", *args).wait_enabled()
    background = load("--hogs", "6", "--seconds", "3", through="nice -n 10")
    ordinary = load("--hogs", "2", "--sleepers", "8", "--seconds", "3")
    for process in (background, ordinary):
        assert process.wait(TIMEOUT_S) == 0, process.stderr()
    return end(scheduler)


def test_own_callback_goes_before_the_library(guest: Guest, start: Start, load: Load) -> None:
    counts = run_with_background(start, load)
    # A slice is 20 ms, and there are six that want one after the other, on four CPUs.
    assert counts["background"] > 100, counts
    assert counts["asked"] > 100, counts


def test_own_rodata_reaches_it(guest: Guest, start: Start, load: Load) -> None:
    """All else is the library's: it asks about everybody."""
    counts = run_with_background(start, load, "--weight-min", "0")
    assert counts["background"] == 0, counts
    assert counts["asked"] > 200, counts


def test_it_has_the_name_that_user_space_gives(guest: Guest, start: Start) -> None:
    scheduler = start(PROGRAM).wait_enabled()
    assert ops(guest).startswith("own_half")
    end(scheduler)
