# SPDX-License-Identifier: GPL-2.0-only
"""Each option of each Rust scheduler that changes scheduling (except those in LEFT_OUT), beside a
load in which no task may starve. What an option is for is tested elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from figures import Replayed, scx_load
from schedulers import RUST_SCHEDULERS

GOLDEN = Path(__file__).parents[1] / "unit/golden"

#: The options, with values far from the defaults.
OPTIONS = {
    "scx_bpfland": [
        *("--slice-us 20000", "--slice-us 100", "--slice-min-us 20000", "--slice-us-lag 0"),
        *("--slice-us-lag 1000000", "--local-kthreads", "--no-wake-sync", "--sticky-tasks"),
        *("--preferred-idle-scan", "--primary-domain 0x1", "--primary-domain 0xe", "--cpufreq"),
        *("--disable-smt --disable-numa", "--throttle-us 1000", "--idle-resume-us 100"),
    ],
    "scx_flash": [
        *("--slice-us 20000", "--slice-us 100", "--slice-us-lag 0", "--slice-us-lag 1000000"),
        *("--tickless", "--rr-sched", "--wakeup-throttle", "--primary-domain 0x1", "--cpufreq"),
        *("--disable-smt --disable-numa", "--throttle-us 1000", "--idle-resume-us 100"),
    ],
    "scx_lavd": [
        *("--autopower", "--performance", "--balanced", "--powersave", "--no-core-compaction"),
        *("--slice-max-us 20000", "--slice-max-us 500 --slice-min-us 100", "--pinned-slice-us 0"),
        *("--preempt-shift 10", "--no-preemption", "--no-wake-sync", "--no-slice-boost"),
        *("--no-futex-boost", "--no-freq-scaling"),
    ],
    "scx_economy": [
        *("--economy off", "--price-us 1000000", "--limit-us 1", "--limit-us 1000000"),
        *("--reserve-us 0", "--reserve-us 1000000", "--partial-pay", "--two-way"),
        *("--pipes", "--pipes --two-way --partial-pay --reserve-us 0 --limit-us 1000000"),
        *("--futex --futex-price-us 1000000", "--lag-max-us 1000", "--lag-max-us 1000000"),
        *("--slice-us 500", "--slice-us 20000"),
    ],
    "scx_rusty": [
        *("--slice-us-underutil 100 --slice-us-overutil 100", "--slice-us-underutil 20000"),
        *("--slice-us-overutil 20000", "--interval 0.1 --tune-interval 0.1"),
        *("--load-half-life 0.1", "--cpumasks 0x3 0xc", "--greedy-threshold 0"),
        *("--greedy-threshold 8", "--greedy-threshold-x-numa 1", "--no-load-balance"),
        *("--kthreads-local", "--balanced-kworkers", "--fifo-sched", "--cgroups"),
        *("--direct-greedy-under 0", "--direct-greedy-under 100", "--kick-greedy-under 0"),
        *("--kick-greedy-under 100", "--direct-greedy-numa", "--mempolicy-affinity"),
        "--perf 1024",
    ],
    "scx_rustland": [
        *("--slice-us 500 --slice-us-min 500", "--slice-us 10000 --slice-us-min 10000"),
        *("--slice-boost 0", "--slice-boost 1000", "--builtin-idle", "--full-user", "--fifo"),
        *("--low-power", "--disable-preemption", "--percpu-local"),
    ],
    "scx_rlfifo": ["--slice-us 1000", "--weighted", "--percpu-local", "--builtin-idle"],
    "scx_fifo": ["--slice-us 1000"],
}
#: Options that are not in OPTIONS, and why.
LEFT_OUT = {
    "--local-pcpu": "lets other tasks starve",
    "--autopilot": "is the default",
    "--cache-level": "has only one value",
    "--monitor-sched-samples": "loads no scheduler",
    "--explain": "loads no scheduler",
}

#: Leaves one CPU online, so that all tasks compete for it. One load is pinned to this CPU. The
#: other load may use four CPUs, so the scheduler does not treat its tasks as pinned. RUN runs both
#: loads under the scheduler with an option.
BEGIN = "for cpu in 1 2 3; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done"
RUN = """
echo "option OPTION"
SCHEDULER OPTION >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
    kill -0 $scheduler || exit 1
    sleep 0.1
done
taskset 1 PINNED >/tmp/pinned & pinned=$!
LOAD
wait $pinned
cat /tmp/pinned /sys/kernel/sched_ext/state
kill -INT $scheduler
wait $scheduler
"""


@pytest.mark.parametrize("scheduler", RUST_SCHEDULERS)
def test_each_option_is_tried_or_left_out(scheduler: str) -> None:
    own = (GOLDEN / f"{scheduler}.help").read_text().partition("Options of every scheduler")[0]
    listed = set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", own, re.MULTILINE))
    tried = {word for given in OPTIONS[scheduler] for word in given.split() if word[:2] == "--"}
    assert listed - {"--help", "--version"} - LEFT_OUT.keys() == tried


@pytest.mark.sampled
@pytest.mark.parametrize("scheduler", RUST_SCHEDULERS)
def test_no_option_lets_tasks_starve(replayed: Replayed, scheduler: str) -> None:
    """On one CPU: a pinned hog, three hogs, two tasks that wake each other, and a task that sleeps
    and wakes up. Two tasks that wake each other can keep a CPU for ever, if the scheduler lets a
    wakee precede all tasks that wait."""
    values = {
        "SCHEDULER": scheduler,
        "PINNED": scx_load("--hogs 1 --seconds 0.5"),
        "LOAD": scx_load("--hogs 3 --pipes 1 --sleepers 1 --seconds 0.5"),
    }
    script = BEGIN
    for option in OPTIONS[scheduler]:
        script += RUN.replace("OPTION", option)
    for name, value in values.items():
        script = script.replace(name, value)
    tried = replayed(script).split("option ")[1:]
    assert len(tried) == len(OPTIONS[scheduler])
    for printed in tried:
        option, _, rest = printed.partition("\n")
        figures = [json.loads(text) for text in re.findall(r"^\{.*?^\}", rest, re.M | re.DOTALL)]
        load, pinned = figures
        least_s = min(load["hogs"]["cpu_min_s"], pinned["hogs"]["cpu_min_s"])
        round_trips = load["pipes"]["round_trips"]
        late_us = load["sleepers"]["lateness_max_us"]
        print(f"{option:36} {least_s:.3f} s {round_trips:6} round trips, late by {late_us:.0f} us")
        assert "enabled" in rest.splitlines(), printed
        # A fair share is 0.07 s or more, of which --throttle-us 1000 takes more than half.
        assert least_s > 0.02, printed
        # In a FIFO with slices of 20 ms, a round of all tasks takes 0.1 s, and there are two rounds
        # per round trip.
        assert round_trips >= 1, printed
        assert late_us < 400_000, printed
