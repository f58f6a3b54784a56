# SPDX-License-Identifier: GPL-2.0-only
"""A user-space scheduler with an extended BPF side (RustLandBuilder): tasks of low weight bypass
the policy."""

from __future__ import annotations

import re
import signal

from sched_ext import TIMEOUT_S, Load, Scheduler, Start, ops
from vm.guest import Guest

PROGRAM = "scx_own_rust"


def end(scheduler: Scheduler) -> dict[str, int]:
    """Ends the scheduler. Returns the sums of its statistics. The test fails if there were page
    faults, or if tasks are unaccounted for. It does not fail if tasks were served without a
    decision, because the host may halt the guest."""
    assert scheduler.end(signal.SIGINT) == 0
    report, *_ = scheduler.process.stderr().splitlines()
    assert re.search(f"^{PROGRAM}: .* faults=0$", report), report
    assert "unaccounted" not in report
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


def test_overridden_callback_is_called(guest: Guest, start: Start, load: Load) -> None:
    counts = run_with_background(start, load)
    # For 3 s, the six hogs of low weight are enqueued again after each slice of 20 ms.
    assert counts["background"] > 100, counts
    assert counts["asked"] > 100, counts


def test_rodata_is_set(guest: Guest, start: Start, load: Load) -> None:
    """With --weight-min 0, no task bypasses the policy because of its weight. This shows that the
    value has reached the BPF side."""
    counts = run_with_background(start, load, "--weight-min", "0")
    assert counts["background"] == 0, counts
    assert counts["asked"] > 200, counts


def test_ops_name_is_set_by_user_space(guest: Guest, start: Start) -> None:
    scheduler = start(PROGRAM).wait_enabled()
    assert ops(guest).startswith("own_half")
    end(scheduler)
