# SPDX-License-Identifier: GPL-2.0-only
"""scx_prev on a real kernel."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable

import pytest
from figures import scx_load
from loads import MIXED, QUIET, finished
from sched_ext import Load, Start, counters, ops, state, wait_for
from shares import NICE_0_TO_5, shares
from vm.guest import Guest
from vm.topology import TOPOLOGIES, Topology


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_prev", "-i", "0.5").wait_enabled()
    assert ops(guest) == "prev"
    nr_cpus = len(guest.topology.online)
    if nr_cpus > 1:
        # Wait before the load starts, because the load leaves no CPU idle.
        wait_for(
            "a previous CPU is idle",
            lambda: counters(scheduler.wait_lines(1)[-1])["prev_cpu"] > 0,
        )
    load("--hogs", str(nr_cpus * 2), *MIXED)
    first = counters(scheduler.wait_lines(1)[0])
    last = counters(scheduler.wait_lines(4)[-1])
    assert last["queued"] > first["queued"]
    # With a single CPU, the kernel does not call ops.select_cpu().
    assert (last["select_fail"] > first["select_fail"]) == (nr_cpus > 1)
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


def test_affinity_storm(guest: Guest, start: Start, load: Load) -> None:
    """The affinity of tasks changes, so that they may no longer use their previous CPU."""
    scheduler = start("scx_prev").wait_enabled()
    storm = load("--movers", "24", "--hogs", "2", *QUIET, "--seconds", "2", "--json")
    assert finished(storm)["movers"]["changes"] > 300
    assert scheduler.end(signal.SIGINT) == 0


def test_cpu_is_shared_by_weight(replayed: Callable[[str], str]) -> None:
    heavy_s, light_s = shares(replayed, "scx_prev", [0, 5])
    print(heavy_s / light_s)
    assert heavy_s / light_s == pytest.approx(NICE_0_TO_5, rel=0.1)


#: A hog runs on CPU 0. In each of five rounds, a task that sleeps often is moved to CPU 1, the
#: other thread of the hog's core, and then may run anywhere. If a kernel thread runs on CPU 1 when
#: the task wakes up, the task leaves CPU 1 for the rest of the round. The shell and its commands
#: stay on another core.
BESIDE_HOG = f"""
taskset -p c $$ >/dev/null
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
taskset 1 {scx_load("--hogs 1 --seconds 60")} >/dev/null & hog=$!
{scx_load("--hogs 0 --sleepers 1 --seconds 60")} >/dev/null & sleeper=$!
until grep -q sleeper /proc/$sleeper/task/*/comm; do sleep 0.1; done
task=$(grep -l sleeper /proc/$sleeper/task/*/comm | cut -d/ -f5)
scx_switches --pid $task --seconds 1.5 --json & record=$!
for round in 1 2 3 4 5; do
    taskset -p 2 $task >/dev/null
    sleep 0.02
    taskset -p ff $task >/dev/null
    sleep 0.2
done
wait $record
kill -INT $hog $sleeper
wait $hog && wait $sleeper || exit 1
kill -INT $scheduler
wait $scheduler
"""


def test_task_stays_on_its_cpu_beside_a_busy_sibling(
    replayed_on: Callable[[Topology, str], str],
) -> None:
    """With the kernel's selection of idle CPUs, which scx_simple uses, the task moves to a fully
    idle core."""
    schedulers = ("scx_prev", "scx_simple")
    script = "".join(BESIDE_HOG.replace("SCHEDULER", name) for name in schedulers)
    cpus, simple_cpus = Counter(), Counter()
    into = [cpus, simple_cpus]
    for line in re.findall(r"^\{.*\}$", replayed_on(TOPOLOGIES["smt"], script), re.MULTILINE):
        record = json.loads(line)
        if record["type"] == "summary":
            into.pop(0)
        else:
            into[0][record["cpu"]] += 1
    print(f"runs by CPU: {dict(cpus)}, under scx_simple {dict(simple_cpus)}")
    assert min(cpus.total(), simple_cpus.total()) > 100
    assert cpus[1] > 0.5 * cpus.total()
    assert simple_cpus[1] < 0.25 * simple_cpus.total()
