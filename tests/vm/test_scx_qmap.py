# SPDX-License-Identifier: GPL-2.0-only
"""scx_qmap on a real kernel."""

from __future__ import annotations

import errno
import json
import re
import signal
from collections.abc import Callable

import pytest
from loads import QUIET, SHARE_MIN, end_load, finished, shares_beside_real_time
from recorder import Record
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    TIMEOUT_S,
    Load,
    Scheduler,
    SetCpu,
    Start,
    counters,
    ops,
    state,
    wait_for,
)
from vm import topology
from vm.guest import Guest

#: A nice value for each of the five queues, and the maximum number of tasks that each queue serves
#: in a turn.
NICES = "10,5,0,-5,-10"
RATIO = [1, 2, 4, 8, 16]


def last(scheduler: Scheduler) -> dict[str, int]:
    """The numbers of the next line of statistics, by name."""
    return counters(scheduler.wait_lines(1)[-1])


def served(line: dict[str, int]) -> list[int]:
    return [line[f"queue{number}"] for number in range(5)]


def hogs_of_all_classes(number: int) -> list[str]:
    """Options of scx_load: this many hogs for each queue."""
    return ["--hogs", str(5 * number), "--hog-nices", NICES, *QUIET]


@pytest.mark.every_topology
def test_queues_are_served_in_ratio(guest: Guest, start: Start, load: Load) -> None:
    """Compares numbers of dispatches, which do not depend on the speed of the CPUs. Each enqueue
    ends in a dispatch or a dequeue."""
    scheduler = start("scx_qmap", "-i", "0.2", "-s", "2000").wait_enabled()
    assert ops(guest) == "qmap"
    # For each queue, two hogs more than there are CPUs, so that no queue is ever empty.
    load(*hogs_of_all_classes(len(guest.topology.online) + 2))
    wait_for("all queues are used", lambda: all(served(last(scheduler))))
    before = last(scheduler)
    wait_for("some rounds", lambda: last(scheduler)["queue0"] > before["queue0"] + 25)
    after = last(scheduler)
    shares = [b - a for a, b in zip(served(before), served(after), strict=True)]
    print(shares, after)
    assert [share / shares[0] for share in shares] == pytest.approx(RATIO, rel=0.15)
    assert after["dispatched"] == pytest.approx(sum(served(after)), rel=0.01)
    ended = after["dispatched"] + after["dequeued"]
    assert after["enqueued"] == pytest.approx(ended + after["waiting"], rel=0.02)
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


RUN = """
run() {
    scx_qmap -i 0 -s 6000 $1 >/dev/null & scheduler=$!
    until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
    shift
    nice -n -20 scx_load "$@" --pipes 0 --forks-per-s 0 --json || exit 1
    kill -INT $scheduler
    wait $scheduler || exit 1
}
"""


def figures(replayed_on: Callable[[topology.Topology, str], str], *runs: str) -> list[Record]:
    """The figures of loads on one CPU. Each of `runs` has the arguments of the shell function
    `run`: an option of scx_qmap, which may be '', then options of scx_load."""
    script = "\n".join([RUN, *(f"run {run}" for run in runs)])
    printed = replayed_on(topology.find("1cpu"), script)
    found = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    return [json.loads(text) for text in found]


def test_cpu_is_shared_in_ratio(replayed_on: Callable[[topology.Topology, str], str]) -> None:
    """Each queue has one task, so the queue is empty while the task runs. The queue of nice 0 is
    left out, because it also serves kernel threads and the scheduler's process."""
    [load] = figures(replayed_on, f"'' --hogs 5 --hog-nices {NICES} --sleepers 0 --seconds 4")
    times_s = load["hogs"]["cpu_s"]
    shares = [time_s / times_s[0] for time_s in times_s]
    assert shares == sorted(shares)
    del shares[2]
    assert shares == pytest.approx([1, 2, 8, 16], rel=0.15)


def test_boosted_tasks_preempt(replayed_on: Callable[[topology.Topology, str], str]) -> None:
    """With --boost, a sleeper of nice -20 preempts hogs of nice 0."""
    load = "--hogs 3 --hog-nices 0 --sleepers 1 --seconds 1"
    plain, boosted = figures(replayed_on, f"'' {load}", f"--boost {load}")
    late_us = [run["sleepers"]["lateness_p50_us"] for run in (plain, boosted)]
    assert late_us[1] < late_us[0] / 10
    # The hogs still get most of the CPU time.
    assert boosted["hogs"]["cpu_min_s"] > 0.2 * boosted["elapsed_s"]


#: A line that --print-shared has printed, if it lists a task of the load.
SHARED_TASK = re.compile(r"^shared DSQ:.* (mover|hog)\[\d+\]")


def test_tasks_that_move_leave_stale_entries(start: Start, load: Load) -> None:
    """Threads change the affinity of other threads that wait in a queue. The queues are short, so
    some threads do not find room."""
    options = ("-i", "0.5", "--queue-len", "8", "--batch", "4", "--print-shared")
    scheduler = start("scx_qmap", *options).wait_enabled()
    storm = load("--movers", "24", "--hogs", "4", *QUIET, "--seconds", "3600", "--json")
    # Most tasks leave the shared DSQ at once, so it may take a while until a line lists one.
    wait_for("it lists a task", lambda: any(map(SHARED_TASK.search, scheduler.lines())))
    scheduler.wait_lines(4)
    storm.signal(signal.SIGINT)
    assert finished(storm)["movers"]["changes"] > 300
    counted = counters([line for line in scheduler.lines() if "=" in line][-1])
    print(counted)
    assert counted["dequeued"] > 0
    assert counted["stale"] > 0
    assert counted["overflow"] > 0
    assert scheduler.end(signal.SIGINT) == 0


@STOPS_FAIR_SERVER_TWICE
def test_hotplug_under_load_loses_no_task(start: Start, load: Load, set_cpu: SetCpu) -> None:
    """The scheduler continues without a restart."""
    scheduler = start("scx_qmap", "-i", "0.2").wait_enabled()
    mixed = load("--hogs", "6", "--sleepers", "8", "--pipes", "2", "--forks-per-s", "10")
    for online in (False, True):
        set_cpu(1, online)
        scheduler.wait_lines(2)
    assert "restarting" not in scheduler.process.stderr()
    end_load(mixed)
    assert scheduler.end(signal.SIGINT) == 0


def test_tasks_leave_a_cpu_with_a_real_time_task(guest: Guest, start: Start, load: Load) -> None:
    """A task that is preempted by a real-time task continues on another CPU."""
    nr_cpus = len(guest.topology.online)
    scheduler = start("scx_qmap", "-i", "0.5").wait_enabled()
    hogs = load("--hogs", str(nr_cpus - 1), *QUIET, "--seconds", "3600", "--json")
    (shares,) = shares_beside_real_time(guest, [(hogs, nr_cpus - 1)])
    print(shares)
    assert min(shares) > SHARE_MIN
    assert last(scheduler)["reenqueued"] > 0
    assert scheduler.end(signal.SIGINT) == 0


#: With core scheduling, 6.12 warns if a CPU is marked to keep prev (SCX_RQ_BAL_KEEP), but prev has
#: changed to another class by the time the core picks its tasks. The kernel then ignores the mark.
KEEPS_ANOTHER_CLASS = pytest.mark.kernel_complains(
    r"WARNING: .* pick_task_scx\+|Call Trace:", series="6.12"
)


@KEEPS_ANOTHER_CLASS
@pytest.mark.every_topology
def test_cores_are_shared_in_order(guest: Guest, start: Start, load: Load) -> None:
    """Of two groups of tasks that may not share a core, neither gets twice as much CPU time as the
    other."""
    if guest.topology.threads == 1:
        pytest.skip("core scheduling needs cores with several threads")
    if not guest.run("scx_attrs core true").ok:
        pytest.skip("the kernel has no core scheduling")
    scheduler = start("scx_qmap", "-i", "0.5").wait_enabled()
    hogs = ("--hogs", str(len(guest.topology.online)), *QUIET, "--seconds", "3", "--json")
    loads = [load(*hogs, through="scx_attrs core") for _ in range(2)]
    one_s, other_s = [finished(process)["hogs"]["cpu_mean_s"] for process in loads]
    assert 0.5 < one_s / other_s < 2
    assert last(scheduler)["core_picked"] > 0
    assert scheduler.end(signal.SIGINT) == 0


EJECTED = pytest.mark.kernel_complains(r"sched_ext: .*\bqmap\b|runnable task stall|Call Trace:")

FAILURES = {
    "error": (["--error-after", "100"], "scx_bpf_error (failing after 100 enqueues as asked)"),
    "user": (["--stall-user", "20"], "runnable task stall"),
    "kernel": (["--stall-kernel", "20"], "runnable task stall"),
    "loop": (["--loop-after", "100", "--no-dump"], "runnable task stall"),
}


@EJECTED
@pytest.mark.parametrize("failure", FAILURES)
def test_failure_on_request(guest: Guest, start: Start, load: Load, failure: str) -> None:
    options, message = FAILURES[failure]
    # For the endless loop, tasks have to wait in the queues. A CPU in the loop sometimes looks
    # idle, so sleepers are dispatched directly, and do not fill the queues. Hogs fill them.
    hogs = "8" if failure == "loop" else "0"
    load("--hogs", hogs, "--sleepers", "4", "--pipes", "0", "--forks-per-s", "0")
    scheduler = start("scx_qmap", *options)
    assert scheduler.end() == 2
    stderr = scheduler.process.stderr()
    assert stderr.splitlines()[-1].startswith(f"EXIT: {message}"), stderr
    assert ("qmap: queue 2: " in stderr) == ("--no-dump" not in options)
    assert ("qmap: weight=100 queue=2 " in stderr) == ("--no-dump" not in options)
    assert state(guest) == "disabled"


def test_disallowed_process_cannot_request_the_class(guest: Guest, start: Start) -> None:
    refused, allowed = (guest.spawn(f"ext{n}", ["scx_attrs", "ext"]) for n in range(2))
    for process in (refused, allowed):
        wait_for("it is ready", lambda process=process: process.stdout() == "ready\n")
    scheduler = start("scx_qmap", "--partial", "--disallow", str(refused.pid)).wait_enabled()
    for process in (refused, allowed):
        process.signal(signal.SIGUSR1)
        assert process.wait(TIMEOUT_S) == 0
    assert refused.stdout() == f"ready\n{errno.EACCES}\n"
    assert allowed.stdout() == "ready\n0\n"
    assert scheduler.end(signal.SIGINT) == 0
