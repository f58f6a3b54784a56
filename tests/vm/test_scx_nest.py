# SPDX-License-Identifier: GPL-2.0-only
"""scx_nest on a real kernel."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import pytest
from loads import MIXED, QUIET, finished
from recorder import Record
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    Load,
    Scheduler,
    SetCpu,
    Start,
    counters,
    ops,
    state,
    wait_for,
)
from slices import check_slices
from vm.guest import Guest


def wait_until(scheduler: Scheduler, what: str, condition: Callable[[dict], bool]) -> None:
    """Waits until a line of statistics fulfils the condition."""
    wait_for(what, lambda: condition(counters(scheduler.wait_lines(1)[-1])))


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_nest", "--interval", "0.5").wait_enabled()
    assert ops(guest) == "nest"
    nr_cpus = len(guest.topology.online)
    # Wait before the load starts, because under load a single CPU always finds a task.
    wait_until(scheduler, "a CPU finds no task", lambda now: now["not_consumed"] > 0)
    load("--hogs", str(nr_cpus * 2), *MIXED)
    first = counters(scheduler.wait_lines(1)[0])
    last = counters(scheduler.wait_lines(4)[-1])
    assert last["consumed"] > first["consumed"], "no task waited in the queue"
    assert 0 < last["nr_primary"] <= last["nr_primary"] + last["nr_reserve"] <= nr_cpus
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


def test_nest_grows_and_shrinks(guest: Guest, start: Start, load: Load) -> None:
    """With a hog for each CPU, all CPUs are primary. When the hogs end, the nest shrinks."""
    scheduler = start("scx_nest", "--interval", "0.2").wait_enabled()
    hogs = load("--hogs", "4", *QUIET)
    wait_until(scheduler, "all CPUs are primary", lambda now: now["nr_primary"] == 4)
    hogs.signal(signal.SIGINT)
    wait_until(
        scheduler,
        "CPUs are demoted",
        lambda now: now["nr_primary"] <= 2 and now["callback_compacted"] > 0,
    )
    assert scheduler.end(signal.SIGINT) == 0


@STOPS_FAIR_SERVER_TWICE
def test_restart_keeps_the_options(guest: Guest, start: Start, load: Load, set_cpu: SetCpu) -> None:
    """After CPU hotplug, the options still apply. In scx_nest, -i is the impatience, not the
    interval of statistics. Without -v, libbpf prints nothing."""
    options = ("-i", "1", "-m", "0", "-I")
    scheduler = start("scx_nest", *options, "--interval", "0.2").wait_enabled()
    set_cpu(1, False)
    wait_for("it restarts", lambda: "restarting" in scheduler.process.stderr())
    scheduler.wait_enabled()
    load("--hogs", "1", *MIXED)
    wait_until(
        scheduler,
        "tasks are impatient",
        lambda now: now["task_impatient"] > 0 and now["wakeup_fully_idle_primary"] > 0,
    )
    last = counters(scheduler.wait_lines(1)[-1])
    assert last["nr_reserve"] == last["demoted_to_reserved"] == last["promoted_to_reserved"] == 0
    assert "libbpf" not in scheduler.process.stderr()
    assert scheduler.end(signal.SIGINT) == 0


def test_nest_that_could_not_grow_is_refused(guest: Guest) -> None:
    done = guest.run(["scx_nest", "-m", "0", "-i", "0"])
    assert (done.status, done.stderr.count("\n")) == (1, 1)
    assert "no wakeup would add a CPU to the primary nest" in done.stderr


def test_affinity_storm(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_nest").wait_enabled()
    storm = load("--movers", "24", "--hogs", "2", *QUIET, "--seconds", "2", "--json")
    assert finished(storm)["movers"]["changes"] > 300
    assert scheduler.end(signal.SIGINT) == 0


#: Each of NR shells starts processes one after the other, and waits for the end of each. Records
#: the runs of these processes and of the shells.
SEQUENCES = """
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
    sleep 0.1
    kill -0 $scheduler || exit 1
done
shells=
for shell in $(seq NR); do
    (while :; do (n=0; while [ $n -lt 300 ]; do n=$((n + 1)); done); done) & shells="$shells $!"
done
scx_switches --comm sh --seconds 1 --json
kill $shells
kill -INT $scheduler
wait $scheduler
"""

WINDOW_NS = 50_000_000


def recordings(printed: str) -> Iterable[list[Record]]:
    """The runs of each recording by scx_switches."""
    runs: list[Record] = []
    for line in re.findall(r"^\{.*\}$", printed, re.MULTILINE):
        record = json.loads(line)
        if record["type"] == "run":
            runs.append(record)
        else:
            yield runs
            runs = []


def share_of_two_cpus(runs: list[Record]) -> float:
    """The share of the recorded CPU time that was used on the two most used CPUs, which are chosen
    anew for each window of WINDOW_NS."""
    windows: dict[int, Counter] = defaultdict(Counter)
    for run in runs:
        windows[run["start_ns"] // WINDOW_NS][run["cpu"]] += run["ran_ns"]
    of_two = sum(ran for used in windows.values() for _, ran in used.most_common(2))
    return of_two / sum(run["ran_ns"] for run in runs)


@pytest.mark.parametrize("nr_busy", [1, 2])
def test_work_stays_on_half_of_the_cpus(replayed: Callable[[str], str], nr_busy: int) -> None:
    """One or two shells on four CPUs, each with one busy process at a time. Each process is a new
    task. The kernel's selection of idle CPUs, which scx_simple uses, spreads such tasks over all
    CPUs."""
    script = SEQUENCES.replace("NR", str(nr_busy))
    schedulers = ("scx_nest", "scx_simple")
    printed = replayed("".join(script.replace("SCHEDULER", name) for name in schedulers))
    nest, simple = map(share_of_two_cpus, recordings(printed))
    print(f"two CPUs of four: {nest:.3f} of the time, {simple:.3f} under scx_simple")
    assert nest > 0.8
    assert nest > simple + 0.1


def test_slices_have_the_requested_length(replayed: Callable[[str], str]) -> None:
    check_slices(replayed, "scx_nest --interval 0", [5000, 40000], nr_runs_min=15)
