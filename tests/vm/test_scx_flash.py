# SPDX-License-Identifier: GPL-2.0-only
"""scx_flash on a real kernel; more in test_deadlines.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from cgroups import FUNCTIONS, create, results
from figures import Replayed, measure, measure_all, record_runs, scx_load
from shares import shares
from vm import topology


def record_hogs(replayed: Replayed, scheduler: str, load: str) -> list[dict[str, Any]]:
    """The runs of the hogs of a load under a scheduler."""
    return record_runs(replayed, scheduler, load, "hog")


def test_shares_of_three_nice_values(replayed: Replayed) -> None:
    used_s = shares(replayed, "scx_flash", [0, 5, 10])
    print(used_s)
    # p->scx.weight of nice 0, 5 and 10.
    for used, weight in zip(used_s, (100, 33, 11), strict=True):
        assert used / sum(used_s) == pytest.approx(weight / 144, rel=0.05)


def test_cgroup_weights_count_for_each_task(replayed: Replayed) -> None:
    """Weights take effect at once when they change and when a task moves. The weight of a cgroup is
    not divided among its tasks."""
    commands = [FUNCTIONS, create({"one": 200, "two": 100}), "start scx_flash"]
    commands += ["hogs one 4", "hogs two 4", "sleep 0.5", "share 2 equal one two"]
    commands += ["echo 50 >one/cpu.weight", "share 2 changed one two"]
    commands += ["for task in $(head -n 2 one/cgroup.procs); do echo $task >two/cgroup.procs; done"]
    commands += ["share 2 moved one two"]
    commands += ["echo 100 >one/cpu.weight", "hogs one 10", "sleep 0.5", "share 2 flat one two"]
    commands += ["stop"]
    found = results(replayed("\n".join(commands)))
    print(found)
    assert found["equal"]["one"] == pytest.approx(2 / 3, rel=0.05)
    assert found["changed"]["one"] == pytest.approx(1 / 3, rel=0.05)
    # Two tasks of weight 50 remain beside six tasks of weight 100.
    assert found["moved"]["one"] == pytest.approx(1 / 7, rel=0.07)
    assert found["flat"]["one"] == pytest.approx(12 / 18, rel=0.05)


def test_task_that_is_alone_is_not_interrupted(replayed: Replayed) -> None:
    """With one hog per CPU, each hog continues at the end of its slice, without a context
    switch."""
    runs = record_hogs(replayed, "scx_flash", scx_load("--hogs 4 --seconds 60"))
    # Kernel threads still interrupt the hogs. With a context switch at the end of each slice, that
    # is, at each tick of 4 ms, there would be 500 runs on four CPUs in 0.5 s.
    assert len(runs) < 150


def turns(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns of tasks: successive runs of a task are joined."""
    joined: list[dict[str, Any]] = []
    for run in runs:
        if joined and joined[-1]["pid"] == run["pid"]:
            joined[-1]["ran_ns"] += run["ran_ns"]
        else:
            joined.append(dict(run))
    return joined


def test_round_robin_keeps_the_order(replayed: Replayed) -> None:
    """Three hogs share a CPU, and one of them has used far less CPU time than the other two. Each
    turn lasts for one slice, and the order does not change."""
    two, one = (scx_load(f"--hogs {count} --seconds {s}") for count, s in ((2, 2), (1, 60)))
    load = f"taskset 2 {two} >/dev/null & sleep 0.2; taskset 2 {one}"
    runs = turns(record_hogs(replayed, "scx_flash -R -s 10000", load))[1:-1]
    print([(run["pid"], run["ran_ns"]) for run in runs])
    order = [run["pid"] for run in runs]
    assert len(runs) > 10
    assert len(set(order)) == 3
    assert order[3:] == order[:-3]
    assert all(9_500_000 < run["ran_ns"] < 15_000_000 for run in runs)


def test_tickless_turns_end_only_if_others_wait(replayed: Replayed) -> None:
    hogs = scx_load("--hogs 2 --seconds 60")
    runs = turns(record_hogs(replayed, "scx_flash --tickless", f"taskset 2 {hogs}"))[1:-1]
    print([(run["pid"], run["ran_ns"]) for run in runs])
    assert len(runs) > 10
    # The hogs share a CPU. A turn ends at the next expiry of the timer, whose period is 10 ms.
    assert statistics.median(run["ran_ns"] for run in runs) < 15_000_000
    assert max(run["ran_ns"] for run in runs) < 25_000_000
    # On four CPUs, no task waits.
    assert len(record_hogs(replayed, "scx_flash --tickless", hogs)) < 20


def test_wakeup_throttle_delays_tasks_of_short_runs(
    replayed_on: Callable[[topology.Topology, str], str],
) -> None:
    """A pair that passes a byte back and forth is slowed down. The hogs get the CPU time that the
    pair does not use.

    The guest has only one CPU, because the emulator runs CPUs in turn: with several busy CPUs, a
    run of 10 us may take ten times as long, as guest time passes during the other CPUs' turns.
    """
    shape = topology.TOPOLOGIES["1cpu"]
    plain, throttled = (
        measure(
            lambda script: replayed_on(shape, script),
            f"scx_flash {option}",
            "--hogs 2 --pipes 1 --seconds 2",
        )[0]
        for option in ("", "--wakeup-throttle")
    )
    print(plain, throttled)
    assert throttled["pipes"]["round_trips_per_s"] < plain["pipes"]["round_trips_per_s"] / 3
    assert throttled["hogs"]["cpu_min_s"] > 1.1 * plain["hogs"]["cpu_max_s"]


def test_tickless_starves_no_task(replayed: Replayed) -> None:
    """A hog on each CPU, beside tasks that wake up, tasks that exit, and a pinned task."""
    rest = scx_load("--hogs 4 --sleepers 4 --forks-per-s 20 --seconds 3")
    pinned = scx_load("--hogs 1 --seconds 3")
    script = f"taskset 2 {pinned} & pinned=$!\n{rest}\nwait $pinned"
    figures, _ = measure_all(replayed, "scx_flash --tickless", script)
    (alone,) = (load for load in figures if load["hogs"]["count"] == 1)
    (mixed,) = (load for load in figures if load["hogs"]["count"] == 4)
    print(alone, mixed)
    assert alone["hogs"]["cpu_min_s"] > 0.8
    assert mixed["hogs"]["cpu_min_s"] > 0.8
    assert mixed["sleepers"]["lateness_max_us"] < 100_000
    assert mixed["forks"]["done"] > 20
