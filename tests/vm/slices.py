# SPDX-License-Identifier: GPL-2.0-only
"""Lengths of runs, from the kernel's context switches. The guest is deterministic, because in other
guests the host delays ticks."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence

from recorder import preempted_ns

#: Three hogs, which share one CPU.
HOGS = "scx_load --hogs 3 --sleepers 0 --pipes 0 --forks-per-s 0"

ROUND = """
COMMAND & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
nice -n 5 taskset 2 HOGS >/dev/null & load=$!
sleep 0.3
scx_switches --comm hog --seconds 1 --json
kill -INT $load
wait $load || exit 1
kill -INT $scheduler
wait $scheduler
"""


def check_slices(
    replayed: Callable[[str], str], command: str, slices_us: Sequence[int], nr_runs_min: int
) -> None:
    """Checks the median length of runs that end by preemption, with each of these values of the
    option --slice-us. There must be at least `nr_runs_min` such runs."""
    rounds = [
        ROUND.replace("COMMAND", f"{command} --slice-us {slice_us}").replace("HOGS", HOGS)
        for slice_us in slices_us
    ]
    printed = replayed("zcat /proc/config.gz 2>/dev/null | grep ^CONFIG_HZ=" + "".join(rounds))
    hz = re.search(r"^CONFIG_HZ=(\d+)", printed, re.MULTILINE)
    tick_ns = 1_000_000_000 // int(hz[1] if hz else 250)
    for slice_us, runs in zip(slices_us, preempted_ns(printed), strict=True):
        slice_ns = slice_us * 1000
        assert len(runs) >= nr_runs_min
        median_ns = statistics.median(runs)
        print(f"slice {slice_us} us: median of {len(runs)} runs {median_ns / 1000:.0f} us")
        # The kernel ends a slice at the first tick after it has expired.
        assert 0.98 * slice_ns <= median_ns <= slice_ns + 1.05 * tick_ns
