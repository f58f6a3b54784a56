# SPDX-License-Identifier: GPL-2.0-only
"""scx_switches on a real kernel: its records are compared with the figures of the kernel and of the
load."""

from __future__ import annotations

import itertools
import json
import re
import signal
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from recorder import Record, Recorder
from sched_ext import TIMEOUT_S, Load, Start, wait_for
from vm.guest import Guest, Process

pytestmark = pytest.mark.once


#: Options of scx_load that turn off all kinds of load.
QUIET = ("--hogs", "0", "--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")


def quiet_load(load: Load, *args: str, through: str = "") -> Process:
    """A load of only the kinds that `args` names, such as --hogs 2."""
    given = {QUIET[i]: QUIET[i + 1] for i in range(0, len(QUIET), 2)}
    given |= {args[i]: args[i + 1] for i in range(0, len(args), 2)}
    flat = [word for pair in given.items() for word in pair]
    return load(*flat, "--json", through=through)


def figures(process: Process) -> Record:
    """Waits until a load ends by itself. Returns its figures."""
    assert process.wait(TIMEOUT_S) == 0, process.stderr()
    return json.loads(process.stdout())


def by_thread(runs: list[Record]) -> dict[int, list[Record]]:
    """Groups runs by thread."""
    threads: dict[int, list[Record]] = {}
    for run in runs:
        threads.setdefault(run["pid"], []).append(run)
    return threads


def two_hogs_on_cpu_1(load: Load, recorder: Recorder) -> list[list[Record]]:
    """Records two hogs that share CPU 1. Checks that their runs do not overlap, and add up to the
    CPU time that the kernel accounts to the hogs. Returns the runs of each hog."""
    counted = figures(quiet_load(load, "--hogs", "2", "--seconds", "4", through="taskset 2"))
    runs, summary = recorder.records()
    assert summary["lost"] == 0
    assert {run["cpu"] for run in runs} == {1}
    assert {run["comm"] for run in runs} == {"hog"}
    assert all(run["ran_ns"] == run["stop_ns"] - run["start_ns"] for run in runs)
    assert all(a["stop_ns"] <= b["start_ns"] for a, b in itertools.pairwise(runs))
    hogs = by_thread(runs)
    assert len(hogs) == 2
    recorded_s = sorted(sum(run["ran_ns"] for run in own) / 1e9 for own in hogs.values())
    assert recorded_s == pytest.approx(sorted(counted["hogs"]["cpu_s"]), rel=0.05)
    for thread in summary["threads"]:
        own = hogs[thread["pid"]]
        assert thread["runs"] == len(own)
        assert thread["cpu_ns"] == sum(run["ran_ns"] for run in own)
        assert thread["run_max_ns"] == max(run["ran_ns"] for run in own)
    return list(hogs.values())


def test_runs_add_up_under_the_kernels_own_scheduler(guest: Guest, load: Load) -> None:
    for own in two_hogs_on_cpu_1(load, Recorder(guest, "--comm", "hog", "--json")):
        assert own[-1]["end"] == "exited"
        preempted = [run for run in own if run["end"] == "preempted"]
        assert len(preempted) > 10
        assert len(preempted) >= 0.8 * len(own)
        assert {run["policy"] for run in own} == {0}
        assert {run["prio"] for run in own} == {120}


def test_runs_are_slices_under_scx_fifo(guest: Guest, start: Start, load: Load) -> None:
    scheduler = start("scx_fifo", "--slice-us", "20000").wait_enabled()
    hogs = two_hogs_on_cpu_1(load, Recorder(guest, "--comm", "hog", "--json"))
    for own in hogs:
        lengths_ns = [run["ran_ns"] for run in own if run["end"] == "preempted"]
        assert len(lengths_ns) > 10
        # A slice ends at the first tick after it has expired, up to 4 ms late (HZ = 250). Other
        # threads cut some runs short.
        assert 15e6 < statistics.median(lengths_ns) < 30e6
    assert scheduler.end(signal.SIGINT) == 0


@contextmanager
def stopped(guest: Guest, process: Process) -> Iterator[dict[int, tuple[int, int]]]:
    """Stops the process for the duration of the block. Yields, for each thread, the kernel's counts
    of voluntary and involuntary context switches."""

    def fields(name: str) -> list[str]:
        text = guest.read(f"/proc/{process.pid}/task/*/status").check().stdout
        return re.findall(rf"^{name}:\s+(\S+)", text, re.MULTILINE)

    process.signal(signal.SIGSTOP)
    try:
        wait_for("all its threads are stopped", lambda: set(fields("State")) == {"T"})
        names = ("Pid", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
        columns = [map(int, fields(name)) for name in names]
        yield {pid: counts for pid, *counts in zip(*columns, strict=True)}
    finally:
        process.signal(signal.SIGCONT)


def test_sleepers_sleep_and_are_woken_up(guest: Guest, load: Load) -> None:
    recorder = Recorder(guest, "--comm", "sleeper", "--json")
    process = quiet_load(load, "--sleepers", "2")
    wait_for("some sleeps", lambda: recorder.process.stdout().count('"slept"') > 100)
    with stopped(guest, process) as counted:
        runs, summary = recorder.records()
    assert len(summary["threads"]) == 2
    for thread in summary["threads"]:
        voluntary, involuntary = counted[thread["pid"]]
        # The first switch of a thread may have happened while it still had its parent's name.
        assert voluntary - 2 <= thread["voluntary"] <= voluntary
        assert involuntary - 2 <= thread["involuntary"] <= involuntary
        slept = [run for run in by_thread(runs)[thread["pid"]] if run["end"] == "slept"]
        assert len(slept) == thread["voluntary"]
        # There is one wakeup for each voluntary switch, except the last one, in which the thread
        # stopped. The wakeup before the first run may be missing, because the thread still has its
        # parent's name then. There may be further wakeups just before the thread goes to sleep.
        assert voluntary - 2 <= thread["wakeups"] <= 1.5 * voluntary
        assert thread["voluntary"] + thread["involuntary"] == thread["runs"]
        assert thread["runs"] - 1 <= thread["switches_in"] <= thread["runs"]


def test_pid_selects_a_process_or_a_thread(guest: Guest, load: Load) -> None:
    wanted, other = (quiet_load(load, "--sleepers", "2") for _ in range(2))
    recorder = Recorder(guest, "--pid", str(wanted.pid), "--json")
    everything = Recorder(guest, "--json")
    wait_for("a second", lambda: len(recorder.process.stdout()) > 20_000)
    runs, _ = recorder.records()
    all_runs, _ = everything.records()
    assert {run["tgid"] for run in runs} == {wanted.pid}
    assert other.pid in {run["tgid"] for run in all_runs}
    assert 0 not in {run["pid"] for run in all_runs}

    thread = next(run["pid"] for run in runs if run["pid"] != wanted.pid)
    one = Recorder(guest, "--pid", str(thread), "--json")
    wait_for("some runs", lambda: one.process.stdout().count("\n") > 5)
    assert {run["pid"] for run in one.records()[0]} == {thread}


def test_cpu_selects_cpus(guest: Guest, load: Load) -> None:
    quiet_load(load, "--sleepers", "2", through="taskset 1")
    quiet_load(load, "--sleepers", "2", through="taskset 2")
    recorder = Recorder(guest, "--cpu", "1", "--idle", "--json")
    wait_for("some runs", lambda: recorder.process.stdout().count("sleeper") > 50)
    runs, summary = recorder.records()
    assert {run["cpu"] for run in runs} == {1}
    assert 0 in {run["pid"] for run in runs}
    # Runs on a CPU have no gaps between them.
    complete = [run for run in runs if run["end"] != "running"]
    assert all(a["stop_ns"] == b["start_ns"] for a, b in itertools.pairwise(complete))
    assert [run["start_ns"] for run in runs if run["end"] == "running"] == [complete[-1]["stop_ns"]]
    sleepers = [thread for thread in summary["threads"] if thread["comm"] == "sleeper"]
    assert len(sleepers) == 2


def test_system_calls_are_counted(guest: Guest) -> None:
    recorder = Recorder(guest, "--comm", "dd", "--syscalls", "--json")
    for blocks in (1000, 3000):
        guest.run(f"dd if=/dev/zero of=/dev/null bs=1 count={blocks}").check()
    runs, summary = recorder.records()
    # dd makes two system calls for each block, read() and write(), and some more when it starts.
    few, many = sorted(thread["syscalls"] for thread in summary["threads"])
    assert 2000 <= few < 2200
    assert many == few + 4000
    assert [run["end"] for run in runs].count("exited") == 2


def test_system_calls_are_not_counted_by_default(guest: Guest) -> None:
    recorder = Recorder(guest, "--comm", "dd*", "--json", "--summary")
    guest.run("dd if=/dev/zero of=/dev/null bs=1 count=10").check()
    runs, summary = recorder.records()
    assert runs == []
    assert [thread["syscalls"] for thread in summary["threads"]] == [None]


def test_lost_runs_are_reported(guest: Guest, load: Load) -> None:
    quiet_load(load, "--pipes", "4")
    recorder = Recorder(guest, "--comm", "pinger", "--ring-kib", "4", "--json")
    # While the recorder is stopped, nothing reads the ring.
    recorder.process.signal(signal.SIGSTOP)
    guest.run("sleep 1").check()
    recorder.process.signal(signal.SIGCONT)
    runs, summary = recorder.records()
    complete = [run for run in runs if run["end"] != "running"]
    assert summary["lost"] > 0
    assert summary["runs"] == len(complete) + summary["lost"]
    assert sum(thread["runs"] for thread in summary["threads"]) == summary["runs"]
    message = f"scx_switches: {summary['lost']} of {summary['runs']} runs lost: "
    assert message in recorder.process.stderr()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_signals_end_it_with_the_summary(guest: Guest, load: Load, number: int) -> None:
    quiet_load(load, "--sleepers", "1")
    recorder = Recorder(guest, "--summary")
    guest.run("sleep 1").check()
    first, headings, *rows = recorder.stop(number).splitlines()
    assert re.fullmatch(r"\d+\.\d s, \d+ runs, 0 lost", first)
    assert headings.split()[:4] == ["PID", "COMM", "RUNS", "CPU_MS"]
    assert any(re.match(r" *\d+ sleeper +\d+ +\d+\.\d ", row) for row in rows), rows
    assert recorder.process.stderr() == "scx_switches: recording\n"


def test_text_output(guest: Guest) -> None:
    done = guest.run(["scx_switches", "--seconds", "1"]).check()
    headings, *lines = done.stdout.splitlines()
    assert headings.split() == ["TIME_S", "CPU", "PID", "COMM", "RAN_US", "END"]
    line = r" *\d+\.\d{6} +\d+ +\d+ .{15} +\d+\.\d (preempted|slept|exited|running)"
    assert lines
    assert all(re.fullmatch(line, text) for text in lines), lines
    assert re.fullmatch(r"scx_switches: recording\nscx_switches: \d+ runs, 0 lost\n", done.stderr)


def test_closed_output_is_no_error(guest: Guest, load: Load) -> None:
    quiet_load(load, "--sleepers", "1")
    script = "(scx_switches --seconds 60; echo $? >/tmp/status) | head -n 1; cat /tmp/status"
    done = guest.run(script).check()
    assert done.stdout.splitlines()[1:] == ["0"]
    assert done.stderr == "scx_switches: recording\n"


def refused(guest: Guest, command: str, user: str = "root") -> str:
    """Runs the command, which must end with status 1 and a message of one line. Returns the
    message."""
    done = guest.run(command, user=user)
    assert done.status == 1
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_without_root_it_is_refused(guest: Guest) -> None:
    assert "root" in refused(guest, "scx_switches", user="nobody")


def test_without_btf_it_is_refused(guest: Guest) -> None:
    script = "mount -t tmpfs none /sys/kernel/btf && exec scx_switches"
    assert "CONFIG_DEBUG_INFO_BTF" in refused(guest, f"unshare -m sh -c '{script}'")
