# SPDX-License-Identifier: GPL-2.0-only
"""The latencies of a small server beside two hogs of nice 5, as rounds of the bench. There is a
round for each length of requests, nice value of the server, and scheduler."""

from __future__ import annotations

import json
from pathlib import Path

from bench.measure import Place, Subject
from bench.rounds import EEVDF, Plan, Results
from bench.workloads import Figure, Values, Workload
from vm import topology
from vm.kernels import Kernel

from .fifo_rr import FIRST_MS, SHAPE

#: CPU times of requests: one is shorter than the slice of scx_rlfifo, the other is longer.
REQUESTS_MS = (2, 25)
NICES = (-5, 5)

_SECONDS = 3
_ONLY = "--pipes 0 --forks-per-s 0"
_COMMAND = """\
nice -n 5 scx_load --hogs 2 --sleepers 0 {only} --seconds {longer:g} >/dev/null & hogs=$!
sleep 0.1
nice -n {nice} scx_load --hogs 0 --sleepers 1 --sleep-us 5000 --work-us 100 --workers 2 \\
    --request-us {request_us} {only} --seconds {seconds} --json || exit 1
wait $hogs
"""

FIGURES = (
    Figure("lateness_p50_us", "wakeup late by, p50", "µs", is_latency=True),
    Figure("lateness_p99_us", "p99", "µs", is_latency=True),
    Figure("latency_p50_ms", "request answered after, p50", "ms", is_latency=True),
    Figure("latency_p99_ms", "p99", "ms", is_latency=True),
    Figure("done_per_s", "requests per second", "/s", "higher"),
)


def name(request_ms: int, nice: int) -> str:
    """The name of a workload."""
    return f"requests of {request_ms} ms at nice {nice}"


def _read(output: str, _: int) -> Values:
    load = json.loads(output)
    figures = load["sleepers"] | load["requests"]
    return {figure.name: figures[figure.name] for figure in FIGURES}


def _workload(request_ms: int, nice: int) -> Workload:
    script = _COMMAND.format(
        only=_ONLY,
        nice=nice,
        request_us=request_ms * 1000,
        seconds=_SECONDS,
        longer=_SECONDS + 0.2,
    )
    return Workload(
        name(request_ms, nice),
        "a server beside two hogs of nice 5",
        lambda _: ["sh", "-c", script],
        FIGURES,
        _read,
        # Add nice(1) to the guest, because the guest's busybox may lack it.
        program="nice",
    )


def plan(kernel: Kernel, build: Path, seed: int) -> Plan:
    """The rounds of the bench."""
    rust = build / "rust"
    subjects = (
        EEVDF,
        Subject("scx_rustland", rust / "scx_rustland"),
        Subject(
            "scx_rlfifo --weighted",
            rust / "scx_rlfifo",
            ("--weighted", "--slice-us", str(FIRST_MS * 1000)),
        ),
    )
    workloads = tuple(_workload(request, nice) for request in REQUESTS_MS for nice in NICES)
    return Plan(Place(kernel, topology.find(SHAPE), rust), subjects, workloads, (seed,))


def rows(plan: Plan, results: Results) -> list[tuple[str, int, str, list[float]]]:
    """Rows of the length of a request, the nice value of the server, the scheduler, and the
    figures."""
    found = []
    for request in REQUESTS_MS:
        for nice in NICES:
            for subject in plan.subjects:
                columns = (
                    results.values(subject.name, name(request, nice), figure.name)
                    for figure in FIGURES
                )
                values = [value for column in columns for value in column]
                found.append((f"{request} ms", nice, subject.name, values))
    return found
