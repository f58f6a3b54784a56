# SPDX-License-Identifier: GPL-2.0-only
"""Statistics of a running scheduler, read by an independent client of the protocol
(tests/clients/scx_stats_client.c) and by monitors."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    TIMEOUT_S,
    Load,
    Scheduler,
    SetCpu,
    Start,
    state,
    wait_disabled,
    wait_for,
)
from statistics_client import META, SOCKET, STATS, TOTAL, ask, payload, wait_served
from vm.guest import Guest, Process

EINVAL = 22
EMSGSIZE = 90


def measured(guest: Guest) -> list[dict]:
    """The answers to three requests on one connection: two for the statistics, each after a second
    without requests, then one for the totals."""
    command = f"(sleep 1; echo '{STATS}'; sleep 1; echo '{STATS}'; echo '{TOTAL}') | "
    done = guest.run(command + f"scx_stats_client {SOCKET} pass").check()
    return [json.loads(line) for line in done.stdout.splitlines()]


def client(guest: Guest, *args: str) -> str:
    return guest.run(["scx_stats_client", SOCKET, *args], TIMEOUT_S).check().stdout


@pytest.fixture
def fifo(guest: Guest, start: Start) -> Scheduler:
    """scx_fifo, which already serves statistics."""
    scheduler = start("scx_fifo", "--slice-us", "5000").wait_enabled()
    wait_served(guest)
    return scheduler


@dataclass(frozen=True)
class Served:
    """A scheduler that serves statistics, and the name of its counter of tasks that waited in a
    queue."""

    scheduler: Scheduler
    queued: str


@pytest.fixture(params=[("scx_fifo", "nr_queued"), ("scx_simple", "global")], ids=["rust", "c"])
def served(request: pytest.FixtureRequest, guest: Guest, start: Start) -> Served:
    """A Rust scheduler, or a C scheduler: their servers of statistics differ."""
    program, queued = request.param
    scheduler = start(program).wait_enabled()
    wait_served(guest)
    return Served(scheduler, queued)


@pytest.fixture
def monitor(guest: Guest) -> Iterator[Callable[..., Process]]:
    """A function that starts a monitor of scx_fifo, which is killed after the test."""
    started: list[Process] = []

    def launch(*args: str, user: str = "root") -> Process:
        command = ["scx_fifo", "--monitor", "0.3", *args]
        started.append(guest.spawn(f"monitor{len(started)}", command, user=user))
        return started[-1]

    yield launch
    for process in filter(Process.running, started):
        process.signal(signal.SIGKILL)
        process.wait(TIMEOUT_S)


def test_wire_statistics(guest: Guest, fifo: Scheduler, load: Load) -> None:
    load("--hogs", "6", "--pipes", "0")
    first, second, total = (payload(answer) for answer in measured(guest))
    assert set(first) == {"nr_local", "nr_queued", "nr_kthreads", "slice_us"}
    assert first["slice_us"] == 5000
    # In the first two answers, a counter is the increase since the previous answer on this
    # connection, or since the connection was opened. In the totals, it counts since the start of
    # the scheduler.
    assert first["nr_queued"] + first["nr_local"] > 0
    assert total["nr_queued"] >= first["nr_queued"] + second["nr_queued"]
    assert payload(ask(guest, TOTAL)[0])["nr_queued"] > total["nr_queued"]


def test_wire_description(guest: Guest, fifo: Scheduler) -> None:
    (meta,) = (payload(answer) for answer in ask(guest, META))
    assert set(meta) == {"Metrics"}
    metrics = meta["Metrics"]
    assert metrics["name"] == "Metrics"
    assert metrics["top"] == "true"
    assert metrics["user"] == {"_om_prefix": "fifo_"}
    assert list(metrics["fields"]) == sorted(metrics["fields"])
    queued = metrics["fields"]["nr_queued"]
    assert queued["datum"] == "u64"
    assert queued["desc"] == "Tasks that waited in the queue"


def test_scxstats_reads_any_scheduler(guest: Guest, fifo: Scheduler) -> None:
    def printed(*args: str) -> str:
        return guest.run(["scxstats", *args], TIMEOUT_S).check().stdout

    assert json.loads(printed("--json"))["slice_us"] == 5000
    assert ["fifo_slice_us", "5000"] in [line.split() for line in printed().splitlines()]
    metrics = printed("--openmetrics").splitlines()
    assert "# TYPE fifo_nr_queued counter" in metrics
    assert "fifo_slice_us{} 5000.0" in metrics
    assert fifo.end(signal.SIGINT) == 0
    assert guest.run(["scxstats"], TIMEOUT_S).status == 1


def test_c_schedulers_serve_the_same_protocol(guest: Guest, start: Start, load: Load) -> None:
    start("scx_simple", "-i", "0").wait_enabled()
    wait_served(guest)
    load("--hogs", "6", "--pipes", "0")
    first, second, total = (payload(answer) for answer in measured(guest))
    assert set(first) == {"local", "global"}
    assert first["global"] + first["local"] > 0
    assert total["global"] >= first["global"] + second["global"]
    (meta,) = (payload(answer) for answer in ask(guest, META))
    assert meta["Metrics"]["user"] == {"_om_prefix": "simple_"}
    assert meta["Metrics"]["fields"]["global"]["desc"] == "Tasks that waited in the shared queue"
    metrics = guest.run(["scxstats", "--openmetrics"], TIMEOUT_S).check().stdout.splitlines()
    assert "# TYPE simple_global counter" in metrics


@STOPS_FAIR_SERVER_TWICE
def test_c_scheduler_serves_after_a_restart(guest: Guest, start: Start, set_cpu: SetCpu) -> None:
    scheduler = start("scx_simple").wait_enabled()
    for count, online in enumerate((False, True), 1):
        set_cpu(1, online)
        wait_for(
            "it restarts",
            lambda n=count: scheduler.process.stderr().count("restarting") >= n,
        )
        scheduler.wait_enabled()
        # After a restart, the scheduler counts from zero again.
        wait_for("tasks are counted", lambda: payload(ask(guest, TOTAL)[0])["local"] > 0)


def test_bad_requests_do_not_close_the_connection(guest: Guest, served: Served) -> None:
    bad = ["", "{", "[]", "no json", '{"req":1}', '{"req":"no such"}']
    bad.append('{"req":"stats","args":{"target":"no such"}}')
    *refused, good = ask(guest, *bad, STATS)
    assert [answer["errno"] for answer in refused] == [EINVAL] * len(bad)
    assert all(isinstance(answer["args"]["resp"], str) for answer in refused)
    assert served.queued in payload(good)


def test_hostile_clients_do_not_disturb_others(guest: Guest, served: Served, load: Load) -> None:
    """While hostile clients are connected, another client is served, and the scheduler
    schedules."""
    load("--hogs", "4", "--pipes", "0")
    idle = guest.spawn("idle", ["scx_stats_client", SOCKET, "idle", "200"])
    deaf = guest.spawn("deaf", ["scx_stats_client", SOCKET, "deaf"])
    half = guest.spawn("half", ["scx_stats_client", SOCKET, "half"])
    wait_for("200 connections", lambda: idle.stdout() == "200 open\n")

    before = payload(ask(guest, TOTAL)[0])
    assert client(guest, "garbage", "300") == "300 answered\n"
    answer, end = client(guest, "long", str(1 << 20)).splitlines()
    assert json.loads(answer)["errno"] == EMSGSIZE
    assert end == "hung up"
    after = payload(ask(guest, TOTAL)[0])
    assert after[served.queued] > before[served.queued]

    # After a timeout, the server closes connections whose request is incomplete, or whose client
    # does not read.
    assert half.wait(TIMEOUT_S) == 0, half.stderr()
    assert half.stdout() == "hung up\n"
    assert deaf.wait(TIMEOUT_S) == 0, deaf.stderr()
    assert deaf.stdout().startswith("hung up after")
    # Idle connections are kept.
    assert idle.running()
    assert served.queued in payload(ask(guest, STATS)[0])
    idle.signal(signal.SIGKILL)
    idle.wait(TIMEOUT_S)
    assert served.scheduler.process.running()
    assert state(guest) == "enabled"


def test_only_root_may_read(guest: Guest, fifo: Scheduler, monitor: Callable[..., Process]) -> None:
    assert guest.run(f"stat -c '%a %U %G' {SOCKET}").stdout == "600 root root\n"
    stranger = monitor(user="nobody")
    assert stranger.wait(TIMEOUT_S) == 1
    assert "denied" in stranger.stderr().lower()


def test_configured_group_may_read(
    guest: Guest, start: Start, monitor: Callable[..., Process]
) -> None:
    start("scx_fifo", "--stats-group", "nogroup").wait_enabled()
    wait_served(guest)
    assert guest.run(f"stat -c '%a %U %G' {SOCKET}").stdout == "660 root nogroup\n"
    process = monitor(user="nobody")
    wait_for("the monitor reads", lambda: "local=" in process.stdout())


def test_monitor_continues_after_kill_9(
    guest: Guest, fifo: Scheduler, start: Start, monitor: Callable[..., Process]
) -> None:
    """A killed scheduler leaves its socket behind. The next scheduler replaces the socket, and the
    monitor continues with this scheduler."""
    process = monitor()
    wait_for("lines", lambda: process.stdout().count("\n") >= 2)
    fifo.end(signal.SIGKILL)
    wait_disabled(guest)
    assert guest.run(["test", "-S", SOCKET]).ok, "the socket is gone after kill -9"
    start("scx_fifo", "--slice-us", "7000").wait_enabled()
    wait_for("lines of the next scheduler", lambda: "slice_us=7000" in process.stdout())
    process.signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 0
    assert "waiting for statistics" in process.stderr()


@STOPS_FAIR_SERVER_TWICE
def test_monitor_continues_after_a_restart(
    guest: Guest, fifo: Scheduler, monitor: Callable[..., Process], set_cpu: SetCpu
) -> None:
    """CPU hotplug restarts the scheduler. The monitor continues, and shows the same slice."""
    process = monitor()
    wait_for("lines", lambda: process.stdout().count("\n") >= 2)
    for online in (0, 1):
        set_cpu(1, bool(online))
        restarted = online + 1
        wait_for(
            "it restarts",
            lambda n=restarted: fifo.process.stderr().count("restarting") >= n,
        )
        fifo.wait_enabled()
        seen = process.stdout().count("\n")
        wait_for("more lines", lambda n=seen: process.stdout().count("\n") >= n + 3)
    assert {line.split()[-1] for line in process.stdout().splitlines()} == {"slice_us=5000"}
    assert process.running()
    process.signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0


def test_monitor_waits_for_a_scheduler(
    guest: Guest, start: Start, monitor: Callable[..., Process]
) -> None:
    process = monitor()
    wait_for("a message", lambda: "waiting for statistics" in process.stderr())
    start("scx_fifo").wait_enabled()
    wait_for("lines", lambda: "local=" in process.stdout())


def test_socket_is_removed_on_exit(guest: Guest, served: Served) -> None:
    assert served.scheduler.end(signal.SIGINT) == 0
    assert not guest.run(["test", "-e", SOCKET]).ok


def test_c_scheduler_replaces_the_socket_of_a_killed_one(guest: Guest, start: Start) -> None:
    start("scx_simple").wait_enabled().end(signal.SIGKILL)
    wait_disabled(guest)
    start("scx_simple").wait_enabled()
    wait_served(guest)
    wait_for("tasks are counted", lambda: payload(ask(guest, TOTAL)[0])["local"] > 0)
    assert guest.run(f"stat -c '%a %U %G' {SOCKET}").stdout == "600 root root\n"


def test_c_scheduler_runs_without_its_socket(guest: Guest, start: Start) -> None:
    """A directory exists in place of the socket."""
    guest.run(f"mkdir -p {SOCKET}").check()
    scheduler = start("scx_simple").wait_enabled()
    guest.run(f"rmdir {SOCKET}").check()
    assert scheduler.end(signal.SIGINT) == 0
    assert "no statistics for other programs" in scheduler.process.stderr()


def test_scheduler_runs_without_its_socket(guest: Guest, start: Start) -> None:
    scheduler = start("scx_fifo", "--stats-socket", "/proc/no/such/place").wait_enabled()
    wait_for("a warning", lambda: "statistics are not served" in scheduler.process.stderr())
    assert scheduler.end(signal.SIGINT) == 0
