# SPDX-License-Identifier: GPL-2.0-only
"""The workloads, and their figures.

A workload is a command line of scx_load (or another benchmark), and the figures that are read from
its output. docs/bench.md describes each workload.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

#: The nice values of the hogs of `fairness`, given to the hogs in turn.
NICES = (0, 5)
#: The weights of these nice values, from sched_prio_to_weight[] in kernel/sched/core.c.
_WEIGHTS = {0: 1024, 5: 335}

Values = dict[str, float]

#: Units of time, in µs.
IN_US = {"µs": 1.0, "ms": 1000.0, "s": 1e6}


@dataclass(frozen=True)
class Figure:
    """A number in the results of a workload."""

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher"] = "lower"
    #: Whether the figure is a latency. In a deterministic guest, differences of latencies below
    #: summary.ROUND_US are not significant.
    is_latency: bool = False


@dataclass(frozen=True)
class Workload:
    """A load, and how its output is read."""

    name: str
    #: A description of one line.
    title: str
    #: The command line for the given number of CPUs.
    command: Callable[[int], list[str]]
    figures: tuple[Figure, ...]
    #: Reads the figures from the load's output, given the number of CPUs.
    read: Callable[[str, int], Values]
    #: Arguments of scx_switches, which records during the load.
    switches: tuple[str, ...] = ()
    #: Whether the scheduler's BPF programs and system calls are counted, which has an overhead.
    counts_cost: bool = False
    #: Whether the emulator's counters are read before and after the load.
    counts_instructions: bool = False
    #: The program. If it is not installed, the workload is skipped, or is refused if the user has
    #: requested it.
    program: str = "scx_load"


def _load(seconds: float, *flags: str, **counts: int | str) -> list[str]:
    """A command line of scx_load. Kinds of load that run by default are off unless in `counts`."""
    given: dict[str, int | str] = {
        "hogs": 0,
        "sleepers": 0,
        "pipes": 0,
        "forks_per_s": 0,
        **counts,
        "seconds": f"{seconds:g}",
    }
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    return ["scx_load", *options, *flags, "--fork-program=true", "--json"]


def _fields(kind: str, *names: str) -> Callable[[str, int], Values]:
    """A function that reads the figures `names` of a kind of load."""

    def read(output: str, _: int) -> Values:
        figures = json.loads(output)[kind]
        # A figure is null if there were no events to measure.
        return {name: figures[name] for name in names if figures[name] is not None}

    return read


def _round_trip(output: str, _: int) -> Values:
    return {"round_trip_us": 1e6 / json.loads(output)["pipes"]["round_trips_per_s"]}


def _throughput(output: str, cpus: int) -> Values:
    load = json.loads(output)
    return {"cpu_percent": 100 * sum(load["hogs"]["cpu_s"]) / load["elapsed_s"] / cpus}


def ideal_shares(weights: list[float], cpus: int) -> list[float]:
    """Fair shares, in CPUs, of tasks with these weights. No share exceeds one CPU."""
    shares = [0.0] * len(weights)
    left, open_ = float(cpus), set(range(len(weights)))
    while open_:
        total = sum(weights[i] for i in open_)
        full = {i for i in open_ if weights[i] * left >= total}
        if not full:
            for i in open_:
                shares[i] = weights[i] * left / total
            break
        for i in full:
            shares[i] = 1.0
        left -= len(full)
        open_ -= full
        if left <= 0:
            break
    return shares


def _fairness(output: str, cpus: int) -> Values:
    times = json.loads(output)["hogs"]["cpu_s"]
    weights = [float(_WEIGHTS[NICES[i % len(NICES)]]) for i in range(len(times))]
    shares = ideal_shares(weights, cpus)
    scale = sum(times) / sum(shares)
    off = [abs(time / (share * scale) - 1) for time, share in zip(times, shares, strict=True)]
    return {"off_max_percent": 100 * max(off)}


def _economy(output: str, _: int) -> Values:
    load = json.loads(output)
    clients, elapsed_s = load["clients"], load["elapsed_s"]
    return {
        "server_percent": 100 * clients["server_cpu_s"] / elapsed_s,
        "hog_percent": 100 * load["hogs"]["cpu_mean_s"] / elapsed_s,
        "requests_per_s": clients["requests"] / elapsed_s,
    }


def _hackbench(output: str, _: int) -> Values:
    match = re.search(r"^Time: ([\d.]+)$", output, re.MULTILINE)
    return {"time_s": float(match[1])} if match else {}


def _stress_ng(output: str, _: int) -> Values:
    match = re.search(r"cpu +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)", output)
    return {"bogo_ops_per_s": float(match[1])} if match else {}


def _schbench(output: str, _: int) -> Values:
    """p50 and p99 of the first two sections of schbench's output: the latencies of wakeups, and of
    requests."""
    percentiles = re.findall(r"^\W*(50|99)\.0th: +(\d+)", output, re.MULTILINE)
    names = ("wakeup_p50_us", "wakeup_p99_us", "request_p50_us", "request_p99_us")
    return {name: float(value) for name, (_, value) in zip(names, percentiles, strict=False)}


_LATE = (
    Figure("lateness_p50_us", "late by, p50", "µs", is_latency=True),
    Figure("lateness_p99_us", "late by, p99", "µs", is_latency=True),
    Figure("lateness_max_us", "late by, worst", "µs", is_latency=True),
)
_SPAWN = (
    Figure("spawn_p50_ms", "start to end, p50", "ms", is_latency=True),
    Figure("spawn_p99_ms", "start to end, p99", "ms", is_latency=True),
)
_PERIODIC = (
    Figure("missed_percent", "missed", "%"),
    Figure("done_after_p99_ms", "done after, p99", "ms", is_latency=True),
    Figure("gap_max_ms", "longest gap", "ms", is_latency=True),
)
_REQUESTS = (
    Figure("latency_p50_ms", "answered after, p50", "ms", is_latency=True),
    Figure("latency_p99_ms", "answered after, p99", "ms", is_latency=True),
    Figure("done_per_s", "requests", "/s", "higher"),
)
#: The first figure is the elapsed time divided by the round trips of all pairs, not a latency. In a
#: deterministic guest, where an instruction takes 1 ns, it measures how many instructions all CPUs
#: execute per round trip, as long as at least one CPU is busy.
_ROUND_TRIP = (
    Figure("round_trip_us", "time per round trip of all pairs", "µs"),
    Figure("instructions_per_switch", "instructions per switch", ""),
    Figure("clock_reads_per_switch", "reads of the clock per switch", ""),
)
_read_requests = _fields("requests", *(figure.name for figure in _REQUESTS))
_read_spawn = _fields("forks", *(figure.name for figure in _SPAWN))
_read_periodic = _fields("periodic", *(figure.name for figure in _PERIODIC))

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            "wakeup",
            "a task that sleeps 5 ms at a time, with two hogs per CPU",
            lambda cpus: _load(3, hogs=2 * cpus, sleepers=1, sleep_us=5000, work_us=0),
            _LATE,
            _fields("sleepers", *(figure.name for figure in _LATE)),
        ),
        Workload(
            "spawn",
            "starting a short command, with two hogs per CPU",
            lambda cpus: _load(4, hogs=2 * cpus, forks_per_s=25),
            _SPAWN,
            _read_spawn,
        ),
        Workload(
            "spawn-forks",
            "starting a short command, with two forking threads per CPU, as in a build",
            lambda cpus: _load(4, fork_storms=2 * cpus, forks_per_s=25),
            _SPAWN,
            _read_spawn,
        ),
        Workload(
            "requests",
            "a server: two workers per CPU, 1 ms of work per request",
            lambda cpus: _load(3, workers=2 * cpus, request_us=1000),
            _REQUESTS,
            _read_requests,
        ),
        Workload(
            "locks",
            "a server: three workers for two CPUs, which hold a lock of their CPU while they work",
            lambda cpus: _load(3, workers=3 * cpus // 2, request_us=700, locks="cpu"),
            _REQUESTS,
            _read_requests,
        ),
        Workload(
            "pingpong",
            "two threads that pass a byte back and forth",
            lambda _: _load(1, pipes=1),
            _ROUND_TRIP,
            _round_trip,
            counts_instructions=True,
        ),
        Workload(
            "pingpong-pinned",
            "the same, pinned to one CPU",
            lambda _: _load(1, "--pin-pipes", pipes=1),
            _ROUND_TRIP,
            _round_trip,
            counts_instructions=True,
        ),
        Workload(
            "pingpong-many",
            "the same, three pairs per CPU",
            lambda cpus: _load(1, pipes=3 * cpus),
            _ROUND_TRIP,
            _round_trip,
            counts_instructions=True,
        ),
        Workload(
            "scale",
            "the same, one pair per CPU: compare topologies",
            lambda cpus: _load(1, pipes=cpus),
            _ROUND_TRIP,
            _round_trip,
            counts_instructions=True,
        ),
        Workload(
            "messaging",
            "3 groups of 4 senders and 4 receivers",
            lambda _: _load(2, groups=3),
            (Figure("messages_per_s", "messages", "/s", "higher"),),
            _fields("groups", "messages_per_s"),
        ),
        Workload(
            "frames",
            "60 frames per second, 6 ms of work each, with two hogs per CPU",
            lambda cpus: _load(4, hogs=2 * cpus, periodic=1, period_us=16_667, period_work_us=6000),
            _PERIODIC,
            _read_periodic,
        ),
        Workload(
            "audio",
            "1 ms of work every 10 ms, with two hogs per CPU",
            lambda cpus: _load(4, hogs=2 * cpus, periodic=1, period_us=10_000, period_work_us=1000),
            _PERIODIC,
            _read_periodic,
        ),
        Workload(
            "throughput",
            "two hogs per CPU",
            lambda cpus: _load(3, hogs=2 * cpus),
            (Figure("cpu_percent", "CPU time of the hogs", "%", "higher"),),
            _throughput,
        ),
        Workload(
            "fairness",
            "two hogs per CPU, half of them at nice 5",
            lambda cpus: _load(4, hogs=2 * cpus, hog_nices=",".join(str(nice) for nice in NICES)),
            (Figure("off_max_percent", "largest deviation from its share", "%"),),
            _fairness,
        ),
        Workload(
            "economy",
            "a server of four clients, which work more than it does, with five hogs per CPU",
            lambda cpus: _load(4, hogs=5 * cpus, clients=4),
            (
                Figure("server_percent", "CPU time of the server", "% of one", "higher"),
                Figure("hog_percent", "CPU time of a hog", "% of one", "higher"),
                Figure("requests_per_s", "requests", "/s", "higher"),
            ),
            _economy,
        ),
        Workload(
            "idle",
            "idle CPUs while tasks wait: hogs, sleepers, pipes and short commands",
            lambda cpus: _load(6, hogs=2 * cpus, sleepers=4, pipes=1, forks_per_s=25),
            (
                Figure("idle_percent", "idle", "%"),
                Figure("idle_max_us", "longest idle period", "µs", is_latency=True),
            ),
            lambda *_: {},
            switches=("--idle", "--comm", "swapper*", "--seconds", "2"),
        ),
        Workload(
            "cost",
            "overhead of the scheduler: hogs, sleepers, pipes and short commands",
            lambda cpus: _load(2, hogs=cpus, sleepers=4, pipes=1, forks_per_s=25),
            (
                Figure("bpf_runs_per_switch", "runs of BPF programs per switch", ""),
                Figure("bpf_ns_per_switch", "time in BPF programs per switch", "ns"),
                Figure("syscalls_per_switch", "system calls of the scheduler per switch", ""),
            ),
            lambda *_: {},
            counts_cost=True,
        ),
        Workload(
            "hackbench",
            "hackbench: 3 groups of threads, 60 messages",
            lambda _: ["hackbench", "-T", "-g", "3", "-l", "60"],
            (Figure("time_s", "time", "s"),),
            _hackbench,
            program="hackbench",
        ),
        Workload(
            "stress-ng",
            "stress-ng: two CPU stressors per CPU",
            lambda cpus: [
                *("stress-ng", "--cpu", str(2 * cpus), "--cpu-method", "int64"),
                *("--timeout", "3", "--metrics-brief"),
            ],
            (Figure("bogo_ops_per_s", "operations", "/s", "higher"),),
            _stress_ng,
            program="stress-ng",
        ),
        Workload(
            "schbench",
            "schbench: one message thread, 6 workers",
            lambda _: ["schbench", "-m", "1", "-t", "6", "-F", "16", "-r", "3"],
            tuple(
                Figure(f"{what}_{rank}_us", f"{what}, {rank}", "µs", is_latency=True)
                for what in ("wakeup", "request")
                for rank in ("p50", "p99")
            ),
            _schbench,
            program="schbench",
        ),
    )
}

#: Figures of every workload, in addition to its own, for schedulers that have a process.
OF_SCHEDULER = (
    Figure("scheduler_cpu_percent", "CPU of the scheduler's process", "% of one"),
    Figure("scheduler_memory_mib", "peak resident memory of the scheduler", "MiB"),
    Figure("switch_cost_ns", "CPU time of the scheduler per switch", "ns"),
)
