# SPDX-License-Identifier: GPL-2.0-only
"""What is expected of the recordings of the experiment fifo-rr."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .fifo_rr import COUNTS, FIRST_MS, HOG, JOB, TURNS_MIN, Recording
from .trace import NS_PER_MS, Turn, percentile

#: Tolerance of times, as a fraction, because a turn begins and ends some microseconds after a tick.
_SLACK = 0.02


@dataclass(frozen=True)
class Check:
    """An expectation, and whether it was met."""

    what: str
    measured: str
    is_met: bool

    def text(self) -> str:
        """The check as a line of text."""
        return f"{self.what:50} {self.measured:40} {'' if self.is_met else 'not met'}".rstrip()


def overlong(of: Recording, count: int) -> list[Turn]:
    """The turns in round robin that lasted longer than a slice and a tick."""
    limit_ms = (of.slice_ms + of.tick_ms) * (1 + _SLACK)
    return [turn for turn in of.slices(count) if turn.ran_ms > limit_ms]


def resumed_after_slice(turn: Turn, slice_ms: float) -> bool:
    """Whether the earlier runs of a turn had used up the slice when the last run began."""
    return sum(turn.runs_ns[:-1]) / NS_PER_MS >= slice_ms * (1 - _SLACK)


def interrupters(of: Recording, count: int) -> Counter[str]:
    """The names of the tasks that ran just before the last run of each overlong turn, with the
    number of turns. Names are cut at the first slash, so all kernel workers count as `kworker`."""
    runs = of.rounds[f"rr{count}"]
    found: Counter[str] = Counter()
    for turn in overlong(of, count):
        last = max(index for index, run in enumerate(runs) if run.stop_ns == turn.stop_ns)
        found[runs[last - 1].comm.partition("/")[0]] += 1
    return found


def checks(of: Recording) -> Iterator[Check]:
    """All expectations on the recording of a guest."""
    for count in COUNTS:
        yield from _of_slices(of, count)
    if of.slice_ms == FIRST_MS:
        for name, count in (("fifo3", 3), ("fifo6", 6), ("mixed", 3)):
            yield _of_jobs(of, name, count)
        yield _of_hogs_around(of.turns("mixed"))
        yield _of_alone(of)


def _of_slices(of: Recording, count: int) -> Iterator[Check]:
    name = f"slice {of.slice_ms} ms, {count} tasks"
    found = of.slices(count)
    pids = [turn.pid for turn in found]
    least = min((pids.count(pid) for pid in pids), default=0)
    yield Check(f"{name}: turns per task", f"{least}, at least {TURNS_MIN}", least >= TURNS_MIN)
    in_order = len(set(pids)) == count and all(
        pid == before for pid, before in zip(pids[count:], pids, strict=False)
    )
    yield Check(f"{name}: fixed order of the tasks", "yes" if in_order else "no", in_order)
    if not found:
        return
    low, high = of.slice_ms * (1 - _SLACK), (of.slice_ms + of.tick_ms) * (1 + _SLACK)
    p50, shortest, longest = (
        percentile([turn.ran_ms for turn in found], rank) for rank in (50, 0, 100)
    )
    bounds = f"{of.slice_ms} to {of.slice_ms + of.tick_ms:g} ms"
    yield Check(f"{name}: p50 of the turns", f"{p50:.2f} ms, {bounds}", low <= p50 <= high)
    high += of.tick_ms
    bounds = f"{of.slice_ms} to {of.slice_ms + 2 * of.tick_ms:g} ms"
    is_met = low <= shortest and longest <= high
    yield Check(f"{name}: all turns", f"{shortest:.2f} to {longest:.2f} ms, {bounds}", is_met)
    long = overlong(of, count)
    resumed = sum(resumed_after_slice(turn, of.slice_ms) for turn in long)
    what = f"{name}: overlong turns interrupted at their end"
    yield Check(what, f"{resumed} of {len(long)}", resumed == len(long))


def jobs(found: Sequence[Turn]) -> dict[int, list[Turn]]:
    """The turns of each job, by PID. The PIDs are in the order of arrival, because the parent
    starts the jobs one after the other."""
    pids = sorted({turn.pid for turn in found if turn.comm == JOB})
    return {pid: [turn for turn in found if turn.pid == pid] for pid in pids}


def _of_jobs(of: Recording, name: str, count: int) -> Check:
    by_pid = jobs(of.turns(name))
    starts = [of_job[0].start_ns for of_job in by_pid.values()]
    is_met = (
        len(by_pid) == count
        and all(len(of_job) == 1 for of_job in by_pid.values())
        and starts == sorted(starts)
        # A job's turn has to be longer than any turn of a task in round robin.
        and all(of_job[0].ran_ms > of.slice_ms + 2 * of.tick_ms for of_job in by_pid.values())
    )
    pieces = ", ".join(str(len(of_job)) for of_job in by_pid.values())
    return Check(f"{name}: one turn per job, in order of arrival", f"turns: {pieces}", is_met)


def _of_hogs_around(found: Sequence[Turn]) -> Check:
    comms = [turn.comm for turn in found]
    is_met = JOB in comms and comms[0] == comms[-1] == HOG
    return Check("mixed: round robin before and after the jobs", "yes" if is_met else "no", is_met)


def alone(of: Recording) -> Turn:
    """The longest turn of the round `alone`: that of the task that was alone at the end."""
    return max(of.turns("alone"), key=lambda turn: turn.ran_ms)


def _of_alone(of: Recording) -> Check:
    turn = alone(of)
    longest_ms = max(turn.runs_ns) / NS_PER_MS
    measured = f"{turn.ran_ms:.0f} ms, without a switch {longest_ms:.0f} ms, {of.nr_kept} slices"
    # The longest run has to be longer than any turn of a task in round robin, and the slice must
    # have been renewed more than five times.
    is_met = longest_ms > of.slice_ms + 2 * of.tick_ms and (of.nr_kept or 0) > 5
    return Check("alone: a task that is alone gets more slices", measured, is_met)


def check_moves(found: dict[str, tuple[int, int]]) -> Check:
    """With --percpu-local, the number of runs that begin on another CPU than the task's previous
    run is at most a tenth of the number without the option."""
    (free, local) = (found[name][1] for name in ("free", "local"))
    measured = f"{local}, without the option {free}"
    return Check("--percpu-local: migrations", measured, local * 10 <= free)
