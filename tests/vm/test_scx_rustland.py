# SPDX-License-Identifier: GPL-2.0-only
"""scx_rustland on a real kernel: the effect of each option, and responsiveness under
overload."""

from __future__ import annotations

import json
import re
import signal
import statistics
from collections.abc import Callable

import pytest
from counted import counted
from recorder import Record, preempted_ns
from sched_ext import TIMEOUT_S, Load, Scheduler, Start, wait_for
from shares import NICE_0_TO_5, shares
from statistics_client import total, wait_served
from vm.guest import Guest

IDLE = ("--hogs", "0", "--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")
SLEEPERS = ("--hogs", "0", "--sleepers", "8", "--pipes", "0", "--forks-per-s", "0")
HOGS_AND_SLEEPERS = ("--hogs", "8", "--sleepers", "4", "--pipes", "0", "--forks-per-s", "0")


def serve(guest: Guest, start: Start, *args: str) -> Scheduler:
    """Starts the scheduler, and waits until it serves statistics."""
    scheduler = start("scx_rustland", *args).wait_enabled()
    wait_served(guest)
    return scheduler


def decided_share(counts: Record) -> float:
    """The share of enqueues for which the policy was asked for a decision. The enqueues of the
    policy thread, one for each of its wakeups, do not count."""
    not_asked = counts["nr_kernel_dispatches"] - counts["nr_wakeups"]
    return counts["nr_asked"] / (counts["nr_asked"] + not_asked)


def test_interactive_tasks_preempt_others_unless_disabled(
    replayed: Callable[[str], str],
) -> None:
    options = ("", "--disable-preemption", "--slice-boost 0")
    commands = [f"scx_rustland {option}" for option in options]
    usual, *others = (
        counts["nr_preempt_dispatches"] for counts in counted(replayed, commands, HOGS_AND_SLEEPERS)
    )
    print(usual, others)
    assert usual > 50
    assert others == [0, 0]


def test_placement_on_wakeup(replayed: Callable[[str], str]) -> None:
    """With sleepers only, most wakees find an idle CPU and bypass the policy, unless --full-user is
    set."""
    options = ("", "--builtin-idle", "--full-user")
    commands = [f"scx_rustland {option}" for option in options]
    default, builtin, full = map(decided_share, counted(replayed, commands, SLEEPERS))
    print(f"decided about: {default:.2f}, {builtin:.2f} with --builtin-idle, {full:.2f} of all")
    assert full > 0.95
    assert builtin < full / 2
    assert default < full / 2


def test_wakee_inherits_the_slice(replayed: Callable[[str], str]) -> None:
    """A wakee that inherits the rest of the waker's slice bypasses the policy. The tasks pass
    messages beside hogs: no CPU is idle, so no wakee bypasses the policy by finding an idle CPU.
    With --full-user, the policy decides on each wakeup."""
    load = ("--hogs", "4", *IDLE[2:], "--groups", "1")
    commands = ["scx_rustland", "scx_rustland --full-user"]
    default, full = map(decided_share, counted(replayed, commands, load))
    print(f"decided about: {default:.2f}, with --full-user {full:.2f} of all")
    assert default < 0.7 * full


def test_decisions_stand_for_later_wakeups(replayed: Callable[[str], str]) -> None:
    """Without hogs, a decision on a worker of a server stands for up to 100 ms. So most wakeups
    need no decision, and a worker rarely preempts another. Beside hogs, the policy decides on each
    wakeup, because the wakee might preempt a hog."""
    server = ("--hogs", "0", *IDLE[2:], "--workers", "8", "--locks", "cpu")
    commands = ["scx_rustland", "scx_rustland --full-user"]
    alone, full = counted(replayed, commands, server)
    (beside,) = counted(replayed, commands[:1], ("--hogs", "4", *server[2:]))
    shares = [decided_share(counts) for counts in (alone, full, beside)]
    print("decided about: {:.3f}, with --full-user {:.3f}, beside hogs {:.3f}".format(*shares))
    # The share was 0.03 with 8 of 12 seeds, and 0.08 to 0.22 with the other 4.
    assert shares[0] < 0.4
    assert min(shares[1:]) > 2 * shares[0]
    per_wakeup = [
        share * counts["nr_preempt_dispatches"] / counts["nr_asked"]
        for share, counts in zip((shares[0], shares[2]), (alone, beside), strict=True)
    ]
    print("preempting: {:.3f}, beside hogs {:.3f} of all wakeups".format(*per_wakeup))
    assert per_wakeup[0] < per_wakeup[1] / 4


def test_low_power_keeps_idle_cpus_asleep(replayed: Callable[[str], str]) -> None:
    """Counts kicks of idle CPUs beside a hog, per decision, because the numbers of decisions
    differ."""
    load = ("--hogs", "1", *SLEEPERS[2:])
    commands = ["scx_rustland --full-user", "scx_rustland --full-user --low-power"]
    usual, low = (
        counts["nr_idle_kicks"] / counts["nr_asked"] for counts in counted(replayed, commands, load)
    )
    print(f"CPUs woken per task: {usual:.3f}, with --low-power {low:.3f}")
    assert low < usual / 4


def test_low_power_includes_the_previous_cpu(replayed: Callable[[str], str]) -> None:
    """Counts decisions beside a hog. Without --low-power, most tasks wake up on an idle CPU, such
    as their previous CPU, and need no decision. With --low-power, they need one, because no idle
    CPU is woken while another CPU is busy."""
    load = ("--hogs", "1", *SLEEPERS[2:])
    for usual in ("scx_rustland", "scx_rustland --builtin-idle"):
        by_command = counted(replayed, [usual, f"{usual} --low-power"], load)
        asked, low = (counts["nr_asked"] for counts in by_command)
        print(f"{usual}: {asked} decisions, with --low-power {low}")
        assert low > 4 * asked


#: A busy CPU, and a sleeper that may not use it.
ELSEWHERE = """
scx_rustland --full-user --low-power & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
taskset 2 scx_load --hogs 1 --sleepers 0 QUIET >/dev/null & hog=$!
taskset c scx_load --hogs 0 --sleepers 1 --sleep-us 5000 QUIET --seconds 2 --json
kill -INT $hog
wait $hog
kill -INT $scheduler
wait $scheduler
"""


def test_low_power_respects_the_affinity_of_the_wakee(
    replayed: Callable[[str], str],
) -> None:
    printed = replayed(ELSEWHERE.replace("QUIET", "--pipes 0 --forks-per-s 0"))
    load = json.loads(re.findall(r"^\{$.*?^\}$", printed, re.MULTILINE | re.DOTALL)[0])
    late_ms = load["sleepers"]["lateness_p99_us"] / 1000
    print(f"{load['sleepers']['wakeups']} wakeups, late by {late_ms:.2f} ms")
    assert late_ms < 20


def test_fifo_mode_depends_on_the_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = serve(guest, start, "--fifo")
    wait_for("it starts in FIFO mode", lambda: total(guest)["mode"] == 1)
    hogs = load("--hogs", "8", *IDLE[2:], "--seconds", "3600")
    names = f"cat /proc/{hogs.pid}/task/*/comm"
    wait_for("all hogs exist", lambda: guest.run(names).stdout.count("hog\n") == 8)
    wait_for("tasks are ordered by deadline", lambda: total(guest)["mode"] == 0)
    hogs.signal(signal.SIGINT)
    assert hogs.wait(TIMEOUT_S) == 0
    wait_for("it returns to FIFO mode", lambda: total(guest)["mode"] == 1)
    assert scheduler.end(signal.SIGINT) == 0


def test_cpu_is_shared_by_weight(replayed: Callable[[str], str]) -> None:
    """The ratio is approximate: if a third task preempts a hog, and the decision of the policy
    comes late, the other hog may run next."""
    heavy_s, light_s = shares(replayed, "scx_rustland", [0, 5])
    print(f"{heavy_s / light_s:.2f} : 1")
    assert heavy_s / light_s == pytest.approx(NICE_0_TO_5, rel=0.1)


#: Few and many hogs with slices longer than a tick, recorded by scx_switches.
FEW_AND_MANY = """
scx_rustland --slice-us 60000 --slice-us-min 1000 & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
for hogs in 5 32; do
    scx_load --hogs $hogs --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null & load=$!
    sleep 0.5
    scx_switches --comm hog --seconds 1 --json
    kill -INT $load
    wait $load || exit 1
done
kill -INT $scheduler
wait $scheduler
"""


def test_slices_shrink_with_the_number_of_waiting_tasks(replayed: Callable[[str], str]) -> None:
    """The guest is deterministic, because in other guests the lengths of runs depend on the
    host."""
    few, many = (statistics.median(runs) / 1e6 for runs in preempted_ns(replayed(FEW_AND_MANY)))
    print(f"median run of 5 hogs {few:.1f} ms, of 32 hogs {many:.1f} ms")
    assert few > 2 * many


#: The same load under the kernel's own scheduler and under scx_rustland.
BESIDE_HOGS = """
load() { scx_load --hogs 8 --pipes 0 --forks-per-s 10 --seconds 4 --json; }
load
scx_rustland & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
load
grep VmHWM /proc/$scheduler/status
kill -INT $scheduler
wait $scheduler
"""


def test_overloaded_machine_is_responsive(replayed: Callable[[str], str]) -> None:
    """Short commands beside eight hogs on four CPUs, in a deterministic guest. With EEVDF, the
    median time of a command varies from 15 to 28 ms with seed and kernel. Therefore the bound is
    not a constant, but the median with EEVDF in the same guest."""
    text = replayed(BESIDE_HOGS)
    eevdf, ours = (json.loads(part) for part in re.findall(r"^\{$.*?^\}$", text, re.M | re.S))
    for name, result in [("EEVDF", eevdf), ("scx_rustland", ours)]:
        spawn, late = result["forks"]["spawn_p50_ms"], result["sleepers"]["lateness_p50_us"]
        print(f"{name}: spawn p50 {spawn:.2f} ms, wakeup lateness p50 {late:.0f} us")
    assert ours["forks"]["spawn_p50_ms"] < eevdf["forks"]["spawn_p50_ms"]
    assert ours["sleepers"]["lateness_p50_us"] < 1000
    assert sum(ours["hogs"]["cpu_s"]) > 0.85 * sum(eevdf["hogs"]["cpu_s"])
    resident_kib = int(re.findall(r"VmHWM:\s+(\d+) kB", text)[0])
    print(f"resident {resident_kib / 1024:.1f} MiB")
    # All memory of the process is locked. 16 MiB of it are the arena of the policy's heap.
    assert resident_kib < 44 * 1024
