# SPDX-License-Identifier: GPL-2.0-only
"""scxtop on a real kernel: its figures are compared with those of the kernel, of the load, and of
scx_switches."""

from __future__ import annotations

import base64
import itertools
import json
import re
import signal
from pathlib import Path
from typing import Any

import perfetto_trace
import pytest
from loads import spin
from recorder import Recorder
from sched_ext import (
    STOPS_FAIR_SERVER_TWICE,
    SYSFS,
    TIMEOUT_S,
    Load,
    SetCpu,
    Start,
    read,
    wait_for,
)
from vm.guest import Guest, Process

Snapshot = dict[str, Any]

#: scx_load with two hogs and nothing else.
TWO_HOGS = ("--hogs", "2", "--sleepers", "0", "--pipes", "0", "--forks-per-s", "0")


def snapshots(guest: Guest, count: int = 1, interval_s: float = 2) -> list[Snapshot]:
    """The snapshots that `scxtop top --json` prints for `count` intervals."""
    command = f"scxtop top --json --count {count} --interval {interval_s} --tasks 1000"
    done = guest.run(command, TIMEOUT_S).check()
    return [json.loads(line) for line in done.stdout.splitlines()]


_numbers = itertools.count()


def spawn(guest: Guest, *args: str) -> Process:
    """Starts scxtop without a shell, so that a signal reaches scxtop itself."""
    return guest.spawn(f"scxtop{next(_numbers)}", ["scxtop", *args])


def last_line(top: Process) -> Snapshot | None:
    """The last complete line of `scxtop top --json`."""
    assert top.running(), top.stderr()
    lines = top.stdout().split("\n")[:-1]
    return json.loads(lines[-1]) if lines else None


def stop(top: Process, number: int = signal.SIGINT) -> str:
    """Ends scxtop, which must succeed. Returns the output of scxtop."""
    top.signal(number)
    assert top.wait(TIMEOUT_S) == 0, top.stderr()
    return top.stdout()


def tasks(snapshot: Snapshot, comm: str) -> list[dict[str, Any]]:
    return [task for task in snapshot["tasks"] if task["comm"] == comm]


def hogs_run(guest: Guest, load: Process) -> bool:
    return load.running() and "hog" in guest.read("/proc/[0-9]*/task/*/comm").stdout


def check_limits(snapshot: Snapshot) -> None:
    """Checks what must hold for every snapshot."""
    for cpu in snapshot["cpus"]:
        assert 0 <= cpu["rt_pct"] + cpu["ext_pct"] <= cpu["busy_pct"] + 1e-6 <= 100.001
    for part in [snapshot, *snapshot["cpus"], *snapshot["tasks"]]:
        wakeup = part["wakeup"]
        assert wakeup["p50_ns"] <= wakeup["p90_ns"] <= wakeup["p99_ns"] <= wakeup["max_ns"]
        assert wakeup["count"] == sum(count for _, count in wakeup["buckets"])
    busy = sum(cpu["busy_pct"] for cpu in snapshot["cpus"])
    ran = sum(task["run_pct"] for task in snapshot["tasks"])
    # The sums differ: tasks that have exited are not in the snapshot, and CPUs and tasks are not
    # read at the same moment.
    assert ran <= busy + 30
    assert snapshot["own"]["lost"] == 0


def test_hogs_that_share_a_cpu(guest: Guest, start: Start, load: Load) -> None:
    """The CPU time and the waiting time of each hog add up to about the interval, and the CPU times
    of both hogs to about the busy time of their CPU."""
    start("scx_simple").wait_enabled()
    hogs = load(*TWO_HOGS, through="taskset 2")
    wait_for("the hogs run", lambda: hogs_run(guest, hogs))
    *_, snapshot = snapshots(guest, 2)
    check_limits(snapshot)
    assert snapshot["sched"]["name"] == "simple"
    assert snapshot["sched"]["state"] == "enabled"
    assert snapshot["sched"]["is_switch_all"]
    cpu = snapshot["cpus"][1]
    assert cpu["busy_pct"] > 95
    assert cpu["ext_pct"] > 90
    assert cpu["switches"] > 5
    both = tasks(snapshot, "hog")
    assert len(both) == 2
    for hog in both:
        assert hog["cpu"] == 1
        assert hog["class"] == "ext"
        assert hog["run_pct"] + hog["wait_pct"] == pytest.approx(100, abs=15)
        assert hog["weight"] == 100
        assert hog["preemptions"] > 1
    assert sum(hog["run_pct"] for hog in both) == pytest.approx(cpu["busy_pct"], abs=10)


def test_queues_of_the_scheduler(guest: Guest, start: Start, load: Load) -> None:
    """Six hogs on four CPUs: tasks wait in the shared queue, ordered by vtime."""
    start("scx_simple").wait_enabled()
    hogs = load("--hogs", "6", *TWO_HOGS[2:])
    wait_for("the hogs run", lambda: hogs_run(guest, hogs))
    *_, snapshot = snapshots(guest, 2)
    assert snapshot["notices"] == []
    queues = {dsq["name"]: dsq for dsq in snapshot["dsqs"]}
    shared = queues["0x0"]
    assert shared["depth"] >= 1
    assert shared["inserts"] > 5
    assert shared["vtime_spread"] > 0
    # A hog waits until the slice of 20 ms of a hog on one of the four CPUs has expired.
    assert 1_000_000 < shared["latency"]["p50_ns"] < 200_000_000
    assert queues["local"]["inserts"] > 0
    assert {task["dsq"] for task in tasks(snapshot, "hog")} <= {"0x0", "local"}
    assert dict(snapshot["stats"])["global"] > 0


def test_without_a_scheduler(guest: Guest, load: Load) -> None:
    hogs = load(*TWO_HOGS, through="taskset 2")
    wait_for("the hogs run", lambda: hogs_run(guest, hogs))
    *_, snapshot = snapshots(guest, 2)
    check_limits(snapshot)
    assert snapshot["sched"]["name"] is None
    assert snapshot["events"] == []
    assert snapshot["stats"] == []
    assert snapshot["cpus"][1]["busy_pct"] > 95
    assert snapshot["cpus"][1]["ext_pct"] == 0
    assert [hog["class"] for hog in tasks(snapshot, "hog")] == ["fair", "fair"]


def test_agrees_with_scx_switches(guest: Guest, load: Load) -> None:
    """scxtop and scx_switches, started before the hogs, agree on the CPU times of the hogs."""
    top = spawn(guest, "top", "--json", "--interval", "1", "--tasks", "1000")
    wait_for("scxtop counts", lambda: bool(top.stdout()))
    recorder = Recorder(guest, "--comm", "hog", "--json")
    hogs = load(*TWO_HOGS, "--seconds", "4", through="taskset 2")
    assert hogs.wait(TIMEOUT_S) == 0
    _, summary = recorder.records()
    # The hogs are gone in the last snapshots.
    last: dict[int, dict[str, Any]] = {}
    for line in stop(top).splitlines():
        last |= {task["pid"]: task for task in tasks(json.loads(line), "hog")}
    assert len(last) == 2
    for thread in summary["threads"]:
        shown = last[thread["pid"]]
        # scxtop does not show what the hogs did after the last snapshot that contains them.
        # Otherwise the times differ little: scxtop shows the kernel's own counters, and
        # scx_switches reads the clock at each context switch.
        assert 0.2 * thread["cpu_ns"] < shown["run_ns"] < 1.05 * thread["cpu_ns"]


def test_events_are_those_of_the_kernel(guest: Guest, start: Start) -> None:
    start("scx_simple").wait_enabled()
    text = read(guest, f"{SYSFS}/root/events")
    if not text:
        pytest.skip("this kernel counts no events")
    names = [line.split()[0].removeprefix("SCX_EV_") for line in text.splitlines()]
    (snapshot,) = snapshots(guest)
    assert [event["name"] for event in snapshot["events"]] == names


@STOPS_FAIR_SERVER_TWICE
def test_cpus_go_offline_and_come_back(guest: Guest, set_cpu: SetCpu) -> None:
    top = spawn(guest, "top", "--json", "--interval", "0.5")

    def shown(online: bool) -> bool:
        snapshot = last_line(top)
        return snapshot is not None and snapshot["cpus"][3]["is_online"] is online

    wait_for("CPU 3 is shown", lambda: shown(True))
    set_cpu(3, False)
    wait_for("CPU 3 is shown as offline", lambda: shown(False))
    set_cpu(3, True)
    wait_for("CPU 3 is shown as online", lambda: shown(True))
    stop(top, signal.SIGTERM)


def test_scheduler_is_killed_and_replaced(guest: Guest, start: Start) -> None:
    first = start("scx_simple").wait_enabled()
    top = spawn(guest, "top", "--json", "--interval", "0.5")

    def shown(name: str | None) -> bool:
        snapshot = last_line(top)
        return snapshot is not None and snapshot["sched"]["name"] == name

    wait_for("it is shown", lambda: shown("simple"))
    first.process.signal(signal.SIGKILL)
    wait_for("none is shown", lambda: shown(None))
    start("scx_central").wait_enabled()
    wait_for("the other one is shown", lambda: shown("central"))
    last = json.loads(stop(top).splitlines()[-1])
    assert '"simple" disabled' in last["sched"]["last_exit"]


def test_run_that_ends_between_two_readings_is_counted(guest: Guest) -> None:
    """A task runs at the first reading, and sleeps at the last. Between the readings, the task does
    not begin another run, because no other task uses its CPU."""
    guest.run(["mkfifo", "/tmp/never_written"]).check()
    script = "n=0; while [ $n -lt 60000 ]; do n=$((n + 1)); done; read x </tmp/never_written"
    task = guest.spawn("computes", ["taskset", "8", "sh", "-c", script])
    try:
        found = snapshots(guest, 12, interval_s=0.2)
        states = [t for snapshot in found for t in snapshot["tasks"] if t["pid"] == task.pid]
        assert states[0]["state"] == "running"
        assert states[-1]["state"] == "sleeping", states
        ran_ns = int(read(guest, f"/proc/{task.pid}/schedstat").split()[0])
        assert states[-1]["run_ns"] == ran_ns
    finally:
        task.signal(signal.SIGKILL)


def test_forks_are_counted(guest: Guest, start: Start, load: Load) -> None:
    """A task for which no counters were allocated would be counted as lost."""
    start("scx_simple").wait_enabled()
    load("--hogs", "1", "--sleepers", "0", "--pipes", "1", "--forks-per-s", "50")
    for snapshot in snapshots(guest, 2):
        check_limits(snapshot)


def test_observes_for_a_shorter_time_if_there_are_many_switches(guest: Guest, load: Load) -> None:
    """scxtop observes at most about 5000 switches per second of the interval. This is estimated
    to take 0.5 % of a fast CPU."""
    *_, quiet = snapshots(guest, 2, interval_s=1)
    assert quiet["observed_pct"] > 95
    load("--hogs", "0", "--sleepers", "0", "--pipes", "2", "--forks-per-s", "0")
    wait_for("many switches", lambda: nr_switches(snapshots(guest, interval_s=1)[0]) > 20_000)
    *_, busy = snapshots(guest, 2, interval_s=1)
    check_limits(busy)
    limit_pct = 100 * 5000 / nr_switches(busy)
    print(nr_switches(busy), busy["observed_pct"], limit_pct)
    # The rate of switches may change, and scxtop may stop observing too late.
    assert busy["observed_pct"] < 2 * limit_pct + 5
    assert busy["wakeup"]["count"] > 0
    assert tasks(busy, "ponger")


def nr_switches(snapshot: Snapshot) -> float:
    """The context switches of all CPUs per second."""
    return sum(cpu["switches"] for cpu in snapshot["cpus"])


def switches_since_boot(guest: Guest) -> int:
    """The context switches of all CPUs."""
    found = re.search(r"^ctxt (\d+)", read(guest, "/proc/stat"), re.MULTILINE)
    assert found
    return int(found[1])


def trace(guest: Guest, tmp_path: Path, *args: str) -> perfetto_trace.Trace:
    """A trace, decoded with Perfetto's description of the format."""
    command = ["scxtop", "trace", "--output", "/tmp/test.pftrace", *args]
    done = guest.run(command, TIMEOUT_S).check()
    assert "recording\n" in done.stderr
    return decoded(guest, tmp_path, "/tmp/test.pftrace")


def decoded(guest: Guest, tmp_path: Path, path: str) -> perfetto_trace.Trace:
    """Decodes a trace, and removes its file in the guest."""
    text = guest.run(f"base64 {path} && rm {path}", TIMEOUT_S).check().stdout
    (tmp_path / "trace").write_bytes(base64.b64decode(text))
    return perfetto_trace.read(tmp_path / "trace")


def test_trace_agrees_with_scx_switches(
    guest: Guest, start: Start, load: Load, tmp_path: Path
) -> None:
    """On each CPU, the trace has the same runs as scx_switches, with the same times."""
    start("scx_simple").wait_enabled()
    hogs = load("--hogs", "5", "--pipes", "0", "--sleepers", "2", "--forks-per-s", "10")
    wait_for("the hogs run", lambda: hogs_run(guest, hogs))
    recorder = Recorder(guest, "--json")
    recorded = trace(guest, tmp_path, "--seconds", "1")
    check_same_runs(recorded, recorder)
    assert len(recorded.slices()) > 50


def check_same_runs(recorded: perfetto_trace.Trace, recorder: Recorder) -> None:
    """Checks that on each CPU, the trace has the same runs as scx_switches, which was recording all
    the time, with the same times."""
    runs, summary = recorder.records()
    assert summary["lost"] == 0
    assert recorded.lost() == 0
    assert recorded.slices()
    for cpu in range(4):
        ours = [
            (run.start_ns, run.stop_ns, run.pid, run.end)
            for run in recorded.slices()
            if run.cpu == cpu
        ]
        theirs = [
            (run["start_ns"], run["stop_ns"], run["pid"], run["end"])
            for run in runs
            if run["cpu"] == cpu
        ]
        # A CPU may have been idle all the time.
        if ours:
            assert ours[0] in theirs
            first = theirs.index(ours[0])
            assert theirs[first : first + len(ours)] == ours


def test_trace_is_consistent(guest: Guest, start: Start, load: Load, tmp_path: Path) -> None:
    start("scx_simple").wait_enabled()
    hogs = load("--hogs", "5", "--pipes", "0", "--sleepers", "2", "--forks-per-s", "10")
    wait_for("the hogs run", lambda: hogs_run(guest, hogs))
    recorded = trace(guest, tmp_path, "--seconds", "1")
    recorded.check_monotonic()
    assert recorded.check_flows() > 10
    names = set(recorded.tracks().values())
    assert any("DSQ 0x0" in name for name in names), names
    assert any("DSQ local" in name for name in names), names
    assert {slice.cpu for slice in recorded.slices()} == {0, 1, 2, 3}
    assert "hog" in {slice.comm for slice in recorded.slices()}


def test_trace_of_a_late_wakeup(guest: Guest, load: Load, tmp_path: Path) -> None:
    """A CPU-bound real-time task delays the sleepers on its CPU."""
    load(
        "--hogs", "0", "--sleepers", "2", "--pipes", "0", "--forks-per-s", "0", through="taskset 2"
    )
    path = "/tmp/late.pftrace"
    recorder = Recorder(guest, "--json")
    process = guest.spawn("trace", f"scxtop trace --on-latency 100ms --seconds 2 --output {path}")
    wait_for("it records", lambda: "recording\n" in process.stderr())
    real_time = guest.spawn("real_time", spin(1))
    assert process.wait(TIMEOUT_S) == 0, process.stderr()
    assert real_time.wait(TIMEOUT_S) == 0
    assert "waited" in process.stderr()
    recorded = decoded(guest, tmp_path, path)
    recorded.check_monotonic()
    recorded.check_flows()
    check_same_runs(recorded, recorder)
    late = [event for event in recorded.events() if event.name == "late wakeup"]
    assert len(late) == 1
    assert late[0].annotations["latency_ns"] > 100_000_000


def test_lost_events_of_a_trace_are_counted(guest: Guest, load: Load, tmp_path: Path) -> None:
    """If scxtop does not read the rings for a while, events are lost. Later events are recorded
    again."""
    path = "/tmp/lost.pftrace"
    process = spawn(guest, "trace", "--seconds", "600", "--buffer-mib", "1", "--output", path)
    wait_for("it records", lambda: "recording\n" in process.stderr())
    process.signal(signal.SIGSTOP)
    load("--hogs", "0", "--sleepers", "0", "--pipes", "2", "--forks-per-s", "0")
    before = switches_since_boot(guest)
    wait_for("the rings are full", lambda: switches_since_boot(guest) > before + 20_000)
    process.signal(signal.SIGCONT)
    wait_for("it has read the rings", lambda: switches_since_boot(guest) > before + 40_000)
    process.signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 0, process.stderr()
    told = re.search(r"(\d+) events lost: use a larger --buffer-mib", process.stderr())
    assert told, process.stderr()
    recorded = decoded(guest, tmp_path, path)
    recorded.check_monotonic()
    recorded.check_flows()
    assert recorded.lost() == int(told[1]) > 0
    gaps = [event for event in recorded.events("scxtop") if event.name == "lost events"]
    assert sum(gap.annotations["lost"] for gap in gaps) == recorded.lost()
    assert recorded.slices()[-1].start_ns > gaps[0].time_ns


def test_trace_is_ended_by_a_signal(guest: Guest, tmp_path: Path) -> None:
    """After SIGTERM, the file has the events recorded so far, and no other file is left. After
    SIGKILL, there is no file of that name, because the trace would be incomplete."""
    guest.run("mkdir /tmp/traces").check()
    process = spawn(guest, "trace", "--seconds", "600", "--output", "/tmp/traces/a")
    wait_for("it records", lambda: "recording\n" in process.stderr())
    process.signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0, process.stderr()
    assert guest.run("ls -A /tmp/traces").stdout == "a\n"
    decoded(guest, tmp_path, "/tmp/traces/a").check_monotonic()
    process = spawn(guest, "trace", "--seconds", "600", "--output", "/tmp/traces/a")
    wait_for("it records", lambda: "recording\n" in process.stderr())
    process.signal(signal.SIGKILL)
    process.wait(TIMEOUT_S)
    assert guest.run("ls /tmp/traces").stdout == ""


#: Clears the screen.
CLEAR = "\x1b[2J"


class Terminal:
    """scxtop in a terminal of the guest."""

    def __init__(self, guest: Guest, *args: str) -> None:
        self.guest = guest
        #: How often the screen had been cleared when the last Ctrl-L was typed; -1 before the
        #: first.
        self.nr_redraws = -1
        mount = "mkdir -p /dev/pts && mount -t devpts devpts /dev/pts"
        guest.run(f"mountpoint -q /dev/pts || {{ {mount}; }}").check()
        self.keys = f"/tmp/keys{next(_numbers)}"
        # The FIFO stays open for writing as long as scxtop runs.
        command = " ".join(["scx_pty", "scxtop", *args])
        script = f"mkfifo {self.keys} && exec {command} <>{self.keys}"
        self.process = guest.spawn(f"scxtop{next(_numbers)}", script)
        wait_for("it draws", lambda: "Overview" in self.process.stdout())

    def type(self, keys: str) -> None:
        self.guest.run(f"printf '%b' '{keys}' >{self.keys}", is_urgent=True).check()

    def wait_shown(self, *texts: str) -> None:
        """Waits until all texts are displayed at the same time.

        Ctrl-L makes scxtop redraw the whole screen. Otherwise it would draw only what has changed.
        """

        def shown() -> bool:
            displayed = self.process.stdout()
            assert self.process.running(), displayed + self.process.stderr()
            # Type the next Ctrl-L only after the screen was cleared for the previous one, so that
            # they do not pile up.
            if displayed.count(CLEAR) > self.nr_redraws:
                self.nr_redraws = displayed.count(CLEAR)
                self.type("\\f")
            screen = words(displayed.rpartition(CLEAR)[2])
            return all(text in screen for text in texts)

        wait_for(f"{texts} is displayed", shown)

    def wait_lines(self, number: int) -> None:
        """Waits until the screen has this number of lines, of which the last one is in use."""
        last = f"\x1b[{number};"
        wait_for(f"{number} lines are used", lambda: last in self.process.stdout())


def words(displayed: str) -> str:
    """The text of a terminal's output, with its control sequences replaced by spaces."""
    return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[()].|.)", " ", displayed)


def show_all_views(top: Terminal, scheduler: str, event: str, statistic: str) -> None:
    """Shows each view, and last the overview, with the name of the scheduler. `event` and
    `statistic` are displayed in the views of the events and of the scheduler's statistics."""
    for key, text in (
        ("2", "COMM"),
        ("3", "0x0"),
        ("4", "LLC"),
        ("5", event),
        ("6", statistic),
        ("1", "hog"),
    ):
        top.type(key)
        top.wait_shown(text, scheduler)


@STOPS_FAIR_SERVER_TWICE
def test_views_in_a_terminal(guest: Guest, start: Start, load: Load, set_cpu: SetCpu) -> None:
    """Shows every view, also while a CPU is offline, and after the scheduler was killed and
    replaced. Resizes the terminal. When scxtop ends, it restores the terminal."""
    scheduler = start("scx_simple").wait_enabled()
    # Check this while a scheduler is loaded: without a scheduler, as during a restart because of
    # hotplug, the kernel has no events.
    event = "SELECT_CPU_FALLBACK" if has_events(guest) else "no"
    hogs = load("--hogs", "5", *TWO_HOGS[2:])
    wait_for("the hogs run", lambda: hogs_run(guest, hogs))
    top = Terminal(guest, "--interval", "0.5")
    top.wait_shown("Overview", "simple", "hog")
    show_all_views(top, "simple", event, "global")
    set_cpu(2, False)
    top.wait_shown("offline")
    show_all_views(top, "simple", event, "global")
    set_cpu(2, True)
    top.type("?")
    top.wait_shown("this help")
    # Any key ends the help.
    top.type("?")
    top.type("1")
    pid = guest.run("pidof scx_pty").check().stdout.strip()
    guest.run(f"kill -USR1 {pid}").check()
    top.wait_lines(50)
    top.wait_shown("Overview", "hog")
    # On older kernels, the unload after SIGKILL takes long beside tasks that compute on all CPUs.
    hogs.signal(signal.SIGSTOP)
    scheduler.process.signal(signal.SIGKILL)
    for key, text in (
        ("1", "the kernel's own"),
        ("2", "COMM"),
        ("3", "no sched_ext scheduler"),
        ("4", "LLC"),
        ("5", "no sched_ext scheduler"),
        ("6", "no sched_ext scheduler"),
    ):
        top.type(key)
        top.wait_shown(text)
    start("scx_fifo").wait_enabled()
    hogs.signal(signal.SIGCONT)
    show_all_views(top, "fifo", event, "nr_queued")
    top.type("q")
    assert top.process.wait(TIMEOUT_S) == 0, top.process.stderr()
    # scxtop has restored the main screen and the cursor.
    assert "\x1b[?1049l" in top.process.stdout()
    assert "\x1b[?25h" in top.process.stdout()


def test_trace_by_key(guest: Guest, start: Start, load: Load, tmp_path: Path) -> None:
    start("scx_simple").wait_enabled()
    load("--hogs", "5", "--pipes", "0", "--sleepers", "2", "--forks-per-s", "10")
    guest.run("rm -f /tmp/scxtop-1.pftrace").check()
    top = Terminal(guest, "--interval", "0.5", "--trace-dir", "/tmp")
    top.wait_shown("Overview")
    recorder = Recorder(guest, "--json")
    top.type("a")
    top.wait_shown("recording")
    top.type("a")
    top.wait_shown("wrote")
    top.type("q")
    assert top.process.wait(TIMEOUT_S) == 0, top.process.stderr()
    recorded = decoded(guest, tmp_path, "/tmp/scxtop-1.pftrace")
    recorded.check_monotonic()
    assert recorded.check_flows() > 0
    check_same_runs(recorded, recorder)
    assert recorded.slices()


def has_events(guest: Guest) -> bool:
    return bool(read(guest, f"{SYSFS}/root/events"))


@pytest.mark.once
def test_errors_are_one_line(guest: Guest) -> None:
    for command, status, error in (
        ("su nobody -s /bin/sh -c 'scxtop top'", 1, "root privileges"),
        ("scxtop </dev/null", 1, "not a terminal"),
        ("scxtop top --interval 0", 2, "0.1 to 86400"),
        ("scxtop trace --on-latency 20", 2, "with a unit"),
        ("scxtop trace --output /none/such", 1, "/none/such"),
    ):
        done = guest.run(command)
        assert done.status == status, done
        assert done.stderr.startswith(("scxtop: ", "error: "))
        assert error in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
