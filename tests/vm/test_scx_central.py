# SPDX-License-Identifier: GPL-2.0-only
"""scx_central on a real kernel."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loads import MIXED, QUIET, finished, hog_times_s, shares_beside_real_time
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    Load,
    Scheduler,
    SetCpu,
    Start,
    counters,
    ops,
    read,
    state,
    wait_disabled,
    wait_for,
)
from vm.guest import Guest
from vm.kernels import Kernel
from vm.topology import Topology


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_central", "-i", "0.5").wait_enabled()
    assert ops(guest) == "central"
    load("--hogs", str(len(guest.topology.online) * 2), *MIXED)
    first = counters(scheduler.wait_lines(1)[0])
    last = counters(scheduler.wait_lines(4)[-1])
    print(last)
    decided = "dispatch" if len(guest.topology.online) > 1 else "own"
    assert last["queued"] > first["queued"]
    assert last[decided] > first[decided]
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


def wait_central(scheduler: Scheduler, cpu: int) -> None:
    wait_for(
        f"CPU {cpu} decides",
        lambda: counters(scheduler.wait_lines(1)[-1]).get("central_cpu") == cpu,
    )


def test_timer_decides_beside_a_real_time_task(guest: Guest, start: Start, load: Load) -> None:
    """While a real-time task runs on the central CPU, the hogs share the other CPUs."""
    scheduler = start("scx_central", "-c", "1").wait_enabled()
    nr_cpus = len(guest.topology.online)
    hogs = load("--hogs", str(nr_cpus), *QUIET, "--seconds", "3600", "--json")
    (shares,) = shares_beside_real_time(guest, [(hogs, nr_cpus)], cpu=1)
    print(shares)
    assert sum(shares) > 0.8 * (nr_cpus - 1)
    assert scheduler.end(signal.SIGINT) == 0


@STOPS_FAIR_SERVER_TWICE
def test_its_cpu_goes_offline_and_comes_back(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    """The scheduler restarts with its options. Without -v, libbpf prints nothing."""
    scheduler = start("scx_central", "-c", "2", "-i", "0.2").wait_enabled()
    load("--hogs", "6", *MIXED)
    wait_central(scheduler, 2)
    set_cpu(2, False)
    wait_central(scheduler, 0)
    assert "scx_central: CPU 2 is offline: CPU 0 decides\n" in scheduler.process.stderr()
    set_cpu(2, True)
    wait_central(scheduler, 2)
    assert "libbpf" not in scheduler.process.stderr()
    assert scheduler.end(signal.SIGINT) == 0


@pytest.mark.parametrize("cpu", ["9", "1"])
def test_cpu_that_is_not_online_is_refused(guest: Guest, set_cpu: SetCpu, cpu: str) -> None:
    set_cpu(1, False)
    done = guest.run(["scx_central", "--cpu", cpu])
    assert (done.status, done.stderr) == (
        1,
        f"scx_central: --cpu {cpu}: this CPU is not online, see /sys/devices/system/cpu/online\n",
    )


def test_tasks_bound_to_each_cpu_run(guest: Guest, start: Start, load: Load) -> None:
    """Two hogs on each CPU, the central CPU included. The hogs of a CPU take turns, which needs the
    timer."""
    start("scx_central", "-i", "0", "-s", "5000").wait_enabled()
    hogs = [load("--hogs", "2", *QUIET, through=f"taskset {1 << cpu:x}") for cpu in range(4)]
    wait_for(
        "each hog runs",
        lambda: all(
            len(times_s := hog_times_s(guest, pair)) == 2 and min(times_s) > 0.1 for pair in hogs
        ),
    )
    assert state(guest) == "enabled"


def test_affinity_storm(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_central").wait_enabled()
    storm = load("--movers", "24", "--hogs", "2", *QUIET, "--seconds", "2", "--json")
    assert finished(storm)["movers"]["changes"] > 300
    assert scheduler.end(signal.SIGINT) == 0


#: Six hogs on four CPUs, so that hogs wait and cannot be divided equally among the CPUs.
SIX_HOGS = """
scx_central -i 0 >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
    sleep 0.1
    kill -0 $scheduler || exit 1
done
scx_load --hogs 6 --sleepers 0 --pipes 0 --forks-per-s 0 --seconds 3 --json
kill -INT $scheduler
wait $scheduler
"""


def test_hogs_take_turns_and_no_cpu_idles(replayed: Callable[[str], str]) -> None:
    printed = replayed(SIX_HOGS)
    (figures,) = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    cpu_s = json.loads(figures)["hogs"]["cpu_s"]
    print(cpu_s)
    assert min(cpu_s) > 0.8 * max(cpu_s)
    assert sum(cpu_s) > 0.95 * 4 * 3


#: Prints the uptime in s and the number of timer interrupts of each CPU, at the beginning and at
#: the end of 3 s.
TICKS = """
taskset 0xe scx_load --hogs 3 --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null & load=$!
sleep 1
for reading in before after; do
    cut -d " " -f 1 /proc/uptime
    grep LOC /proc/interrupts
    [ $reading = after ] || sleep 3
done
kill -INT $load
wait $load
"""


#: The clock event device of CPU 0. On a slow host, the kernel may consider the local APIC timer
#: unreliable during boot; then it cannot stop the tick of any CPU.
CLOCK = "/sys/devices/system/clockevents/clockevent0/current_device"


@pytest.fixture
def tickless(kernel: Kernel, shape: Topology, programs: list[Path]) -> Iterator[Guest]:
    """A guest whose kernel can stop the tick of all CPUs except CPU 0."""
    named = ("scx_central", "scx_simple", "scx_load")
    wanted = [program for program in programs if program.name in named]
    for _ in range(3):
        with Guest(kernel, shape, programs=wanted, kernel_args=["nohz_full=1-3"]) as machine:
            if read(machine, "/sys/devices/system/cpu/nohz_full") != "1-3":
                pytest.skip("this kernel cannot stop the tick (CONFIG_NO_HZ_FULL)")
            if read(machine, CLOCK).startswith("lapic"):
                yield machine
                return
    pytest.skip("the emulator is too slow for the kernel to use the local timers")


def ticks_per_s(guest: Guest, *command: str) -> float:
    """Timer interrupts per second of a CPU that a hog uses: the average of CPUs 1 to 3."""
    scheduler = Scheduler(guest, *command).wait_enabled()
    printed = guest.run(["taskset", "1", "sh", "-c", TICKS]).check().stdout
    assert scheduler.end(signal.SIGINT) == 0
    wait_disabled(guest)
    times_s = [float(word) for word in re.findall(r"^[\d.]+$", printed, re.MULTILINE)]
    ticks = [
        sum(int(word) for word in line.split())
        for line in re.findall(r"LOC:\s+\d+(.*)Local", printed)
    ]
    return (ticks[1] - ticks[0]) / (times_s[1] - times_s[0]) / 3


def test_other_cpus_have_no_tick(tickless: Guest) -> None:
    simple = ticks_per_s(tickless, "scx_simple", "-i", "0")
    central = ticks_per_s(tickless, "scx_central", "-i", "0")
    print(f"{central:.1f} ticks/s on each other CPU, {simple:.1f} under scx_simple")
    assert central < simple / 10
