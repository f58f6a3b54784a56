# SPDX-License-Identifier: GPL-2.0-only
"""scx_flatcg on a real kernel: CPU time is shared by the weights of cgroups."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from cgroups import FUNCTIONS, create, ideal, leaves, results
from loads import MIXED, QUIET, hog_times_s
from sched_ext import TIMEOUT_S, Load, Scheduler, Start, counters, ops, state, wait_for
from vm.guest import Guest


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_flatcg", "-i", "0.5").wait_enabled()
    assert ops(guest) == "flatcg"
    load("--hogs", str(len(guest.topology.online) * 2), *MIXED)
    first = counters(scheduler.wait_lines(1)[0])
    last = counters(scheduler.wait_lines(4)[-1])
    for name in ("local", "queued"):
        assert last[name] > first[name], name
    assert scheduler.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


WEIGHTS = (1, 100, 10000)

#: Three levels of cgroups, with three siblings on each level.
LEVELS = {f"w{a}": a for a in WEIGHTS}
LEVELS |= {f"w{a}/w{b}": b for a in WEIGHTS for b in WEIGHTS}
LEVELS |= {f"w{a}/w{b}/w{c}": c for a in WEIGHTS for b in WEIGHTS for c in WEIGHTS}

#: A cgroup whose share is smaller than this may get more than its share, so that no task starves.
SMALLEST = 0.005

#: How far the CPU time of a cgroup may deviate from its share after other cgroups have become
#: active or inactive: 15 slices of 4 ms. For a share of a hundredth, this is up to a quarter of the
#: cgroup's CPU time in the 6 or 8 s measured here.
OFF_MAX_S = 0.06


def tolerance(share: float, seconds: float, cpus: int) -> float:
    """How far the measured share may deviate from the ideal share, in a stage of this length."""
    return max(0.05 * share, OFF_MAX_S / (seconds * cpus))


def test_weights_are_honoured_at_every_level(replayed: Callable[[str], str]) -> None:
    """First with all leaves, then without the leaves that have a weight of 10000 at any level."""
    every = leaves(LEVELS)
    light = [leaf for leaf in every if "w10000" not in leaf]
    heaviest = ["w10000/w10000/w10000", "w100/w100/w100"]
    commands = [FUNCTIONS, create(LEVELS), "start scx_flatcg --slice-us 4000 -i 0"]
    commands += [f"hogs {leaf} {4 if leaf in heaviest else 1}" for leaf in every]
    commands += ["sleep 1", f"share 6 all {' '.join(every)}"]
    commands += [f"end {' '.join(leaf for leaf in every if leaf not in light)}"]
    # Cgroups whose virtual time is ahead have to wait, for up to two seconds.
    commands += ["sleep 3", f"share 8 light {' '.join(light)}", "stop"]
    found = results(replayed("\n".join(commands)))
    for stage, seconds, active in (("all", 6, every), ("light", 8, light)):
        expected = ideal(LEVELS, active)
        print(stage, {leaf: (x, round(found[stage][leaf], 6)) for leaf, x in expected.items()})
        exact = {leaf: share for leaf, share in expected.items() if share > SMALLEST}
        assert len(exact) == 4
        for leaf, share in exact.items():
            off = tolerance(share, seconds, cpus=4)
            assert found[stage][leaf] == pytest.approx(share, abs=off), leaf
        assert all(0 < found[stage][leaf] < SMALLEST for leaf in expected.keys() - exact.keys())


def test_changes_take_effect_at_once(replayed: Callable[[str], str]) -> None:
    """Changes of weights, of cpu.idle, and of the cgroup of a task."""
    commands = [
        FUNCTIONS,
        create({"one": 100, "two": 300}),
        "start scx_flatcg --slice-us 4000 -i 0",
    ]
    commands += ["hogs one 4", "hogs two 4", "sleep 1"]
    commands += ["echo 900 >one/cpu.weight", "share 2 weight one two"]
    commands += ["for task in $(head -n 2 two/cgroup.procs); do echo $task >one/cgroup.procs; done"]
    commands += ["echo 4 >two/cpu.weight", "share 2 moved one two"]
    commands += ["echo 100 >one/cpu.weight", "echo 10000 >two/cpu.weight"]
    commands += ["echo 1 >two/cpu.idle", "share 2 idle one two", "stop"]
    found = results(replayed("\n".join(commands)))
    print(found)
    assert found["weight"]["one"] == pytest.approx(3 / 4, rel=0.05)
    # One cgroup now has six hogs, the other two. Only the weights of the cgroups count.
    assert found["moved"]["one"] == pytest.approx(900 / 904, rel=0.05)
    # With cpu.idle, the weight is 1.
    assert found["idle"]["two"] == pytest.approx(1 / 101, rel=0.3)


#: Quotas on two levels, in hundredths of a CPU, beside a cgroup without a quota.
QUOTAS = {"outer": 40, "outer/a": None, "outer/b": 10, "free": None}


def test_quotas_are_kept_at_every_level(replayed: Callable[[str], str]) -> None:
    """Quotas are kept on average. When they are removed, weights apply again."""
    limits = [f"echo {q}000 100000 >{path}/cpu.max" for path, q in QUOTAS.items() if q]
    commands = [FUNCTIONS, create(dict.fromkeys(QUOTAS, 100)), *limits, "start scx_flatcg -i 0"]
    commands += ["hogs outer/a 3", "hogs outer/b 3", "hogs free 6", "sleep 1"]
    commands += ["share 3 limited outer/a outer/b free"]
    commands += [f"echo max >{path}/cpu.max" for path, q in QUOTAS.items() if q]
    # During the first second, the tasks that the quotas have held back catch up.
    commands += ["sleep 2", "share 2 unlimited outer/a outer/b free", "stop"]
    found = results(replayed("\n".join(commands)))
    print(found)
    # Shares of four CPUs.
    assert found["limited"]["outer/a"] == pytest.approx(0.30 / 4, rel=0.1)
    assert found["limited"]["outer/b"] == pytest.approx(0.10 / 4, rel=0.15)
    assert found["unlimited"]["free"] == pytest.approx(1 / 2, rel=0.05)
    assert found["unlimited"]["outer/a"] == pytest.approx(1 / 4, rel=0.1)


def test_new_cgroups_do_not_delay_parked_tasks(replayed: Callable[[str], str]) -> None:
    """If a cgroup has used up its quota, its tasks are parked until the quota is refilled. The
    timer that checks parked tasks also runs while cgroups are created continuously."""
    commands = [FUNCTIONS, create({"limited": 100, "new": 100})]
    commands += ["echo 20000 100000 >limited/cpu.max", "echo +cpu >new/cgroup.subtree_control"]
    commands += ["start scx_flatcg -i 0", "hogs limited 1", "sleep 0.5"]
    commands += ["(cd new; exec seq 1000000 | xargs mkdir) & creator=$!"]
    commands += ["share 1 creating limited .", "kill -9 $creator", "stop"]
    found = results(replayed("\n".join(commands)))
    print(found)
    # The quota is a fifth of a CPU, and the share is relative to the CPU time of all tasks. The
    # share was 0 when each new cgroup restarted the timer.
    assert found["creating"]["limited"] > 0.05


MAKE_LIMITED = """
cd /sys/fs/cgroup && echo +cpu >cgroup.subtree_control && mkdir limited &&
echo 10000 100000 >limited/cpu.max
"""


def test_tasks_without_quota_are_parked(guest: Guest, start: Start, load: Load) -> None:
    """A quota set before the scheduler starts is honoured. If the quota is removed while tasks are
    parked, all tasks run again."""
    try:
        guest.run(MAKE_LIMITED).check()
        scheduler = start("scx_flatcg", "-i", "0.5").wait_enabled()
        hogs = load("--hogs", "6", *QUIET)
        # A new thread that is parked at once might wait long before it runs and gets its name.
        wait_for("all hogs exist", lambda: len(hog_times_s(guest, hogs)) == 6)
        guest.run(f"echo {hogs.pid} >/sys/fs/cgroup/limited/cgroup.procs").check()
        first = counters(scheduler.wait_lines(1)[-1])["parked"]
        wait_for(
            "tasks are parked",
            lambda: counters(scheduler.wait_lines(1)[-1])["parked"] > first + 10,
        )
        guest.run("echo max >/sys/fs/cgroup/limited/cpu.max").check()
        before_s = hog_times_s(guest, hogs)
        wait_for(
            "each hog runs",
            lambda: all(
                now > before + 0.1
                for now, before in zip(hog_times_s(guest, hogs), before_s, strict=True)
            ),
        )
        hogs.signal(signal.SIGINT)
        hogs.wait(TIMEOUT_S)
        assert scheduler.end(signal.SIGINT) == 0
    finally:
        guest.run("rmdir /sys/fs/cgroup/limited")


MANY = 2000
MAKE_MANY = f"""
cd /sys/fs/cgroup && echo +cpu >cgroup.subtree_control && mkdir many &&
echo +cpu >many/cgroup.subtree_control && cd many &&
seq {MANY} | xargs mkdir
"""
REMOVE_MANY = "cd /sys/fs/cgroup && rmdir many/* many"


def wait_cgroups(scheduler: Scheduler, number: int) -> None:
    wait_for(
        f"{number} cgroups",
        lambda: counters(scheduler.wait_lines(1)[-1])["nr_cgroups"] == number,
    )


@pytest.mark.once
def test_two_thousand_cgroups(guest: Guest, start: Start, load: Load) -> None:
    """The scheduler counts cgroups that existed before it started, and cgroups that are created
    and removed while it runs. Tasks move between cgroups meanwhile."""
    try:
        guest.run(MAKE_MANY, timeout_s=TIMEOUT_S).check()
        scheduler = start("scx_flatcg", "-i", "0.5").wait_enabled()
        wait_cgroups(scheduler, MANY + 1)
        hogs = load("--hogs", "4", *QUIET)
        wait_for("all threads exist", lambda: len(hog_times_s(guest, hogs)) == 4)
        move = f"for i in $(seq 1 100 {MANY}); do echo {hogs.pid} >many/$i/cgroup.procs; done"
        guest.run(f"cd /sys/fs/cgroup && {move}", timeout_s=TIMEOUT_S).check()
        wait_for(
            "the moves are counted",
            lambda: counters(scheduler.wait_lines(1)[-1])["moved"] > 4 * MANY / 100,
        )
        # Cgroups are removed, and some of them created again, while tasks run in another cgroup.
        again = "rmdir many/[2-9]*; mkdir many/2 many/3; rmdir many/2; mkdir many/2"
        guest.run(f"cd /sys/fs/cgroup && {again}; true").check()
        left = int(guest.run("ls -d /sys/fs/cgroup/many/*/ | wc -l").check().stdout)
        wait_cgroups(scheduler, left + 1)
        hogs.signal(signal.SIGINT)
        hogs.wait(TIMEOUT_S)
        assert scheduler.end(signal.SIGINT) == 0
    finally:
        guest.run(REMOVE_MANY, timeout_s=TIMEOUT_S)
