# SPDX-License-Identifier: GPL-2.0-only
"""scx_simple on a real kernel."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable

import pytest
from cgroups import results, two_cgroups
from loads import end_load, hog_times_s
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    TIMEOUT_S,
    Load,
    SetCpu,
    Start,
    ops,
    read,
    state,
    wait_for,
)
from shares import HOG, NICE_0_TO_5, shares
from vm.guest import Guest, Process

STATS = re.compile(r"local=(\d+) global=(\d+)")


def counters(line: str) -> tuple[int, int]:
    match = STATS.fullmatch(line)
    assert match, line
    return int(match[1]), int(match[2])


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    """The scheduler schedules tasks of the default policy, counts how they are dispatched, and is
    unloaded cleanly."""
    scheduler = start("scx_simple", "-i", "0.5").wait_enabled()
    assert ops(guest) == "simple"
    assert read(guest, "/sys/kernel/sched_ext/switch_all") == "1"

    # More hogs than CPUs: some tasks wait in the shared queue.
    process = load("--hogs", str(len(guest.topology.online) * 2))
    first = counters(scheduler.wait_lines(1)[0])
    last = counters(scheduler.wait_lines(4)[-1])
    assert last[0] > first[0], "no task was dispatched directly"
    assert last[1] > first[1], "no task went through the shared queue"
    enabled = read(guest, f"/proc/{process.pid}/sched")
    assert re.search(r"ext\.enabled\s+:\s+1", enabled), enabled

    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


def dump(guest: Guest) -> str:
    """The debug dump that SysRq-D writes to a tracepoint."""
    tracing = "/sys/kernel/tracing"
    guest.run(f"echo 1 >{tracing}/events/sched_ext/sched_ext_dump/enable").check()
    guest.run("echo D >/proc/sysrq-trigger").check()
    wait_for("the dump is written", lambda: "simple: " in read(guest, f"{tracing}/trace"))
    text = read(guest, f"{tracing}/trace")
    guest.run(f"echo 0 >{tracing}/events/sched_ext/sched_ext_dump/enable; echo >{tracing}/trace")
    return text


@pytest.mark.parametrize(("option", "order"), [(None, "vtime"), ("-f", "fifo")])
def test_debug_dump_contains_the_schedulers_state(
    guest: Guest, start: Start, load: Load, option: str | None, order: str
) -> None:
    start("scx_simple", *([option] if option else [])).wait_enabled()
    load("--hogs", "8")
    text = dump(guest)
    assert re.search(rf"simple: {order} order, vtime_now=\d+, \d+ queued", text), text
    assert re.search(r"simple: weight=100 vtime=\d+ \(now[+-]\d+\)", text), text


@STOPS_FAIR_SERVER_TWICE
def test_cpu_hotplug_restarts_it_with_its_options(
    guest: Guest, start: Start, set_cpu: SetCpu
) -> None:
    scheduler = start("scx_simple", "--fifo", "--interval", "0.5").wait_enabled()
    set_cpu(1, False)
    wait_for("it restarts", lambda: "restarting" in scheduler.process.stderr())
    scheduler.wait_enabled()
    assert "fifo order" in dump(guest)
    scheduler.wait_lines(2)
    set_cpu(1, True)
    wait_for("it restarts", lambda: scheduler.process.stderr().count("restarting") == 2)
    scheduler.wait_enabled()
    assert scheduler.end(signal.SIGTERM) == 0


@STOPS_FAIR_SERVER_TWICE
def test_hotplug_under_load_loses_no_task(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    """Two changes under load, each of which restarts the scheduler.

    All hogs start after the scheduler, so that at each restart the kernel switches the scheduler's
    threads to the ext class first. The hogs, still in the fair class, must not starve the thread
    that switches them (6.17, see scheds/c/runner/priority.c). A smaller load does not show this.
    """
    scheduler = start("scx_simple").wait_enabled()
    mixed = load("--hogs", "12", "--sleepers", "60", "--pipes", "8", "--forks-per-s", "20")
    for change in range(2):
        set_cpu(1, bool(change))
        restarted = change + 1
        wait_for(
            f"restart {restarted}",
            lambda n=restarted: scheduler.process.stderr().count("restarting") >= n,
        )
        scheduler.wait_enabled()
    scheduler.wait_lines(3)
    end_load(mixed)
    assert scheduler.end(signal.SIGINT) == 0


def test_cpu_is_shared_by_weight(replayed: Callable[[str], str]) -> None:
    heavy_s, light_s = shares(replayed, "scx_simple", [0, 5])
    assert heavy_s / light_s == pytest.approx(NICE_0_TO_5, rel=0.1)


def test_light_task_elsewhere_does_not_change_the_shares(replayed: Callable[[str], str]) -> None:
    """The virtual time of a task of nice 19 that is alone on its CPU advances a hundred times as
    fast as that of a task of nice 0. This does not change the shares of tasks on another CPU."""
    elsewhere = f"nice -n 19 taskset 4 {HOG} &"
    heavy_s, light_s = shares(replayed, "scx_simple", [0, 5], elsewhere)
    assert heavy_s / light_s == pytest.approx(NICE_0_TO_5, rel=0.1)


def test_fifo_ignores_the_weight(replayed: Callable[[str], str]) -> None:
    heavy_s, light_s = shares(replayed, "scx_simple --fifo", [0, 5])
    assert heavy_s / light_s == pytest.approx(1, rel=0.1)


def test_weights_of_cgroups_are_an_option(replayed: Callable[[str], str]) -> None:
    both = results(replayed(two_cgroups("scx_simple --cgroups -i 0")))["both"]
    print(both)
    assert both["heavy"] / both["light"] == pytest.approx(3, rel=0.05)


def test_option_for_cgroups_is_not_said_to_ignore_weights(guest: Guest, start: Start) -> None:
    group = "/sys/fs/cgroup/test"
    make = f"cd /sys/fs/cgroup && echo +cpu >cgroup.subtree_control && mkdir {group}"
    try:
        guest.run(f"{make} && echo 50 >{group}/cpu.weight").check()
        scheduler = start("scx_simple", "--cgroups", "--interval", "0").wait_enabled()
        assert scheduler.end(signal.SIGINT) == 0
        assert "cpu.weight" not in scheduler.process.stderr()
    finally:
        guest.run(f"rmdir {group}")


ONE_HOG = ("--hogs", "1", "--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")


def wait_ran(guest: Guest, process: Process, seconds: float) -> None:
    """Waits until the hogs of this load have together used more than `seconds` of CPU time."""
    wait_for("the hog runs", lambda: sum(hog_times_s(guest, process)) > seconds)


def test_light_task_is_not_starved(guest: Guest, start: Start, load: Load) -> None:
    """By weight alone, a task of nice 19 beside one of nice -20 would wait three minutes for each
    slice, and the kernel's watchdog would eject the scheduler."""
    start("scx_simple").wait_enabled()
    light = load(*ONE_HOG, through="nice -n 19 taskset 1")
    wait_ran(guest, light, 0.1)
    heavy = load(*ONE_HOG, through="nice -n -20 taskset 1")
    wait_ran(guest, heavy, 1)
    for _ in range(2):
        wait_ran(guest, light, sum(hog_times_s(guest, light)) + 0.003)
    assert state(guest) == "enabled"


def test_many_waiting_tasks_get_shorter_slices(guest: Guest, start: Start, load: Load) -> None:
    """With slices of 20 ms, the last of two thousand tasks on a CPU would wait for longer than the
    timeout of the kernel's watchdog (30 s)."""
    start("scx_simple").wait_enabled()
    load("--hogs", "500", *ONE_HOG[2:], through="taskset 1")
    wait_for("all hogs wait", lambda: int(re.search(r"(\d+) queued", dump(guest))[1]) > 450)
    slices_ns = [int(ns) for ns in re.findall(r"simple: .* slice_ns=(\d+)", dump(guest))]
    # All waiting tasks together get 4 s, so the slice of a task that is queued behind 450 others is
    # less than 9 ms. Tasks that were queued behind fewer tasks have longer slices, up to 20 ms.
    assert sum(0 < ns < 10e6 for ns in slices_ns) > 50, slices_ns


def test_affinity_storm(guest: Guest, start: Start, load: Load) -> None:
    """Threads change each other's affinity while they run, wait and wake up."""
    scheduler = start("scx_simple").wait_enabled()
    storm = load("--movers", "24", *ONE_HOG, "--seconds", "2", "--json")
    assert storm.wait(TIMEOUT_S) == 0, storm.stderr()
    assert json.loads(storm.stdout())["movers"]["changes"] > 1000
    assert scheduler.end(signal.SIGINT) == 0


def test_fork_storm(guest: Guest, start: Start) -> None:
    """Four shells fork and reap processes as fast as they can."""
    scheduler = start("scx_simple").wait_enabled()
    shell = "n=0; while [ $n -lt 500 ]; do (:); n=$((n + 1)); done"
    shells = [guest.spawn(f"shell{number}", shell) for number in range(4)]
    assert [process.wait(TIMEOUT_S) for process in shells] == [0] * 4
    assert scheduler.end(signal.SIGINT) == 0


def test_interval_zero_prints_nothing(guest: Guest, start: Start) -> None:
    scheduler = start("scx_simple", "--interval", "0").wait_enabled()
    guest.run(["sleep", "2"]).check()
    assert scheduler.end(signal.SIGINT) == 0
    assert scheduler.process.stdout() == ""


# This must be the last test of its guest: see test_ten_thousand_tasks() in test_scx_rlfifo.py.
@pytest.mark.once
def test_two_thousand_tasks(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_simple").wait_enabled()
    load("--hogs", "4", "--sleepers", "2000", "--sleep-us", "1000000", "--forks-per-s", "0")
    count = "ls -d /proc/*/task/* | wc -l"
    wait_for("all tasks exist", lambda: int(guest.run(count, is_urgent=True).stdout) > 2000)
    scheduler.wait_lines(3)
    assert scheduler.end(signal.SIGINT) == 0
