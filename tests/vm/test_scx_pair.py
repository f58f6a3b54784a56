# SPDX-License-Identifier: GPL-2.0-only
"""scx_pair on a real kernel: a recording of context switches shows which tasks the CPUs of a pair
run at the same time."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

import pytest
from figures import Replayed, measure_all, scx_load
from loads import MIXED, QUIET, finished, hog_times_s, shares_beside_real_time
from recorder import Record, Recorder
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    TIMEOUT_S,
    Scheduler,
    SetCpu,
    Start,
    counters,
    ops,
    state,
    wait_for,
)
from vm.guest import Guest, Process
from vm.topology import Topology

CGROUPS = "/sys/fs/cgroup"
GROUPS = ("pair_a", "pair_b", "pair_c")
#: Names of a load's process before it is in its cgroup: those of the guest's agent, which forks it,
#: and of the programs that move it.
_OUTSIDE = ("scx_agent", "chrt", "sh")


@pytest.fixture
def groups(guest: Guest) -> Iterator[Sequence[str]]:
    """Cgroups with the cpu controller."""
    guest.run(f"echo +cpu >{CGROUPS}/cgroup.subtree_control").check()
    paths = [f"{CGROUPS}/{name}" for name in GROUPS]
    guest.run(["mkdir", *paths]).check()
    yield paths
    guest.run(["rmdir", *paths]).check()
    guest.run(f"echo -cpu >{CGROUPS}/cgroup.subtree_control").check()


def load_in(guest: Guest, group: str, *args: str, seconds: int = 4) -> Process:
    """Starts a load in a cgroup. The process first runs outside of the cgroup, under the names of
    _OUTSIDE. The sleep ends the run in which the process moves to the cgroup, so that all later
    runs are in the cgroup."""
    command = " ".join(["scx_load", "--seconds", str(seconds), "--json", *args])
    name = f"load_{group.rpartition('/')[2]}"
    return guest.spawn(name, f"echo $$ >{group}/cgroup.procs; sleep 0.1; exec {command}")


def overlaps(runs: list[Record], owners: dict[int, str], pairs: list[tuple[int, int]]) -> list[str]:
    """The overlaps of runs of two cgroups on a pair of CPUs, as text. `owners` has the cgroup of
    each process. Runs that end under a name of _OUTSIDE do not count."""
    found = []
    for one, other in pairs:
        own = [
            sorted(
                (run["start_ns"], run["stop_ns"], owners[run["tgid"]], run["comm"])
                for run in runs
                if run["cpu"] == cpu and run["tgid"] in owners and run["comm"] not in _OUTSIDE
            )
            for cpu in (one, other)
        ]
        at = 0
        for start_ns, stop_ns, group, comm in own[0]:
            while at < len(own[1]) and own[1][at][1] <= start_ns:
                at += 1
            for theirs in own[1][at:]:
                if theirs[0] >= stop_ns:
                    break
                if theirs[2] != group:
                    both_ns = min(stop_ns, theirs[1]) - max(start_ns, theirs[0])
                    found.append(f"{comm} of {group}, {theirs[3]} of {theirs[2]}: {both_ns} ns")
    return found


def siblings(shape: Topology) -> list[tuple[int, int]]:
    """The CPUs that scx_pair pairs by default."""
    if shape.threads == 2:
        return [(cpu, cpu + 1) for cpu in shape.online[::2]]
    half = (len(shape.possible) + 1) // 2
    return [(cpu, cpu + half) for cpu in shape.online if cpu + half in shape.online]


def check_pairs(
    guest: Guest,
    start: Start,
    groups: Sequence[str],
    pairs: list[tuple[int, int]],
    *args: str,
) -> None:
    """Records loads in several cgroups, and checks that no pair of CPUs runs two cgroups at
    once."""
    # The recorder is started first, so that its program on sched_switch runs before that of the
    # scheduler. As soon as the scheduler's program has run, the other CPU may run another cgroup,
    # and a recorder that ran later would see an overlap.
    recorder = Recorder(guest, "--json", "--ring-kib", "16384")
    scheduler = start("scx_pair", "-i", "0.5", *args).wait_enabled()
    assert ops(guest) == "pair"
    many = str(len(guest.topology.online))
    kinds = (("--hogs", many, *QUIET), ("--hogs", "1", *MIXED), ("--hogs", "2", *QUIET))
    loads = [load_in(guest, group, *kind) for group, kind in zip(groups, kinds, strict=True)]
    assert all(finished(process)["hogs"]["cpu_min_s"] > 0 for process in loads)
    last = counters(scheduler.wait_lines(1)[-1])
    runs, summary = recorder.records()
    assert summary["lost"] == 0
    owners = {process.pid: group for process, group in zip(loads, groups, strict=True)}
    assert len({run["cpu"] for run in runs if run["tgid"] in owners}) == int(many)
    assert not overlaps(runs, owners, pairs)
    assert last["dispatched"] > 0
    assert last["switches"] > 0
    assert last["waits"] > 0 or not pairs
    assert last["ended"] > 0 or not pairs
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


@pytest.mark.every_topology
def test_pairs_run_one_cgroup_at_a_time(guest: Guest, start: Start, groups: Sequence[str]) -> None:
    check_pairs(guest, start, groups, siblings(guest.topology))


def test_stride_selects_the_pairs(guest: Guest, start: Start, groups: Sequence[str]) -> None:
    pairs = [(cpu, cpu + 1) for cpu in guest.topology.online[::2]]
    check_pairs(guest, start, groups, pairs, "--stride", "1", "--turn-us", "5000")


def test_stride_that_leaves_cpus_over_is_refused(guest: Guest) -> None:
    done = guest.run(["scx_pair", "--stride", "3"])
    assert done.status == 1
    assert done.stderr == (
        "scx_pair: --stride=3 leaves CPUs without a partner: 4 CPUs are not a multiple of 6\n"
    )


#: Creates and removes cgroups, and moves a process between two other cgroups. Prints a line after
#: each round.
CHURN = """
hog=$1 one=$2 other=$3 rounds=0
while [ -d /proc/$hog ]; do
    mkdir CGROUPS/churn$rounds
    sh -c "echo \\$\\$ >CGROUPS/churn$rounds/cgroup.procs; true"
    echo $hog >$one/cgroup.procs
    rmdir CGROUPS/churn$rounds
    echo $hog >$other/cgroup.procs
    rounds=$((rounds + 1))
    echo $rounds
done
""".replace("CGROUPS", CGROUPS)


def all_run(guest: Guest, load: Process, count: int) -> bool:
    """Whether this many hogs of the load have run."""
    return sum(used_s > 0 for used_s in hog_times_s(guest, load)) == count


def test_cgroups_come_and_go(guest: Guest, start: Start, groups: Sequence[str]) -> None:
    """Cgroups are created and removed, and tasks move between cgroups. A load fails if one of its
    threads is stuck."""
    scheduler = start("scx_pair", "-i", "0.5").wait_enabled()
    loads = [load_in(guest, group, "--hogs", "3", *QUIET, seconds=3600) for group in groups[:2]]
    churn = guest.spawn("churn", ["sh", "-c", CHURN, "sh", str(loads[0].pid), groups[2], groups[0]])
    wait_for("ten rounds", lambda: churn.stdout().count("\n") >= 10)
    for load in loads:
        wait_for("its hogs run", lambda load=load: all_run(guest, load, 3))
        load.signal(signal.SIGINT)
    assert all(finished(load)["hogs"]["cpu_min_s"] > 0 for load in loads)
    churn.wait(TIMEOUT_S)
    guest.run(f"rmdir {CGROUPS}/churn*")
    assert scheduler.end(signal.SIGINT) == 0


def test_tasks_leave_a_cpu_with_a_real_time_task(
    guest: Guest, start: Start, groups: Sequence[str]
) -> None:
    """A task that the real-time task preempts continues on another CPU, and the other CPU of the
    pair is not blocked."""
    scheduler = start("scx_pair", "-i", "0.5").wait_enabled()
    hogs = load_in(guest, groups[0], "--hogs", "2", *QUIET, seconds=60)
    beside = load_in(guest, groups[1], "--hogs", "1", *QUIET, seconds=60)
    # The two hogs have one pair for themselves, and the single hog has the CPU of the other pair
    # that the real-time task does not use. For some time, the cgroups may take turns on one pair.
    # If the single hog's CPU were blocked, they always would, and each hog would get half a CPU.
    shares = shares_beside_real_time(guest, [(hogs, 2), (beside, 1)])
    print(shares)
    assert min(map(min, shares)) > 0.6
    assert counters(scheduler.wait_lines(1)[-1])["reenqueued"] > 0
    assert scheduler.end(signal.SIGINT) == 0


@STOPS_FAIR_SERVER_TWICE
def test_hotplug_restarts_it(guest: Guest, start: Start, set_cpu: SetCpu) -> None:
    """While a CPU is offline, the other CPU of its pair is unpaired."""
    scheduler: Scheduler = start("scx_pair", "-i", "0.5").wait_enabled()
    load = guest.spawn("load", ["scx_load", "--seconds", "5", "--json", *MIXED])
    for count, online in enumerate((False, True), 1):
        set_cpu(1, online)
        wait_for(
            f"restart {count}",
            lambda count=count: scheduler.process.stderr().count("restarting") == count,
        )
        scheduler.wait_enabled()
        scheduler.wait_lines(1)
    finished(load)
    assert scheduler.end(signal.SIGINT) == 0


#: Forty cgroups with one hog each, which may use all CPUs, and a cgroup with one hog, which may use
#: only CPU 3.
PINNED = f"""
cd /sys/fs/cgroup && echo +cpu >cgroup.subtree_control
names=$(seq 40)
for name in $names pinned; do
    mkdir $name
    sh -c "echo \\$\\$ >/sys/fs/cgroup/$name/cgroup.procs
        [ $name = pinned ] && taskset -p 8 \\$\\$ >/dev/null
        until [ -e /tmp/start ]; do sleep 0.1; done
        exec {scx_load("--hogs 1 --seconds 4")}" >/tmp/$name &
    loads="$loads $!"
done
touch /tmp/start
wait $loads
cd /tmp && cat $names pinned
"""


def test_cgroup_with_a_pinned_task_keeps_its_place(replayed: Replayed) -> None:
    """Any CPU may look for the cgroup whose turn is next. If the pair of that CPU cannot run the
    only task of the cgroup, the cgroup waits for another pair, and not for another round of the
    queue."""
    *free, pinned = (
        figures["hogs"]["cpu_s"][0] for figures in measure_all(replayed, "scx_pair", PINNED)[0]
    )
    print(f"{pinned:.3f} s, the others {min(free):.3f} to {max(free):.3f} s")
    assert pinned > 0.5 * min(free)
