# SPDX-License-Identifier: GPL-2.0-only
"""The page of the experiment fifo-rr, from its template, and its pictures."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

import markdown
from bench.summary import number

from . import checks, timeline
from .fifo_rr import COUNTS, FIRST_MS, HOG, JOB, SLICES_MS, Recording
from .trace import NS_PER_MS, percentile

_TEMPLATE = Path(__file__).with_name("fifo-rr.md.in")
#: Labels of the lanes in the pictures.
_LABELS = {HOG: "nice 5", JOB: "nice -5"}
#: The number of runs before and after the longest run in the excerpt of a recording.
_AROUND = 3


@dataclass(frozen=True)
class Results:
    """All results of the experiment."""

    kernel: str
    emulator: str
    seed: int
    #: The recordings, by slice in ms.
    recordings: Mapping[int, Recording]
    #: See fifo_rr.read_moves().
    moves: Mapping[str, tuple[int, int]]
    #: See server.rows().
    latencies: Sequence[tuple[str, int, str, Sequence[float]]]

    @property
    def first(self) -> Recording:
        """The recording that has all rounds."""
        return self.recordings[FIRST_MS]


def slices(results: Results) -> str:
    """The table of turns in round robin."""
    rows = []
    for of in results.recordings.values():
        for count in COUNTS:
            turns = of.slices(count)
            lengths = [turn.ran_ms for turn in turns]
            ranks = [f"{percentile(lengths, rank):.2f}" for rank in (50, 90, 100)]
            runs = statistics.mean(len(turn.runs_ns) for turn in turns)
            long = len(checks.overlong(of, count))
            rows.append((f"{of.slice_ms} ms", count, len(turns), *ranks, long, f"{runs:.1f}"))
    head = ("slice", "tasks", "turns", "p50, ms", "p90, ms", "max, ms", "overlong", "runs per turn")
    return markdown.table(head, rows)


def completion(of: Recording) -> str:
    """The table of the tasks that run to completion."""
    rows = []
    for name, count in (("fifo3", 3), ("fifo6", 6)):
        by_pid = checks.jobs(of.turns(name))
        start_ns = min(of_job[0].start_ns for of_job in by_pid.values())
        end_ns = start_ns
        for index, of_job in enumerate(by_pid.values(), 1):
            begin_ns, before_ns, end_ns = of_job[0].start_ns, end_ns, of_job[-1].stop_ns
            times = [f"{(time_ns - start_ns) / NS_PER_MS:.1f}" for time_ns in (begin_ns, end_ns)]
            ran = f"{sum(turn.ran_ms for turn in of_job):.1f}"
            runs = sum(len(turn.runs_ns) for turn in of_job)
            is_after = "yes" if begin_ns >= before_ns else "no"
            rows.append((f"{count}, number {index}", *times, ran, len(of_job), runs, is_after))
    ends = ("began, ms", "ended, ms", "CPU time, ms")
    return markdown.table(
        ("tasks", *ends, "turns", "runs", "after the end of the previous one"), rows
    )


def excerpt(of: Recording) -> str:
    """The longest run of the task that was alone in the round `alone`, and the runs around it."""
    runs = of.rounds["alone"]
    longest = _longest(of)
    near = runs[max(0, longest - _AROUND) : longest + _AROUND + 1]
    rows = [
        (
            f"`{run.comm}`",
            f"{(run.start_ns - near[0].start_ns) / NS_PER_MS:.3f}",
            f"{run.ran_ns / NS_PER_MS:.3f}",
        )
        for run in near
    ]
    return markdown.table(("task", "began, ms", "ran, ms"), rows)


def interrupters(results: Results) -> str:
    """The names of the tasks that caused overlong turns, each with the number of turns."""
    found: Counter[str] = Counter()
    for of in results.recordings.values():
        for count in COUNTS:
            found += checks.interrupters(of, count)
    return ", ".join(f"`{name}` ({times})" for name, times in found.most_common())


def _longest(of: Recording) -> int:
    """The index of the longest run of the task that was alone, from the start of its turn on."""
    runs, turn = of.rounds["alone"], checks.alone(of)
    return max(
        (index for index, run in enumerate(runs) if run.start_ns >= turn.start_ns),
        key=lambda index: runs[index].ran_ns if runs[index].pid == turn.pid else 0,
    )


def latencies(results: Results) -> str:
    """The table of the server's latencies."""
    head = ("request", "nice", "scheduler", "wakeup late by, p50, µs", "p99, µs")
    head += ("answered after, p50, ms", "p99, ms", "requests per s")
    rows = [
        (request, nice, scheduler, *map(number, figures))
        for request, nice, scheduler, figures in results.latencies
    ]
    return markdown.table(head, rows)


def pictures(results: Results) -> Iterator[tuple[str, str]]:
    """The name of each file beside the page, and its content."""
    for of in results.recordings.values():
        for count in COUNTS:
            title = f"{count} tasks of nice 5, slice {of.slice_ms} ms"
            turns = of.turns(f"rr{count}")
            yield f"fifo-rr-{of.slice_ms}ms-{count}.svg", timeline.draw(turns, title, _LABELS)
    titles = {
        "fifo3": "3 tasks of nice -5",
        "fifo6": "6 tasks of nice -5",
        "mixed": "3 tasks of nice -5 beside 3 tasks of nice 5",
        "alone": "2 tasks of nice 5, of which one ends",
    }
    for name, title in titles.items():
        turns = results.first.turns(name)
        yield f"fifo-rr-{name}.svg", timeline.draw(turns, title, _LABELS)


def _gallery(count: int) -> str:
    return "\n\n".join(
        f"Slice {slice_ms} ms:\n\n"
        f"![{count} tasks of nice 5 take turns](fifo-rr-{slice_ms}ms-{count}.svg)"
        for slice_ms in SLICES_MS
    )


def text(results: Results) -> str:
    """The page."""
    of = results.first
    alone, runs, longest = checks.alone(of), of.rounds["alone"], _longest(of)
    return Template(_TEMPLATE.read_text()).substitute(
        kernel=results.kernel,
        emulator=results.emulator,
        seed=results.seed,
        tick=f"{of.tick_ms:g}",
        hz=round(1000 / of.tick_ms),
        slices=slices(results),
        interrupters=interrupters(results),
        completion=completion(of),
        three=_gallery(3),
        six=_gallery(6),
        excerpt=excerpt(of),
        longest=f"{runs[longest].ran_ns / NS_PER_MS:.1f}",
        alone=f"{alone.ran_ms:.0f}",
        kept=of.nr_kept,
        free_runs=results.moves["free"][0],
        free_moves=results.moves["free"][1],
        local_runs=results.moves["local"][0],
        local_moves=results.moves["local"][1],
        latencies=latencies(results),
    )
