# SPDX-License-Identifier: GPL-2.0-only
"""scx_fifo on a real kernel, and with it the Rust runner."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest
from loads import end_load
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    Load,
    SetCpu,
    Start,
    ops,
    read,
    state,
    wait_disabled,
    wait_for,
)
from slices import check_slices
from vm.guest import Guest


def figures(line: str) -> dict[str, int]:
    """The numbers of a line of statistics, by name."""
    return {name: int(value) for name, value in (part.split("=") for part in line.split())}


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_fifo", "--stats", "0.5").wait_enabled()
    assert ops(guest) == "fifo"
    assert read(guest, "/sys/kernel/sched_ext/switch_all") == "1"
    process = load("--hogs", str(len(guest.topology.online) * 2))
    lines = [figures(line) for line in scheduler.wait_lines(5)]
    assert sum(line["queued"] for line in lines) > 0
    assert sum(line["kthreads"] for line in lines) > 0
    enabled = read(guest, f"/proc/{process.pid}/sched")
    assert re.search(r"ext\.enabled\s+:\s+1", enabled), enabled
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


def test_idle_cpus_are_used_directly(start: Start, load: Load) -> None:
    scheduler = start("scx_fifo", "--stats", "0.5").wait_enabled()
    load("--hogs", "0", "--sleepers", "2", "--pipes", "0", "--forks-per-s", "0")
    lines = [figures(line) for line in scheduler.wait_lines(4)]
    assert lines[-1]["local"] > lines[-1]["queued"]


@STOPS_FAIR_SERVER_TWICE
def test_hotplug_under_load_loses_no_task(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    """A CPU goes offline and online twice under load, and the scheduler restarts each time. The
    hogs start after the scheduler, so that at each restart the kernel switches the scheduler's
    threads to the ext class first, while the hogs are still in the fair class: see
    scheds/c/runner/priority.c (6.17)."""
    scheduler = start("scx_fifo", "--slice-us", "3000", "--stats", "0.5").wait_enabled()
    mixed = load("--hogs", "12", "--sleepers", "60", "--pipes", "8", "--forks-per-s", "20")
    for change in range(4):
        online = change % 2
        set_cpu(1, bool(online))
        restarted = change + 1
        wait_for(
            f"restart {restarted}",
            lambda n=restarted: scheduler.process.stderr().count("restarting") >= n,
        )
        scheduler.wait_enabled()
    assert figures(scheduler.wait_lines(2)[-1])["slice_us"] == 3000
    end_load(mixed)
    assert scheduler.end(signal.SIGINT) == 0


@STOPS_FAIR_SERVER_TWICE
def test_restart_without_standard_error(guest: Guest, set_cpu: SetCpu) -> None:
    """A scheduler restarts although the reader of its standard error has exited."""
    wait_disabled(guest)
    guest.spawn("silent", "scx_fifo -v 2>&1 | true")
    wait_for("it is enabled", lambda: state(guest) == "enabled")
    before = int(read(guest, "/sys/kernel/sched_ext/enable_seq"))
    set_cpu(1, False)
    wait_for("the restart", lambda: int(read(guest, "/sys/kernel/sched_ext/enable_seq")) > before)
    wait_for("it is enabled", lambda: ops(guest) == "fifo")
    guest.run("kill -INT $(pidof scx_fifo)").check()
    wait_disabled(guest)


def test_slice_is_as_configured(replayed: Callable[[str], str]) -> None:
    """A slice that is shorter than a tick ends at the next tick."""
    check_slices(replayed, "scx_fifo", (2_000, 50_000), nr_runs_min=10)


def test_verbose_shows_messages_of_libbpf(start: Start) -> None:
    scheduler = start("scx_fifo", "-v").wait_enabled()
    assert scheduler.end(signal.SIGINT) == 0
    stderr = scheduler.process.stderr()
    assert "scx_fifo: libbpf: loading" in stderr, stderr
