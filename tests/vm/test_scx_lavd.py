# SPDX-License-Identifier: GPL-2.0-only
"""scx_lavd on a real kernel; more in test_deadlines.py."""

from __future__ import annotations

import json
import re
import signal
import statistics
from collections import Counter
from collections.abc import Callable

import pytest
from figures import Replayed, measure, record_runs, scx_load
from hybrid import busy_cpus, make_hybrid, set_profile
from loads import MIXED, QUIET
from sched_ext import (
    TIMEOUT_S,
    Load,
    Start,
    counters,
    state,
    wait_for,
)
from vm import topology
from vm.guest import Guest


@pytest.mark.every_topology
def test_schedules_under_load(guest: Guest, start: Start, load: Load) -> None:
    process = start("scx_lavd", "--stats", "0.5").wait_enabled()
    load("--hogs", str(2 * len(guest.topology.online)), *MIXED)
    wait_for("a task waits", lambda: counters(process.wait_lines(1)[-1])["queued"] > 0)
    last = counters(process.wait_lines(1)[-1])
    assert last["active"] == len(guest.topology.online)
    assert last["sched"] > 0
    assert last["max_lat_cri"] > last["avg_lat_cri"] > 0
    assert process.end(signal.SIGINT) == 0
    assert state(guest) == "disabled"


def samples(guest: Guest, wanted: int) -> list[dict[str, str]]:
    """At most `wanted` samples: the rows of the tables that --monitor-sched-samples prints, one
    table per second."""
    command = f"scx_lavd --monitor-sched-samples {wanted} | head -n {wanted + 1}"
    header, *rows = guest.run(command, is_urgent=True).check().stdout.splitlines()
    # A table may have fewer rows. The next table then begins with the header again.
    return [dict(zip(header.split(), row.split(), strict=True)) for row in rows if row != header]


@pytest.mark.once
def test_samples_show_criticality(guest: Guest, start: Start, load: Load) -> None:
    """A pair that passes a byte back and forth is more critical than periodic work, which is more
    critical than a task that computes."""
    process = start("scx_lavd").wait_enabled()
    load("--hogs", "4", "--sleepers", "0", "--pipes", "1", "--periodic", "1", "--forks-per-s", "0")
    of_names: dict[str, list[int]] = {"hog": [], "pinger": [], "periodic": []}

    def found_all() -> bool:
        for sample in samples(guest, 512):
            if sample["NAME"] in of_names:
                of_names[sample["NAME"]].append(int(sample["LAT_CRI"]))
        return min(map(len, of_names.values())) >= 3

    wait_for("samples of all tasks", found_all)
    hog, pipe, periodic = (statistics.median(of_names[name]) for name in of_names)
    print(of_names)
    assert pipe > periodic > hog
    assert process.end(signal.SIGINT) == 0


def test_frames_are_on_time_beside_hogs(replayed: Replayed) -> None:
    """Frames of 2 ms at 60 Hz, beside two hogs for each CPU."""
    load = "--hogs 8 --periodic 1 --period-work-us 2000 --seconds 5"
    figures, _ = measure(replayed, "scx_lavd", load)
    print(figures["periodic"])
    # A frame that is due just when the hogs start may be late.
    assert figures["periodic"]["missed"] <= 1
    # A frame waits for less than 2 ms, and takes 2 ms. The first two frames, less than 1 % of all,
    # may wait longer, because nothing is known about the task yet.
    assert figures["periodic"]["done_after_p99_ms"] < 4


def test_a_new_sleeper_waits_for_one_slice_at_most(replayed: Replayed) -> None:
    """The hogs are as new as the sleeper, and some have not run when it wakes up. Hogs are not
    preempted during their first slices, which begin and end at different times. With 12 seeds, the
    sleeper waited for at most 4.0 ms."""
    worst_us = []
    for hogs in (8, 12):
        load = f"--hogs {hogs} --sleepers 1 --sleep-us 5000 --work-us 0 --seconds 0.5"
        figures, _ = measure(replayed, "scx_lavd", load)
        worst_us.append(figures["sleepers"]["lateness_max_us"])
    print(worst_us)
    assert max(worst_us) < 6000


#: Runs a load under the kernel's own scheduler, then under scx_lavd with and without its extra
#: slice for lock holders.
CONVOY = """
LOAD
for option in "" --no-futex-boost; do
    scx_lavd $option 2>/dev/null & scheduler=$!
    until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
    LOAD
    kill -INT $scheduler
    wait $scheduler
done
"""


def test_hogs_do_not_stop_a_lock_convoy(replayed: Replayed) -> None:
    """Four workers share a lock, which they hold for 6 ms at a time, beside two hogs for each CPU.
    In 10 runs, they did 1.8 to 2.3 times as much as under the kernel's own scheduler. The extra
    slice made hardly any difference: a worker has an early deadline anyway."""
    load = "--hogs 8 --workers 4 --locks group --request-us 30000 --seconds 3"
    printed = replayed(CONVOY.replace("LOAD", scx_load(load)))
    runs = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    kernel, boosted, plain = (json.loads(text)["requests"]["done"] for text in runs)
    print(kernel, boosted, plain)
    assert boosted > 1.5 * kernel
    assert boosted > 0.9 * plain


def on_eight_cpus(replayed_on: Callable[[topology.Topology, str], str]) -> Replayed:
    shape = topology.find("1x8x1")
    return lambda script: replayed_on(shape, script)


def test_a_low_load_stays_on_few_cpus(
    replayed_on: Callable[[topology.Topology, str], str],
) -> None:
    """The load needs a tenth of the machine. Two of eight CPUs suffice, and the other CPUs are
    hardly used, once the averages have settled. Even if all sleepers wake up at once, the expected
    wait for an active CPU is not above WAIT_US, so no sleeper may use an inactive CPU. Without core
    compaction, the share of the other CPUs is 0.25 to 0.52, depending on the seed."""
    load = scx_load("--sleepers 8 --sleep-us 4500 --work-us 500 --seconds 60")
    others = {}
    replayed = on_eight_cpus(replayed_on)
    for mode in ("--balanced", "--no-core-compaction"):
        runs = record_runs(replayed, f"scx_lavd {mode}", load, "sleeper", seconds=1)
        used_ns: Counter[int] = Counter()
        for run in runs:
            if run["start_ns"] > runs[0]["start_ns"] + 500_000_000:
                used_ns[run["cpu"]] += run["ran_ns"]
        print(used_ns)
        others[mode] = sum(ns for _, ns in used_ns.most_common()[2:]) / sum(used_ns.values())
    assert others["--balanced"] < 0.05
    assert others["--no-core-compaction"] > 0.15


def test_all_cpus_are_used_when_the_load_rises(
    replayed_on: Callable[[topology.Topology, str], str],
) -> None:
    """The hogs start on an idle machine, and soon use all CPUs, even in the mode that saves most
    power: in the 0.5 s, each hog gets more than 0.44 s of CPU time."""
    load = "--hogs 8 --seconds 0.5"
    figures, _ = measure(on_eight_cpus(replayed_on), "scx_lavd --powersave", load)
    print(figures)
    # The start of the load also takes a part of the 0.5 s.
    assert figures["hogs"]["cpu_min_s"] > 0.44


@pytest.mark.once
def test_modes_prefer_big_or_little_cpus(guest: Guest, start: Start, load: Load) -> None:
    with make_hybrid(guest, little=(0, 1)):
        for mode, first in (("--performance", {2, 3}), ("--powersave", {0, 1})):
            process = start("scx_lavd", mode).wait_enabled()
            hog = load("--hogs", "1", *QUIET)
            wait_for(
                f"{mode}: the hog is on one of {first}",
                lambda first=first: len(busy_cpus(guest) & first) == 1,
            )
            hog.signal(signal.SIGINT)
            assert hog.wait(TIMEOUT_S) == 0
            assert process.end(signal.SIGINT) == 0


@pytest.mark.once
def test_mode_follows_the_power_profile(guest: Guest, start: Start) -> None:
    """The mode changes without a restart of the scheduler."""
    with make_hybrid(guest, little=(2, 3)):
        process = start("scx_lavd", "--autopower", "--stats", "0.5").wait_enabled()
        modes = ("balanced", "powersave", "performance")
        for profile, mode in zip(("balance_power", "power", "performance"), modes, strict=True):
            set_profile(guest, profile)
            wait_for(f"mode {mode}", lambda mode=mode: f"mode={mode}" in process.wait_lines(1)[-1])
        assert "restarting" not in process.process.stderr()
        assert process.end(signal.SIGINT) == 0
