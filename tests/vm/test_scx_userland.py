# SPDX-License-Identifier: GPL-2.0-only
"""scx_userland on a real kernel: a policy in C."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest
from loads import MIXED, QUIET, end_load, finished, hog_times_s
from sched_ext import (
    TIMEOUT_S,
    Load,
    Scheduler,
    SetCpu,
    Start,
    counters,
    ops,
    read,
    state,
    wait_for,
)
from shares import NICE_0_TO_5, shares
from statistics_client import total, wait_served
from vm.guest import Guest


def nr_pending(scheduler: Scheduler) -> int:
    """The number of enqueues that have not ended, from the next line of statistics. The counters of
    the CPUs are read while the CPUs run, so the number may be off by a few."""
    last = counters(scheduler.wait_lines(1)[-1])
    ends = ("dispatched", "fallback", "cancelled", "dequeued")
    return last["nr_queued"] - sum(last[f"nr_{end}"] for end in ends)


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    """The policy decides, and every enqueue ends in exactly one way."""
    scheduler = start("scx_userland", "-i", "0.5").wait_enabled()
    assert ops(guest) == "userland"
    hogs = str(len(guest.topology.online) * 2)
    load("--hogs", hogs, *MIXED)
    first = counters(scheduler.wait_lines(1)[0])
    last = counters(scheduler.wait_lines(4)[-1])
    assert last["nr_dispatched"] > first["nr_dispatched"]
    assert last["nr_wakeups"] > first["nr_wakeups"]
    wait_for("the enqueues add up", lambda: 0 <= nr_pending(scheduler) < 100)
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


def test_its_memory_is_locked(guest: Guest, start: Start) -> None:
    """All mappings are locked, except those of BPF maps and of the kernel's pages, which cannot be
    swapped out: mappings with the flag "de" (VM_DONTEXPAND), and vsyscall."""
    scheduler = start("scx_userland").wait_enabled()
    smaps = read(guest, f"/proc/{scheduler.process.pid}/smaps")
    mappings = re.findall(r"^[0-9a-f]+-(.*?)^VmFlags: (.*?)$", smaps, re.MULTILINE | re.DOTALL)
    ordinary = [
        flags.split()
        for head, flags in mappings
        if "de" not in flags.split() and "[vsyscall]" not in head
    ]
    assert len(ordinary) > 10
    assert all("lo" in flags for flags in ordinary), ordinary


def test_stopped_policy_stops_no_task(guest: Guest, start: Start, load: Load) -> None:
    """If tasks had to wait for the policy, the kernel's watchdog would eject the scheduler after 10
    s."""
    scheduler = start("scx_userland", "-i", "0").wait_enabled()
    wait_served(guest)
    hogs = load("--hogs", "8", *QUIET)
    wait_for("all hogs run", lambda: len(hog_times_s(guest, hogs)) == 8)
    scheduler.process.signal(signal.SIGSTOP)
    before_s = hog_times_s(guest, hogs)
    wait_for(
        "each hog runs",
        lambda: all(
            now > before + 0.2
            for now, before in zip(hog_times_s(guest, hogs), before_s, strict=True)
        ),
    )
    scheduler.process.signal(signal.SIGCONT)
    after = total(guest)
    assert after["nr_fallback"] > 0
    wait_for(
        "the policy decides again",
        lambda: total(guest)["nr_dispatched"] > after["nr_dispatched"] + 20,
    )
    assert state(guest) == "enabled"


def test_cpu_is_shared_by_weight(replayed: Callable[[str], str]) -> None:
    heavy_s, light_s = shares(replayed, "scx_userland", [0, 5])
    assert heavy_s / light_s == pytest.approx(NICE_0_TO_5, rel=0.15)


def slice_ms(guest: Guest, start: Start, load: Load, *args: str) -> float:
    """The CPU time of hogs on one CPU, divided by the number of dispatches meanwhile, in ms."""
    scheduler: Scheduler = start("scx_userland", "-i", "0", *args).wait_enabled()
    wait_served(guest)
    hogs = load("--hogs", "4", *QUIET, through="taskset 1")
    wait_for("all hogs run", lambda: len(hog_times_s(guest, hogs)) == 4)
    before, before_s = total(guest), sum(hog_times_s(guest, hogs))
    wait_for("they run for 2 s", lambda: sum(hog_times_s(guest, hogs)) > before_s + 2)
    after, after_s = total(guest), sum(hog_times_s(guest, hogs))
    hogs.signal(signal.SIGINT)
    hogs.wait(TIMEOUT_S)
    assert scheduler.end(signal.SIGINT) == 0
    return 1000 * (after_s - before_s) / (after["nr_dispatched"] - before["nr_dispatched"])


def test_longer_slices_need_fewer_decisions(guest: Guest, start: Start, load: Load) -> None:
    short_ms = slice_ms(guest, start, load, "--slice-us", "5000")
    long_ms = slice_ms(guest, start, load, "--slice-us", "50000")
    print(f"{short_ms:.1f} ms, {long_ms:.1f} ms")
    assert long_ms > 2 * short_ms


def test_light_task_is_not_starved(guest: Guest, start: Start, load: Load) -> None:
    """By weight alone, a task of nice 19 beside one of nice -20 would wait three minutes for each
    slice."""
    start("scx_userland", "-i", "0").wait_enabled()
    one_hog = ("--hogs", "1", *QUIET)
    light = load(*one_hog, through="nice -n 19 taskset 1")
    wait_for("it runs", lambda: sum(hog_times_s(guest, light)) > 0.1)
    heavy = load(*one_hog, through="nice -n -20 taskset 1")
    wait_for("the other runs", lambda: sum(hog_times_s(guest, heavy)) > 1)
    for _ in range(2):
        before_s = sum(hog_times_s(guest, light))
        wait_for(
            "it runs again",
            lambda before_s=before_s: sum(hog_times_s(guest, light)) > before_s + 0.003,
        )
    assert state(guest) == "enabled"


def test_hotplug_under_load_loses_no_task(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    """The scheduler continues without a restart."""
    scheduler = start("scx_userland", "-i", "0.5").wait_enabled()
    mixed = load("--hogs", "6", *MIXED)
    for online in (False, True, False, True):
        set_cpu(1, online)
        scheduler.wait_lines(2)
    assert "restarting" not in scheduler.process.stderr()
    end_load(mixed)
    assert scheduler.end(signal.SIGINT) == 0


def test_affinity_storm(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_userland").wait_enabled()
    storm = load("--movers", "24", "--hogs", "2", *QUIET, "--seconds", "2", "--json")
    assert finished(storm)["movers"]["changes"] > 500
    assert scheduler.end(signal.SIGINT) == 0


# This must be the last test of its guest: see test_ten_thousand_tasks() in test_scx_rlfifo.py.
@pytest.mark.once
def test_two_thousand_tasks(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_userland").wait_enabled()
    load("--hogs", "4", "--sleepers", "2000", "--sleep-us", "1000000", "--forks-per-s", "0")
    count = "ls -d /proc/*/task/* | wc -l"
    wait_for("all tasks exist", lambda: int(guest.run(count, is_urgent=True).stdout) > 2000)
    scheduler.wait_lines(3)
    assert scheduler.end(signal.SIGINT) == 0
