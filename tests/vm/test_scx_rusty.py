# SPDX-License-Identifier: GPL-2.0-only
"""scx_rusty on a real kernel. Under loads, hotplug, signals and storms of forks and affinity
changes, no task stalls, and the scheduler continues. Placement and CPU time are tested by
test_scx_rusty_balance.py."""

from __future__ import annotations

import signal

import pytest
from loads import MIXED, QUIET, finished, uptime_s
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    TIMEOUT_S,
    Load,
    Scheduler,
    SetCpu,
    Start,
    ops,
    read,
    state,
    wait_disabled,
    wait_for,
)
from statistics_client import total, wait_served
from vm.guest import Guest

#: A short balancing interval, so that loads are balanced in each test.
BUSY = ("--interval", "0.5")


def serve(guest: Guest, start: Start, *args: str) -> Scheduler:
    """Starts the scheduler, and waits until it serves statistics."""
    scheduler = start("scx_rusty", *BUSY, *args).wait_enabled()
    wait_served(guest)
    return scheduler


def domains(guest: Guest) -> list[str]:
    """The ids of the domains of all nodes."""
    nodes = total(guest)["nodes"]
    return [domain for node in nodes.values() for domain in node["doms"]]


def cpus(words: list[int]) -> set[int]:
    """The CPUs of a mask of 64-bit words."""
    return {
        64 * index + bit for index, word in enumerate(words) for bit in range(64) if word >> bit & 1
    }


@pytest.mark.every_topology
def test_mixed_load(guest: Guest, start: Start, load: Load) -> None:
    """All kinds of tasks run: hogs, sleepers, pipes and forks. The load fails if one of its threads
    is stuck."""
    scheduler = serve(guest, start)
    assert ops(guest) == "rusty"
    hogs = str(len(guest.topology.online) * 2)
    result = finished(load("--hogs", hogs, *MIXED, "--seconds", "2", "--json"), 300)
    assert result["hogs"]["cpu_min_s"] > 0
    assert result["sleepers"]["wakeups"] > 0
    assert result["pipes"]["pair_min_per_s"] > 0
    counts = total(guest)
    assert counts["total"] > 1000
    assert counts["task_get_err"] == 0
    assert [int(node) for node in counts["nodes"]] == list(range(max(1, len(guest.topology.nodes))))
    assert sorted(map(int, domains(guest))) == list(range(len(domains(guest))))
    # With the default of --kick-greedy-under, 100, idle CPUs of every domain are woken to steal.
    assert cpus(counts["kick_greedy_cpus"]) == set(guest.topology.online)
    assert scheduler.end(signal.SIGINT) == 0


#: The names of statistics in earlier versions of scx_rusty, which dashboards use.
NAMES = """
at_us lb_at_us total slice_us cpu_busy load nr_migrations task_get_err time_used sync_prev_idle
wake_sync prev_idle greedy_idle pinned direct greedy greedy_far dsq_dispatch greedy_local
greedy_xnuma kick_greedy repatriate dl_clamp dl_preset direct_greedy_cpus kick_greedy_cpus nodes
"""


def test_statistics_have_the_names_that_clients_know(guest: Guest, start: Start) -> None:
    scheduler = serve(guest, start)
    wait_for("loads were read", lambda: bool(total(guest)["nodes"]))
    counts = total(guest)
    assert set(NAMES.split()) - set(counts) == set()
    (node,) = counts["nodes"].values()
    assert set(node) == {"load", "imbal", "delta", "doms"}
    (domain,) = node["doms"].values()
    assert set(domain) == {"load", "imbal", "delta"}
    # The other statistics are numbers, even before the first event. NaN would be null in JSON.
    words = ("direct_greedy_cpus", "kick_greedy_cpus", "nodes")
    assert all(isinstance(counts[name], int | float) for name in counts if name not in words)
    assert all(isinstance(word, int) for word in counts["direct_greedy_cpus"])
    assert scheduler.end(signal.SIGINT) == 0


def test_masks_have_a_word_for_every_64_possible_cpus(guest: Guest, start: Start) -> None:
    """This also holds for empty masks, because clients need masks of a constant size."""
    off = ("--direct-greedy-under", "0", "--kick-greedy-under", "0")
    scheduler = serve(guest, start, *off)
    possible = read(guest, "/sys/devices/system/cpu/possible")
    words = (int(possible.split("-")[-1]) + 64) // 64
    wait_for("loads were read", lambda: bool(total(guest)["nodes"]))
    counts = total(guest)
    assert counts["direct_greedy_cpus"] == counts["kick_greedy_cpus"] == [0] * words
    assert scheduler.end(signal.SIGINT) == 0


def test_pinned_task_is_dispatched_directly(guest: Guest, start: Start, load: Load) -> None:
    scheduler = serve(guest, start)
    sleepers = ("--hogs", "0", "--sleepers", "2", "--pipes", "0", "--forks-per-s", "0")
    finished(load(*sleepers, "--seconds", "4", "--json", through="taskset 2"))
    pinned = total(guest)["pinned"]
    print(f"{pinned:.1f} % of wakeups were dispatched to the only allowed CPU")
    assert pinned > 1
    assert scheduler.end(signal.SIGINT) == 0


@pytest.mark.every_topology
def test_kill_9_under_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = serve(guest, start)
    mixed = load(*MIXED, "--seconds", "3", "--json")
    wait_for("it schedules", lambda: total(guest)["total"] > 1000)
    assert scheduler.end(signal.SIGKILL) == 128 + signal.SIGKILL
    wait_disabled(guest)
    assert finished(mixed)["sleepers"]["wakeups"] > 0


def test_stopped_user_space_causes_no_stall(guest: Guest, start: Start, load: Load) -> None:
    """While the scheduler's process is stopped, loads are not balanced, but tasks are scheduled."""
    scheduler = serve(guest, start)
    load("--hogs", "6", *MIXED)
    scheduler.process.signal(signal.SIGSTOP)
    try:
        until_s = uptime_s(guest) + 5
        while uptime_s(guest) < until_s:
            # Each command starts processes, which have to be scheduled.
            guest.run("ls /proc | wc -l").check()
        assert state(guest) == "enabled"
    finally:
        scheduler.process.signal(signal.SIGCONT)
    balanced_us = total(guest)["lb_at_us"]
    wait_for("it balances again", lambda: total(guest)["lb_at_us"] > balanced_us)
    assert scheduler.end(signal.SIGINT) == 0


def restarts(scheduler: Scheduler) -> int:
    return scheduler.process.stderr().count("restarting")


def switch(scheduler: Scheduler, set_cpu: SetCpu, cpu: int, online: bool) -> float:
    """Takes a CPU offline, or brings it online, and waits until the scheduler has restarted.
    Returns how long the change took, without the restart, in s of the guest."""
    before = restarts(scheduler)
    took_s = set_cpu(cpu, online)
    print(f"CPU {cpu} online={online} after {took_s:.1f} s")
    wait_for(
        "it restarts",
        lambda: restarts(scheduler) > before or not scheduler.process.running(),
    )
    scheduler.wait_enabled()
    wait_served(scheduler.guest)
    return took_s


@pytest.mark.every_topology
@STOPS_FAIR_SERVER_TWICE
def test_hotplug_under_load(guest: Guest, start: Start, load: Load, set_cpu: SetCpu) -> None:
    """At each change, the scheduler restarts within the same process, and then uses the CPUs that
    are online."""
    if len(guest.topology.online) == 1:
        pytest.skip("the only CPU cannot go offline")
    scheduler = serve(guest, start)
    load("--hogs", str(len(guest.topology.online) + 2), *MIXED)
    all_cpus = set(guest.topology.online)
    switch(scheduler, set_cpu, 1, False)
    assert cpus(total(guest)["kick_greedy_cpus"]) <= all_cpus - {1}
    switch(scheduler, set_cpu, 1, True)
    wait_for("all CPUs are used again", lambda: cpus(total(guest)["kick_greedy_cpus"]) == all_cpus)
    assert scheduler.end(signal.SIGINT) == 0


@STOPS_FAIR_SERVER_TWICE
def test_all_cpus_of_a_domain_go_offline(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    """There are tasks in the domain meanwhile, and some of them may run only there."""
    scheduler = serve(guest, start, "--cpumasks", "3", "c")
    wait_for("both domains are reported", lambda: domains(guest) == ["0", "1"])
    load("--hogs", "8", *MIXED)
    load("--hogs", "2", *QUIET, through="taskset c")
    wait_for("both domains have load", lambda: total(guest)["load"] > 8)
    switch(scheduler, set_cpu, 2, False)
    # To take the last CPU of the domain offline, the kernel waits for RCU's thread, which may be in
    # the queue of this domain. When no CPU of another domain took the thread from there, going
    # offline took 21 s, until the RCU stall warning.
    assert switch(scheduler, set_cpu, 3, False) < 10
    wait_for("the domain is gone", lambda: domains(guest) == ["0"])
    wait_for("the load moves to the other domain", lambda: total(guest)["load"] > 8)
    switch(scheduler, set_cpu, 3, True)
    wait_for("the domain exists again", lambda: domains(guest) == ["0", "1"])
    switch(scheduler, set_cpu, 2, True)
    assert scheduler.end(signal.SIGINT) == 0


@pytest.mark.every_topology
def test_affinity_storm(guest: Guest, start: Start, load: Load) -> None:
    """Threads change each other's affinity while they run, wait and wake up. Since each CPU is a
    domain, this also changes their domains."""
    masks = [f"{1 << cpu:x}" for cpu in guest.topology.online]
    scheduler = serve(guest, start, "--cpumasks", *masks)
    storm = load("--movers", "24", "--hogs", "4", *QUIET, "--seconds", "2", "--json")
    assert finished(storm)["movers"]["changes"] > 500
    assert state(guest) == "enabled"
    assert scheduler.end(signal.SIGINT) == 0


def test_fork_storm(guest: Guest, start: Start, load: Load) -> None:
    scheduler = serve(guest, start)
    storm = load("--fork-storms", "4", "--hogs", "4", *QUIET, "--seconds", "2", "--json")
    assert finished(storm)["hogs"]["cpu_min_s"] > 0
    assert total(guest)["task_get_err"] == 0
    assert scheduler.end(signal.SIGINT) == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--fifo-sched",),
        ("--kthreads-local", "--balanced-kworkers", "--mempolicy-affinity"),
        ("--greedy-threshold", "0", "--direct-greedy-under", "0", "--kick-greedy-under", "0"),
        ("--greedy-threshold-x-numa", "1", "--direct-greedy-numa", "--direct-greedy-under", "100"),
        ("--perf", "512", "--load-half-life", "0.1", "--no-load-balance"),
        ("--slice-us-underutil", "1000", "--slice-us-overutil", "100", "--tune-interval", "0.01"),
    ],
    ids=lambda options: options[0].lstrip("-"),
)
def test_options_under_load(
    guest: Guest, start: Start, load: Load, options: tuple[str, ...]
) -> None:
    """With two domains and options that change how tasks are dispatched, every task is served."""
    scheduler = serve(guest, start, "--cpumasks", "3", "c", *options)
    result = finished(load("--hogs", "6", *MIXED, "--seconds", "2", "--json"))
    assert result["hogs"]["cpu_min_s"] > 0
    assert result["sleepers"]["wakeups"] > 0
    assert read(guest, "/sys/kernel/sched_ext/root/ops") == "rusty"
    assert scheduler.end(signal.SIGINT) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cpumasks", "1", "3"), "--cpumasks 3: a CPU is in two masks"),
        (("--cpumasks", "x"), "--cpumasks x: "),
        (("--interval", "0"), "--interval 0 is not from 0.1 to 3600"),
        (("--cache-level", "2"), "'2' for '--cache-level <LEVEL>'"),
        (("--cache-level", "3", "--cpumasks", "1"), "cannot be used with"),
        (("--direct-greedy-under", "101"), "--direct-greedy-under 101 is not from 0 to 100"),
    ],
)
def test_wrong_options_are_refused(guest: Guest, options: tuple[str, ...], words: str) -> None:
    done = guest.run(["scx_rusty", *options])
    assert done.status in {1, 2}
    assert words in done.stderr
    assert state(guest) == "disabled"


# This must be the last test of its guest: see test_ten_thousand_tasks() in test_scx_rlfifo.py.
@pytest.mark.once
def test_ten_thousand_tasks(guest: Guest, start: Start) -> None:
    guest.run("echo 40000 >/proc/sys/kernel/threads-max").check()
    scheduler = serve(guest, start, "--cpumasks", "3", "c")
    crowd = guest.spawn("crowd", ["scx_crowd", "10000"])
    try:
        wait_for("all tasks exist", lambda: "ready" in crowd.stdout(), timeout_s=300)
        before = total(guest)
        wait_for(
            "the tasks are scheduled",
            lambda: total(guest)["total"] > before["total"] + 12_000,
            timeout_s=300,
        )
        wait_for("loads are balanced", lambda: total(guest)["lb_at_us"] > before["lb_at_us"])
        print(f"a round takes {total(guest)['time_used']:.3f} s")
        assert state(guest) == "enabled"
        # End the scheduler before the tasks exit: a thousand exits per second are too many for an
        # emulated machine, and would delay the kernel's watchdog.
        assert scheduler.end(signal.SIGINT) == 0
    finally:
        crowd.signal(signal.SIGINT)
    assert crowd.wait(TIMEOUT_S) == 0, crowd.stderr()
