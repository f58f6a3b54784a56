# SPDX-License-Identifier: GPL-2.0-only
"""Loads in which a scheduler could let tasks wait until the kernel's watchdog ejects it, in
deterministic guests."""

from __future__ import annotations

import json
import re

import pytest
from figures import SCRIPT, Replayed, scx_load
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS

#: Schedulers with options that change how a CPU is selected on wakeup (--builtin-idle), how long
#: slices are while a pinned task waits (0: no limit), or in which order the shared DSQ is served.
WITH_OPTIONS = (
    *("scx_lavd --pinned-slice-us 0", "scx_rlfifo --builtin-idle", "scx_rustland --builtin-idle"),
    *("scx_simple --cgroups", "scx_simple --fifo"),
)

#: Two tasks that wake each other by pipes have run on CPU 0 only, and may then use CPU 1, too. Two
#: other CPUs are idle. Prints the uptime, in s, before and after a pinned task runs on CPU 0.
SYNC = f"""
taskset 1 {scx_load("--pipes 1 --seconds 1")} >/tmp/pair & pair=$!
sleep 0.2
for thread in /proc/$pair/task/*; do taskset -p 3 ${{thread##*/}} >/dev/null; done
read before idle </proc/uptime
taskset 1 true
read after idle </proc/uptime
kill -INT $pair
wait $pair
echo "uptime $before $after"
"""


@pytest.mark.sampled
@pytest.mark.parametrize("scheduler", (*C_SCHEDULERS, *RUST_SCHEDULERS, *WITH_OPTIONS))
def test_sync_wakeups_do_not_keep_a_cpu(replayed: Replayed, scheduler: str) -> None:
    """While another CPU is idle, the kernel's idle CPU selection puts a wakee of a sync wakeup on
    the CPU of its waker, before all tasks that wait for this CPU."""
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler).replace("LOAD", SYNC))
    assert "enabled" in printed.splitlines(), printed
    ((before, after),) = re.findall("^uptime (.*) (.*)$", printed, re.MULTILINE)
    print(f"waited for {float(after) - float(before):.2f} s")
    # The uptime has a resolution of 10 ms. The pair would keep the CPU for 0.8 s.
    assert float(after) - float(before) <= 0.1


#: Two hogs on CPU 0. A task of nice -20 has slept for 6 s, and then computes for 5 s on the same
#: CPU. Prints the CPU times of the two hogs in ns when the task begins to compute, and 4 s later.
SLEEPER = f"""
taskset 1 {scx_load("--hogs 2 --seconds 60")} >/dev/null & hogs=$!
nice -n -20 taskset 1 sh -c 'sleep 6; exec {scx_load("--hogs 1 --seconds 5")}' >/dev/null & one=$!
used() {{
    for thread in /proc/$hogs/task/*; do
        grep -q hog $thread/comm && cut -d " " -f 1 $thread/schedstat
    done | tr "\\n" " "
    echo
}}
until grep -qs hog /proc/$one/task/*/comm; do sleep 0.05; done
used
sleep 4
used
wait $one
kill -INT $hogs
wait $hogs
"""


@pytest.mark.parametrize(
    "scheduler",
    ["scx_bpfland", "scx_economy", "scx_flash --slice-us-lag 1000000", "scx_lavd", "scx_rusty"],
)
def test_credit_of_a_heavy_sleeper_is_bounded(replayed: Replayed, scheduler: str) -> None:
    """The credit of a task is virtual time. For a task of a weight of 8668, 40 ms of virtual time
    are 3.5 s of CPU time."""
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler).replace("LOAD", SLEEPER))
    assert "enabled" in printed.splitlines(), printed
    lines = re.findall(r"^\d+ \d+ $", printed, re.MULTILINE)
    first, last = (sum(map(int, line.split())) / 1e6 for line in lines)
    print(f"the hogs ran for {last - first:.1f} ms in 4 s")
    # They may wait for about 1 s because of the credit, and for another second because of the
    # distance from their virtual times to their deadlines. After that, they are entitled to 22 ms
    # of CPU time per s.
    assert last - first > 3


@pytest.mark.parametrize(
    "scheduler", ["scx_bpfland --slice-min-us 1000000", "scx_flash --slice-us 1000000"]
)
def test_long_slices_shrink_if_many_tasks_wait(replayed: Replayed, scheduler: str) -> None:
    """Ten hogs wait for one CPU. Each hog ends when it first runs after 5 s have passed. With
    slices of 1 s, the last hogs would not run before that, and the load would take 9.7 s."""
    load = f"taskset 1 {scx_load('--hogs 10 --seconds 5')}"
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler).replace("LOAD", load))
    (text,) = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    figures = json.loads(text)
    print(figures["elapsed_s"], figures["hogs"]["cpu_s"])
    assert figures["elapsed_s"] < 8


#: Eight tasks sleep for 1 s, and then compute for 1 s of CPU time each. Eight hogs run until
#: shortly before the tasks wake up. Prints the CPU times of the tasks in ns, about 0.4 s after
#: they wake up.
POOL = f"""
{scx_load("--sleepers 8 --sleep-us 1000000 --work-us 1000000 --seconds 2")} >/dev/null & pool=$!
{scx_load("--hogs 8 --seconds 0.9")} >/dev/null
sleep 0.5
for thread in /proc/$pool/task/*; do
    grep -q sleeper $thread/comm && cut -d " " -f 1 $thread/schedstat
done
wait $pool
"""


@pytest.mark.parametrize(
    "scheduler",
    ["scx_bpfland", "scx_economy", "scx_flash", "scx_lavd", "scx_rusty", "scx_simple"],
)
def test_sleepers_on_idle_cpus_do_not_precede_the_others(
    replayed: Replayed, scheduler: str
) -> None:
    """Four of the tasks wake up on idle CPUs, without waiting in a queue. Their virtual times are
    far behind those of the hogs, but they share the CPUs with the other four."""
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler).replace("LOAD", POOL))
    assert "enabled" in printed.splitlines(), printed
    used_s = [int(text) / 1e9 for text in re.findall(r"^\d+$", printed, re.MULTILINE)]
    print(used_s)
    assert len(used_s) == 8
    assert min(used_s) > 0.45 * max(used_s)


@pytest.mark.parametrize(
    "scheduler",
    ["scx_bpfland", "scx_economy", "scx_flash", "scx_lavd", "scx_rusty", "scx_simple"],
)
def test_light_task_elsewhere_does_not_starve_pinned_tasks(
    replayed: Replayed, scheduler: str
) -> None:
    """A hog of nice 19 (weight 1) is alone on CPU 0. Its virtual time advances 100 times as fast as
    its CPU time. Two hogs are pinned to CPU 1."""
    light, pair = (scx_load(f"--hogs {hogs} --seconds 5") for hogs in (1, 2))
    load = f"nice -n 19 taskset 1 {light} >/dev/null & light=$!\ntaskset 2 {pair}\nwait $light"
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler).replace("LOAD", load))
    assert "enabled" in printed.splitlines(), printed
    (figures,) = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    cpu_s = json.loads(figures)["hogs"]["cpu_s"]
    print(cpu_s)
    assert min(cpu_s) > 0.8 * max(cpu_s)


#: A task that is pinned to CPU 3 sleeps for 0.5 s and then computes for 1 s. A hog has run on CPU 3
#: only, and may then use all CPUs.
DISPLACE = f"""
taskset 8 {
    scx_load("--sleepers 1 --sleep-us 500000 --work-us 1000000 --seconds 1")
} >/dev/null & pinned=$!
taskset 8 {scx_load("--hogs 1 --seconds 2")} >/tmp/free & free=$!
until grep -qs hog /proc/$free/task/*/comm; do sleep 0.01; done
for thread in /proc/$free/task/*; do taskset -p f ${{thread##*/}} >/dev/null; done
wait $pinned $free
cat /tmp/free
"""


@pytest.mark.sampled
@pytest.mark.parametrize("scheduler", (*C_SCHEDULERS, *RUST_SCHEDULERS, "scx_simple --fifo"))
def test_pinned_task_displaces_a_free_one(replayed: Replayed, scheduler: str) -> None:
    """At the end of its slice, the hog loses its CPU to the pinned task. It does not wait for this
    CPU, because other CPUs are idle."""
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler).replace("LOAD", DISPLACE))
    (figures,) = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    (cpu_s,) = json.loads(figures)["hogs"]["cpu_s"]
    print(cpu_s)
    # If the two tasks took turns on CPU 3, the hog would get about 1.5 s.
    assert cpu_s > 1.8
