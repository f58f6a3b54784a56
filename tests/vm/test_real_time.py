# SPDX-License-Identifier: GPL-2.0-only
"""Tasks of a scheduler beside a real-time task, which takes their CPU."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable

import pytest
from figures import record_runs
from loads import QUIET, share_min, shares_beside_real_time
from sched_ext import Load, Start
from vm.guest import Guest
from vm.kernels import Kernel
from vm.topology import TOPOLOGIES, Topology

#: Schedulers without ops.cpu_release(): their tasks leave a CPU only if the kernel has
#: SCX_ENQ_IMMED.
SINCE_IMMED = ["scx_central", "scx_fifo", "scx_flatcg", "scx_nest", "scx_simple"]
IMMED_SINCE = (7, 2)

ALWAYS = ["scx_bpfland", "scx_flash", "scx_lavd", "scx_rlfifo", "scx_rustland", "scx_rusty"]


@pytest.mark.parametrize("scheduler", [*ALWAYS, *SINCE_IMMED])
def test_tasks_leave_a_cpu_with_a_real_time_task(
    guest: Guest, kernel: Kernel, start: Start, load: Load, icount: bool, scheduler: str
) -> None:
    """A task that the real-time task preempts continues on another CPU."""
    if scheduler in SINCE_IMMED and kernel.version < IMMED_SINCE:
        pytest.skip("the kernel has no SCX_ENQ_IMMED")
    nr_cpus = len(guest.topology.online)
    process = start(scheduler).wait_enabled()
    hogs = load("--hogs", str(nr_cpus - 1), *QUIET, "--seconds", "3600", "--json")
    (shares,) = shares_beside_real_time(guest, [(hogs, nr_cpus - 1)])
    print(shares)
    assert min(shares) > share_min(icount)
    assert process.end(signal.SIGINT) == 0


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
