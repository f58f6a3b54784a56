# SPDX-License-Identifier: GPL-2.0-only
"""The guests of the experiment fifo-rr: with `scx_rlfifo --weighted`, tasks of nice -5 run to
completion, and tasks of nice 5 run in round robin. This module has the scripts of the guests, and
parses what the scripts have recorded. A round is one load that is recorded in a guest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bench.measure import sections
from vm.programs import lacking

from .trace import NS_PER_MS, Run, TraceError, Turn, contended, moves, parse, tick_ns, turns

#: The lengths of slices and the numbers of tasks in the rounds with tasks in round robin.
SLICES_MS = (10, 20, 30)
COUNTS = (3, 6)
#: The guest with this slice also records the rounds of _OTHERS.
FIRST_MS = SLICES_MS[0]
#: Names of the tasks in the recordings: HOG has nice 5, JOB has nice -5.
HOG, JOB = "hog", "job"
#: The topology of the guests that record turns, and of the guest that counts migrations.
SHAPE, SHAPE_OF_MOVES = "1cpu", "smp4"

#: The minimum number of turns per task in a recording.
TURNS_MIN = 10
#: Number of hogs in the two rounds that count migrations: 1.5 per CPU.
_HOGS_OF_MOVES = 6

_PRELUDE = """\
section() { echo "== $1"; }
tick() { section $1; grep -m 2 -E '^(now at|jiffies)' /proc/timer_list; }
failed() { tail -n 1 /tmp/scheduler; exit 1; }
start() {
    scx_rlfifo --weighted "$@" >/tmp/scheduler 2>&1 & scheduler=$!
    until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
        kill -0 $scheduler 2>/dev/null || failed
        sleep 0.1
    done
}
stop() { kill -INT $scheduler; wait $scheduler || failed; }
record() {
    rm -f /tmp/recorder
    scx_switches --json >/tmp/trace 2>/tmp/recorder & switches=$!
    until grep -q recording /tmp/recorder 2>/dev/null; do sleep 0.02; done
}
recorded() { kill -INT $switches; wait $switches || exit 1; section $1; cat /tmp/trace; }
hogs() {
    nice -n 5 scx_load --hogs $1 --seconds $2 --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null
}
echo 'n=0; while [ $n -lt 5000 ]; do n=$((n + 1)); done' >/tmp/job
# The parent sleeps once, so that its nice value is in effect, and starts all jobs at once.
batch() {
    nice -n -5 sh -c "sleep 0.05
        i=0
        while [ \\$i -lt $1 ]; do
            i=\\$((i + 1))
            (printf job >/proc/self/comm; . /tmp/job) &
        done
        wait"
}
"""

_OTHERS = """\
record; batch 3; recorded fifo3
record; batch 6; recorded fifo6
record
batch 3 & jobs=$!
hogs 3 0.8
wait $jobs
recorded mixed
record
hogs 1 0.9 & load=$!
hogs 1 0.3
section before; scxstats
wait $load
section after; scxstats
recorded alone
"""


@dataclass(frozen=True)
class Recording:
    """What the guest with the slice `slice_ms` has printed."""

    slice_ms: int
    tick_ms: float
    #: The runs, by the name of the round, such as `rr3` or `fifo3`.
    rounds: dict[str, list[Run]]
    #: How often a task continued at the end of its slice, in the part of the round `alone` with
    #: one hog. None if the guest did not run this round.
    nr_kept: int | None = None

    def turns(self, name: str) -> list[Turn]:
        """The turns of the tasks of a round."""
        return turns(self.rounds[name], (HOG, JOB))

    def slices(self, count: int) -> list[Turn]:
        """The turns of `count` tasks in round robin, while all of them compute."""
        return contended(self.turns(f"rr{count}"))


def programs(build: Path) -> list[Path]:
    """The programs that the scripts need."""
    tools = ("scx_rlfifo", "scx_load", "scx_switches", "scxstats")
    return [*(build / "rust" / name for name in tools), *lacking()]


def script(slice_ms: int) -> str:
    """The script of the guest with this slice. It runs round robin with each number of tasks, and
    with the first slice also the other rounds."""
    lines = [_PRELUDE, f"tick begin; start --slice-us {slice_ms * 1000}\n"]
    for count in COUNTS:
        # contended() drops at least the first and the last turn of each task, so record more turns
        # than the minimum.
        seconds = max(0.65, (TURNS_MIN + 3) * count * (slice_ms + 4) / 1000)
        lines.append(f"record; hogs {count} {seconds:g}; recorded rr{count}\n")
    if slice_ms == FIRST_MS:
        lines.append(_OTHERS)
    return "".join([*lines, "stop; tick end\n"])


def script_of_moves() -> str:
    """The script that records more hogs than CPUs with and without --percpu-local."""
    run = f"record; hogs {_HOGS_OF_MOVES} 0.6; recorded"
    first, second = f"start --slice-us {FIRST_MS}000", "--percpu-local"
    return f"{_PRELUDE}{first}; {run} free; stop\n{first} {second}; {run} local; stop\n"


def read(printed: str, slice_ms: int) -> Recording:
    """The recording in the output of a script. Raises TraceError."""
    found = sections(printed)
    if "end" not in found:
        raise TraceError(_last_line(printed))
    others = ("begin", "end", "before", "after")
    traces = {name: parse(text) for name, text in found.items() if name not in others}
    kept = [_kept(found[name]) for name in ("before", "after") if name in found]
    tick_ms = tick_ns(found["begin"], found["end"]) / NS_PER_MS
    return Recording(slice_ms, tick_ms, traces, kept[1] - kept[0] if kept else None)


def read_moves(printed: str) -> dict[str, tuple[int, int]]:
    """The number of runs of the hogs, and how many of them began on another CPU than the hog's
    previous run: without (`free`) and with (`local`) --percpu-local. Raises TraceError."""
    found = sections(printed)
    if "local" not in found:
        raise TraceError(_last_line(printed))
    return {name: moves(parse(text), HOG) for name, text in found.items()}


def _last_line(printed: str) -> str:
    return (printed.strip().splitlines() or ["the guest printed nothing"])[-1]


def _kept(statistics: str) -> int:
    match = re.search(r"^rl_nr_kept +(\d+)$", statistics, re.MULTILINE)
    if not match:
        raise TraceError("scxstats printed no rl_nr_kept")
    return int(match[1])
