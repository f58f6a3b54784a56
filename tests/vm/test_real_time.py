# SPDX-License-Identifier: GPL-2.0-only
"""Tasks of a scheduler beside a task of a higher class, which takes their CPU."""

from __future__ import annotations

import itertools
import json
import re
import signal
from collections.abc import Callable

import pytest
from figures import record_runs
from loads import QUIET, SHARE_MIN, shares_beside_real_time
from sched_ext import Load, Start
from vm.guest import Guest
from vm.kernels import Kernel
from vm.topology import TOPOLOGIES, Topology

#: Schedulers without ops.cpu_release(). If a real-time task takes a CPU, their tasks leave this CPU
#: only on kernels with SCX_ENQ_IMMED.
SINCE_IMMED = ["scx_central", "scx_fifo", "scx_flatcg", "scx_nest", "scx_prev", "scx_simple"]
IMMED_SINCE = (7, 2)

ALWAYS = [
    "scx_bpfland",
    "scx_economy",
    "scx_flash",
    "scx_lavd",
    "scx_rlfifo",
    "scx_rustland",
    "scx_rusty",
]


@pytest.mark.parametrize("scheduler", [*ALWAYS, *SINCE_IMMED])
def test_tasks_leave_a_cpu_with_a_real_time_task(
    guest: Guest, kernel: Kernel, start: Start, load: Load, scheduler: str
) -> None:
    """A task that the real-time task preempts continues on another CPU."""
    if scheduler in SINCE_IMMED and kernel.version < IMMED_SINCE:
        pytest.skip("the kernel has no SCX_ENQ_IMMED")
    nr_cpus = len(guest.topology.online)
    process = start(scheduler).wait_enabled()
    hogs = load("--hogs", str(nr_cpus - 1), *QUIET, "--seconds", "3600", "--json")
    (shares,) = shares_beside_real_time(guest, [(hogs, nr_cpus - 1)])
    print(shares)
    assert min(shares) > SHARE_MIN
    assert process.end(signal.SIGINT) == 0


def test_tasks_leave_a_cpu_with_a_fair_task(guest: Guest, start: Start, load: Load) -> None:
    """With --partial, other tasks are in the fair class, which has priority over the ext class."""
    nr_hogs = len(guest.topology.online) - 1
    process = start("scx_rlfifo", "--partial").wait_enabled()
    hogs = load(
        "--hogs", str(nr_hogs), *QUIET, "--seconds", "3600", "--json", through="scx_attrs ext"
    )
    (shares,) = shares_beside_real_time(guest, [(hogs, nr_hogs)], through=())
    print(shares)
    assert min(shares) > SHARE_MIN
    assert process.end(signal.SIGINT) == 0


#: Real-time tasks that compute for 40 ms of every 50 ms on three of four CPUs. Records the policy
#: thread.
BESIDE_REAL_TIME = """
scx_rlfifo & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
quiet="--pipes 0 --forks-per-s 0"
scx_load --hogs 2 --sleepers 8 --sleep-us 1000 $quiet >/dev/null & load=$!
bursts=
for mask in 2 4 8; do
    chrt -f 50 taskset $mask scx_load --hogs 0 --sleepers 1 --sleep-us 10000 --work-us 40000 \\
        --seconds 60 $quiet >/dev/null & bursts="$bursts $!"
done
scx_switches --pid $scheduler --seconds 4 --json
kill -INT $load $bursts
wait $load $bursts
kill -INT $scheduler
wait $scheduler
"""


def test_policy_thread_leaves_a_cpu_with_a_real_time_task(
    replayed: Callable[[str], str], kernel: Kernel
) -> None:
    """The policy thread leaves at once. It does not wait until the watchdog of the BPF side finds
    that the CPU is taken."""
    if kernel.version < IMMED_SINCE:
        pytest.skip("the kernel has no SCX_ENQ_IMMED")
    printed = replayed(BESIDE_REAL_TIME)
    lines = [json.loads(line) for line in re.findall(r"^\{.*\}$", printed, re.MULTILINE)]
    runs = sorted((r for r in lines if r["type"] == "run"), key=lambda run: run["start_ns"])
    waits_ms = [
        (after["start_ns"] - before["start_ns"] - before["ran_ns"]) / 1e6
        for before, after in itertools.pairwise(runs)
        if before["end"] == "preempted"
    ]
    print(f"preempted {len(waits_ms)} times, waited {sorted(waits_ms)[-10:]} ms")
    assert waits_ms, "it was never preempted"
    assert max(waits_ms) < 5


ONE_CPU = TOPOLOGIES["1cpu"]
LOAD = "scx_load --pipes 0 --forks-per-s 0"
#: Three hogs, and a real-time task that runs briefly every 3 ms.
BESIDE = (
    f"sh -c 'chrt -f 50 {LOAD} --hogs 0 --sleepers 1 --sleep-us 3000 --seconds 2 & "
    f"exec {LOAD} --hogs 3 --sleepers 0 --seconds 3600'"
)


@pytest.mark.parametrize(
    "command",
    [
        "scx_fifo",
        "scx_flash --rr-sched --slice-us 20000",
        "scx_rusty --fifo-sched --slice-us-underutil 20000 --slice-us-overutil 20000",
        "scx_simple -f",
    ],
)
def test_a_brief_real_time_task_costs_no_turn(
    replayed_on: Callable[[Topology, str], str], command: str
) -> None:
    """In FIFO order, a task that is preempted continues with the rest of its slice."""
    runs = record_runs(lambda script: replayed_on(ONE_CPU, script), command, BESIDE, "hog", 1)
    tids = [run["pid"] for run in runs]
    changes = sum(tid != following for tid, following in itertools.pairwise(tids))
    print(f"{changes} changes in {len(tids)} runs")
    assert len(set(tids)) == 3
    assert len(runs) > 200, "no real-time task"
    # Slices are at least six times as long as the sleeps of the real-time task.
    assert changes < 0.4 * len(tids)
