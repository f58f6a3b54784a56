# SPDX-License-Identifier: GPL-2.0-only
"""Shares of the CPUs by weight, in deterministic guests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from figures import Replayed, measure_all, scx_load

#: Six hogs on four CPUs, so that tasks wait. The hogs cannot be divided equally among the CPUs.
SCRIPT = """
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
scx_load --hogs 6 --sleepers 0 --pipes 0 --forks-per-s 0 --seconds 5 --json
kill -INT $scheduler
wait $scheduler
"""


@pytest.mark.parametrize(
    "scheduler",
    [
        "scx_bpfland",
        "scx_economy",
        "scx_flash",
        "scx_lavd",
        "scx_nest",
        "scx_prev",
        "scx_rustland",
        "scx_simple",
    ],
)
def test_equal_hogs_get_equal_shares(replayed: Callable[[str], str], scheduler: str) -> None:
    """In 5 s, each hog gets at least 0.97 of the CPU time of any other hog."""
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler))
    (figures,) = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    cpu_s = json.loads(figures)["hogs"]["cpu_s"]
    print(cpu_s)
    assert min(cpu_s) >= 0.97 * max(cpu_s)


@pytest.mark.parametrize(
    "scheduler",
    ["scx_bpfland", "scx_flash", "scx_lavd", "scx_rusty"],
)
def test_weights_count_beside_tasks_of_other_cpus(replayed: Replayed, scheduler: str) -> None:
    """Six hogs may use CPUs 0 and 1 only. On CPUs 2 and 3, a hog of nice 10 shares with two hogs of
    nice 0. The six hogs wait at the head of the queue that all CPUs share, although CPUs 2 and 3
    cannot take them."""
    loads = (("3", "--hogs 6"), ("c", "--hogs 3 --hog-nices 0,0,10"))
    first, second = (f"taskset {mask} {scx_load(f'{hogs} --seconds 3')}" for mask, hogs in loads)
    script = f"{first} & other=$!\n{second}\nwait $other"
    figures, _ = measure_all(replayed, scheduler, script)
    (cpu_s,) = (load["hogs"]["cpu_s"] for load in figures if load["hogs"]["count"] == 3)
    print(cpu_s)
    # By weight, the hog of nice 10 would get 0.05 of the two CPUs, 0.3 s.
    assert 0.1 < cpu_s[2] < 0.6
    assert min(cpu_s[:2]) > 2.5


@pytest.mark.parametrize("scheduler", ["scx_bpfland", "scx_flash", "scx_lavd", "scx_rusty"])
def test_pinned_task_gets_its_share_beside_tasks_of_other_cpus(
    replayed: Replayed, scheduler: str
) -> None:
    """Eight hogs may use CPUs 0 and 1 only. Two hogs may use CPUs 2 and 3, and one is pinned to CPU
    2: the three share two CPUs."""
    loads = (("3", "--hogs 8"), ("c", "--hogs 2"), ("4", "--hogs 1"))
    script = "".join(
        f'taskset {mask} {scx_load(f"{hogs} --seconds 3")} >/tmp/{mask} & loads="$loads $!"\n'
        for mask, hogs in loads
    )
    script += "wait $loads\ncat /tmp/3 /tmp/c /tmp/4"
    figures, _ = measure_all(replayed, scheduler, script)
    cpu_s = [load["hogs"]["cpu_s"] for load in figures]
    print(cpu_s)
    # Each of the three hogs on CPUs 2 and 3 is entitled to 2 s: two CPUs for 3 s, divided by 3.
    assert cpu_s[2][0] > 1.65


#: Changes the nice values of three running hogs, which are alone on their CPUs, and prints the
#: debug dump of the scheduler about two slices later.
RENICE = f"""
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
{scx_load("--hogs 3 --seconds 2")} >/dev/null & load=$!
echo 1 >/sys/kernel/tracing/events/sched_ext/sched_ext_dump/enable
sleep 0.3
for task in /proc/$load/task/*; do
    grep -q hog $task/comm && renice -n 5 ${{task##*/}}
done
sleep 0.04
echo D >/proc/sysrq-trigger
sleep 0.1
cat /sys/kernel/tracing/trace
wait $load
kill -INT $scheduler
wait $scheduler
"""


@pytest.mark.parametrize(
    "scheduler",
    [
        "scx_bpfland",
        "scx_economy",
        "scx_flash",
        "scx_lavd",
        "scx_prev",
        "scx_rusty",
        "scx_simple",
    ],
)
def test_weights_of_running_tasks_may_change(replayed: Replayed, scheduler: str) -> None:
    """The sum of the weights of all runnable tasks has the new weight of each hog, although the
    kernel does not enqueue a running task when its nice value changes."""
    printed = replayed(RENICE.replace("SCHEDULER", scheduler))
    weights = [int(sum_) for sum_ in re.findall(r"(?:runnable_|, )weight[ =](\d+)", printed)]
    print(weights)
    # A hog has a weight of 33. Any other task that is runnable meanwhile has a weight of 100.
    assert sum(weights) % 100 == 99
