# SPDX-License-Identifier: GPL-2.0-only
"""scx_rlfifo on a real kernel, and scx_rustland_core with it."""

from __future__ import annotations

import itertools
import json
import re
import signal
import statistics
from collections.abc import Callable

import pytest
from counted import answers, counted
from loads import MIXED, QUIET, finished, hog_times_s, uptime_s
from recorder import Record, Recorder
from sched_ext import (
    COMPACTION,
    STOPS_FAIR_SERVER_TWICE,
    TIMEOUT_S,
    Load,
    Scheduler,
    SetCpu,
    Start,
    ops,
    read,
    state,
    wait_disabled,
    wait_for,
)
from slices import check_slices
from statistics_client import SOCKET, TOTAL, total, wait_served
from vm.guest import Guest
from vm.replay import Outcome
from vm.topology import Topology


def serve(guest: Guest, start: Start, *args: str) -> Scheduler:
    """Starts the scheduler, and waits until it serves statistics."""
    scheduler = start("scx_rlfifo", *args).wait_enabled()
    wait_served(guest)
    return scheduler


def in_flight(counts: Record) -> int:
    """The number of enqueues that still wait for a decision: those for which a decision was
    requested, minus those that have ended in one of four ways (struct rl_counters)."""
    ends = ("user_dispatches", "fallback_dispatches", "cancel_dispatches", "dequeued")
    return counts["nr_asked"] - sum(counts[f"nr_{end}"] for end in ends)


def assert_books_balance(guest: Guest) -> None:
    """Waits until in_flight() equals nr_queued, which is the number of tasks that wait for a
    decision, as counted by the kernel. Polls, because the counters of the CPUs are not read at the
    same time."""
    wait_for(
        "all tasks are accounted for",
        lambda: in_flight(counts := total(guest)) == counts["nr_queued"],
    )


def end_well(scheduler: Scheduler) -> None:
    """Ends the scheduler by SIGINT. There must be no page faults, and all tasks must be accounted
    for. Tasks served without a decision are allowed, because an emulated machine may be halted for
    longer than the policy's timeout."""
    assert scheduler.end(signal.SIGINT) == 0
    report, *_ = scheduler.process.stderr().splitlines()
    assert re.search(r" faults=0$", report), report
    assert "unaccounted" not in report


@pytest.mark.every_topology
def test_mixed_load(guest: Guest, start: Start, load: Load) -> None:
    """All kinds of tasks run and get decisions: hogs, sleepers, pipes and forks. The load fails if
    one of its threads is stuck."""
    scheduler = serve(guest, start)
    assert ops(guest) == "rlfifo"
    hogs = str(len(guest.topology.online) * 2)
    mixed = load("--hogs", hogs, *MIXED, "--seconds", "3", "--json")
    result = finished(mixed, 300)
    assert result["hogs"]["cpu_min_s"] > 0
    assert result["sleepers"]["wakeups"] > 0
    assert result["pipes"]["pair_min_per_s"] > 0
    counts = total(guest)
    assert counts["nr_page_faults"] == 0
    assert counts["nr_user_dispatches"] > 1000
    assert counts["nr_fallback_dispatches"] < counts["nr_user_dispatches"] / 20
    assert_books_balance(guest)
    end_well(scheduler)


@pytest.mark.every_topology
def test_kill_9_under_load(guest: Guest, start: Start, load: Load) -> None:
    scheduler = serve(guest, start)
    mixed = load(*MIXED, "--seconds", "3", "--json")
    wait_for("the policy decides", lambda: total(guest)["nr_user_dispatches"] > 100)
    assert scheduler.end(signal.SIGKILL) == 128 + signal.SIGKILL
    wait_disabled(guest)
    assert finished(mixed)["sleepers"]["wakeups"] > 0


@pytest.mark.every_topology
def test_stopped_scheduler_causes_no_stall(guest: Guest, start: Start, load: Load) -> None:
    """The scheduler is stopped for 6 s. BPF serves tasks in FIFO order until the policy responds
    again."""
    scheduler = serve(guest, start)
    load("--hogs", "2", *MIXED)
    wait_for("the policy decides", lambda: total(guest)["nr_user_dispatches"] > 100)
    scheduler.process.signal(signal.SIGSTOP)
    try:
        until_s = uptime_s(guest) + 6
        rounds = 0
        while uptime_s(guest) < until_s or rounds < 2:
            # Each command starts processes, which would not run without the fallback.
            guest.run("ls /proc | wc -l").check()
            rounds += 1
        assert state(guest) == "enabled"
    finally:
        scheduler.process.signal(signal.SIGCONT)
    before = total(guest)
    assert before["nr_fallback_dispatches"] > 100
    wait_for(
        "it decides again",
        lambda: total(guest)["nr_user_dispatches"] > before["nr_user_dispatches"] + 500,
    )

    def is_settled() -> bool:
        before = total(guest)["nr_fallback_dispatches"]
        guest.run(["sleep", "2"]).check()
        return total(guest)["nr_fallback_dispatches"] == before

    # This may take a while: whenever the host halts the guest, and thereby the policy, BPF serves
    # tasks again.
    wait_for("BPF serves no more tasks", is_settled)
    assert_books_balance(guest)
    assert scheduler.end(signal.SIGINT) == 0
    assert "tasks without a decision" in scheduler.process.stderr()


#: Prints the scheduler's counters four times. Then stops the scheduler three times, and prints its
#: counters before and after each stop. For the stops, the shell becomes a real-time task, because
#: it has to resume the scheduler and must not depend on it. The change comes only after the first
#: four readings, because real-time tasks that run for long would delay the scheduler.
STOPS = """
scx_rlfifo & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
count() { scx_stats_client SOCKET ask 'TOTAL'; }
scx_load --hogs 8 --sleepers 16 --pipes 0 --forks-per-s 0 --seconds 60 >/dev/null & load=$!
sleep 0.5
for sample in 1 2 3 4; do count; done
chrt -f -p 50 $$
for pause in 0.9 0.9 4; do
    count
    kill -STOP $scheduler
    sleep $pause
    kill -CONT $scheduler
    sleep 0.1
    count
done
kill -INT $load
wait $load
kill -INT $scheduler
wait $scheduler
"""


def test_slow_policy_gets_a_longer_timeout(replayed: Callable[[str], str]) -> None:
    """At first, BPF serves tasks without a decision after the policy has not answered for 500 ms.
    After a late answer, this timeout is longer, because otherwise the decisions of a slow policy
    would never be in time. The longer timeout delays only tasks without a decision."""
    counts = answers(replayed(STOPS.replace("SOCKET", SOCKET).replace("TOTAL", TOTAL)))
    print([count["nr_scheduled"] for count in counts])
    early, counts = counts[:-6], counts[-6:]
    served = [count["nr_fallback_dispatches"] for count in counts]
    in_stops = [after - before for before, after in zip(served[::2], served[1::2], strict=True)]
    assert in_stops[0] > 0
    assert in_stops[1] == 0
    assert in_stops[2] > 0
    # Before the first stop, the policy holds the waiting hogs most of the time. After the late
    # answer that follows this stop, the BPF side considers the policy slow for a minute. Meanwhile
    # the policy decides on each task at once, and holds no task.
    assert any(count["nr_scheduled"] for count in early)
    assert not any(count["nr_scheduled"] for count in counts[1:])


#: Stops and resumes the scheduler five times beside hogs, and prints how often the kernel has
#: re-enqueued tasks with SCX_ENQ_IMMED. The shell is a real-time task, as in STOPS.
WAKEUPS_OF_ALL_THREADS = """
scx_rlfifo & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
scx_load --hogs 8 --pipes 0 --forks-per-s 0 --seconds 60 >/dev/null & load=$!
sleep 0.2
chrt -f -p 50 $$
for round in 1 2 3 4 5; do
    kill -STOP $scheduler
    sleep 0.05
    kill -CONT $scheduler
    sleep 0.1
    grep SCX_EV_REENQ_IMMED /sys/kernel/sched_ext/root/events
done
kill -INT $load
wait $load
kill -INT $scheduler
wait $scheduler
"""


def test_own_threads_do_not_displace_each_other(replayed: Callable[[str], str]) -> None:
    """SIGCONT wakes all threads of the scheduler at once, and no CPU is idle. If two threads
    preempt the same CPU, the kernel re-enqueues both of them. In an earlier version, both then
    moved to the same other CPU. This repeated 6000 to 100,000 times in 10 to 100 ms, and meanwhile
    neither of the two threads ran."""
    printed = replayed(WAKEUPS_OF_ALL_THREADS)
    found = [int(line.split()[1]) for line in printed.splitlines() if "REENQ_IMMED" in line]
    print(found)
    assert len(found) == 5
    assert found[-1] < 100


@pytest.mark.every_topology
@STOPS_FAIR_SERVER_TWICE
def test_hotplug_in_place(guest: Guest, start: Start, load: Load, set_cpu: SetCpu) -> None:
    """A CPU goes offline and online five times under load, without a restart."""
    if len(guest.topology.online) == 1:
        pytest.skip("the only CPU cannot go offline")
    scheduler = serve(guest, start)
    load("--hogs", str(len(guest.topology.online) + 2), *MIXED)
    nr_cpus = len(guest.topology.online)
    # A CPU that stays idle with tasks in its queue in spite of kicks counts as offline until it
    # dispatches.
    wait_for("all CPUs are online", lambda: total(guest)["nr_cpus"] == nr_cpus)
    offline_s = []
    for cycle in range(5):
        offline_s.append(set_cpu(1, False))
        if cycle == 0:
            wait_for("one CPU is offline", lambda: total(guest)["nr_cpus"] == nr_cpus - 1)
        set_cpu(1, True)
    # A CPU goes offline when all tasks have left it, which the CPU checks only when it schedules.
    # Without the scheduler's kick of this CPU, going offline took 8 s, or forever.
    assert statistics.median(offline_s) < 4, offline_s
    # A CPU in its last steps of going offline must not wake the policy thread (is_dying_cpu()).
    # When such a CPU did, the wakeup was lost in some runs on 7.2, and going offline took 15 s.
    assert max(offline_s) < 10, offline_s
    print(f"offline after {[round(s, 2) for s in offline_s]} s")
    wait_for("all CPUs are online again", lambda: total(guest)["nr_cpus"] == nr_cpus)
    before = total(guest)["nr_user_dispatches"]
    wait_for("the policy decides", lambda: total(guest)["nr_user_dispatches"] > before + 100)
    assert_books_balance(guest)
    assert scheduler.end(signal.SIGINT) == 0
    assert "restarting" not in scheduler.process.stderr()


def test_cpu_that_was_offline_at_the_start_is_used(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    set_cpu(1, False)
    scheduler = serve(guest, start)
    set_cpu(1, True)
    pinned = load("--hogs", "1", *QUIET, "--seconds", "3", "--json", through="taskset 2")
    assert finished(pinned)["hogs"]["cpu_min_s"] > 0.5
    assert scheduler.end(signal.SIGINT) == 0


@STOPS_FAIR_SERVER_TWICE
def test_all_allowed_cpus_go_offline(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    """The hogs may use two CPUs. One of these is offline, and the other goes offline while the
    policy is stopped and the hogs wait for a decision. On 6.17, that CPU has stopped dispatching by
    the time BPF begins to serve the hogs."""
    scheduler = serve(guest, start)
    hogs = load("--hogs", "6", *QUIET, "--seconds", "3600", "--json", through="taskset c")
    wait_for("all hogs run", lambda: sum(s > 0.02 for s in hog_times_s(guest, hogs)) == 6)
    set_cpu(2, False)
    scheduler.process.signal(signal.SIGSTOP)
    offline_s = set_cpu(3, False, is_urgent=True)
    print(f"offline after {offline_s:.2f} s")
    scheduler.process.signal(signal.SIGCONT)
    before = hog_times_s(guest, hogs)
    wait_for(
        "each hog runs elsewhere",
        lambda: all(b > a for a, b in zip(before, hog_times_s(guest, hogs), strict=True)),
    )
    hogs.signal(signal.SIGINT)
    finished(hogs)
    assert offline_s < 4
    assert scheduler.end(signal.SIGINT) == 0


@pytest.mark.every_topology
def test_affinity_storm(guest: Guest, start: Start, load: Load) -> None:
    """Threads change each other's affinity while they run, wait and wake up. So some decisions come
    too late, or are for CPUs that the task may no longer use. This must not be an error."""
    scheduler = serve(guest, start, "--percpu-local")
    storm = load("--movers", "24", "--hogs", "4", *QUIET, "--seconds", "2", "--json")
    assert finished(storm)["movers"]["changes"] > 500
    counts = total(guest)
    if len(guest.topology.online) > 1:
        assert counts["nr_cancel_dispatches"] + counts["nr_bounce_dispatches"] > 0
    assert_books_balance(guest)
    end_well(scheduler)


#: As many hogs as CPUs. Prints the CPU times of the scheduler's threads in ns before and after the
#: load. The kernel's DAMON statistics are off, because their sampling uses CPU time.
HOGS = """
echo N 2>/dev/null >/sys/module/damon_stat/parameters/enabled
scx_rlfifo & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
used() { cut -d " " -f 1 /proc/$scheduler/task/*/schedstat | tr "\\n" " "; echo; }
used
scx_load --hogs NR_CPUS --sleepers 0 --pipes 0 --forks-per-s 0 --seconds 4 --json >/tmp/told
used
cat /tmp/told
kill -INT $scheduler
wait $scheduler
"""


@pytest.mark.every_topology
@pytest.mark.once
def test_hogs_get_the_whole_cpu_time(replays: Callable[..., Outcome], shape: Topology) -> None:
    """With as many hogs as CPUs, no task waits, so there are no preemptions, and the policy thread
    sleeps. The guest is deterministic, because in other guests a context switch may take
    milliseconds."""
    nr_cpus = len(shape.online)
    script = HOGS.replace("NR_CPUS", str(nr_cpus))
    outcome = replays(shape, script)
    assert outcome.status == 0, outcome.output
    before, after, told = outcome.output.split(b"\n", 2)
    hogs, _ = json.JSONDecoder().raw_decode(told.decode())
    used_s = (sum(map(int, after.split())) - sum(map(int, before.split()))) / 1e9
    share = sum(hogs["hogs"]["cpu_s"]) / (nr_cpus * hogs["elapsed_s"])
    used = used_s / (nr_cpus * hogs["elapsed_s"])
    print(f"hogs: {share:.2%}, scheduler: {used:.3%}")
    assert share >= 0.98
    assert used <= 0.01


def test_slices_have_the_configured_length(replayed: Callable[[str], str]) -> None:
    check_slices(replayed, "scx_rlfifo --weighted", (10_000, 20_000, 30_000), nr_runs_min=21)


def test_favoured_tasks_run_to_completion_in_fifo_order(guest: Guest, start: Start) -> None:
    """With --weighted, slices of tasks of nice -5 are infinite, so each task ends before the next
    task starts."""
    scheduler = serve(guest, start, "--weighted", "--slice-us", "5000")
    work = "i=0; while [ $i -lt 12000 ]; do i=$((i + 1)); done"
    guest.run(f"echo '{work}' >/tmp/busy").check()
    recorder = Recorder(guest, "--comm", "busy", "--json")
    # The task sleeps first, because the slice for its previous weight applies until it sleeps or is
    # enqueued again.
    begin = "nice -n -5 taskset 2 sh -c 'sleep 0.1; printf busy >/proc/self/comm; . /tmp/busy'"
    # Each task starts before the previous task has ended.
    guest.run(f"for n in 1 2 3; do {begin} & sleep 0.2; done; wait", TIMEOUT_S).check()
    runs, _ = recorder.records()
    order = [run["pid"] for run in runs]
    firsts = sorted(set(order), key=order.index)
    assert len(firsts) == 3
    assert order == sorted(order, key=firsts.index), "they alternated"
    assert firsts == sorted(firsts), "not in FIFO order"
    # Each task ran for more than four slices of --slice-us.
    for pid in firsts:
        assert sum(run["ran_ns"] for run in runs if run["pid"] == pid) > 4 * 5_000_000
    assert scheduler.end(signal.SIGINT) == 0


#: Two hogs on one CPU. The first hog is favoured until it is reniced. Prints the CPU times of the
#: threads of each hog in ns three times: at first, after half a second, and half a second after the
#: first hog was reniced.
RENICED = """
scx_rlfifo --weighted & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
hog="scx_load --hogs 1 --sleepers 0 --pipes 0 --forks-per-s 0"
nice -n -5 taskset 2 $hog >/dev/null & first=$!
sleep 0.5
taskset 2 $hog >/dev/null & second=$!
used() {
    for hog in $first $second; do
        cut -d " " -f 1 /proc/$hog/task/*/schedstat | tr "\\n" " "
        echo
    done
}
used
sleep 0.5
used
renice 0 $(basename -a /proc/$first/task/*) || exit 1
sleep 0.5
used
kill -INT $first $second
wait $first
wait $second
kill -INT $scheduler
wait $scheduler
"""


def test_favoured_task_loses_favour_while_it_runs(replayed: Callable[[str], str]) -> None:
    """A task of nice -5 runs until it sleeps. When it is reniced to 0, it gets slices."""
    lines = re.findall(r"^\d+ [\d ]*$", replayed(RENICED), re.MULTILINE)
    at_s = [sum(map(int, line.split())) / 1e9 for line in lines]
    used_s = [after - before for before, after in zip(at_s, at_s[2:], strict=False)]
    print(f"CPU time while the first is favoured {used_s[:2]}, afterwards {used_s[2:]}")
    assert used_s[1] < 0.02 < used_s[0]
    assert min(used_s[2:]) > 0.1


def test_no_system_call_per_task(guest: Guest, start: Start, load: Load) -> None:
    """The policy thread makes a system call only when it goes to sleep. The calls are counted at
    the kernel's tracepoints, not by the scheduler."""
    scheduler = serve(guest, start)
    pid = str(scheduler.process.pid)
    load("--hogs", "6", *MIXED)
    wait_for("the policy decides", lambda: total(guest)["nr_user_dispatches"] > 100)
    before = total(guest)
    recorder = Recorder(guest, "--pid", pid, "--syscalls", "--json", "--summary")
    wait_for(
        "enough decisions were made",
        lambda: total(guest)["nr_user_dispatches"] > before["nr_user_dispatches"] + 2000,
    )
    summary = json.loads(recorder.stop().splitlines()[-1])
    after = total(guest)
    (thread,) = [thread for thread in summary["threads"] if thread["pid"] == int(pid)]
    dispatched = after["nr_user_dispatches"] - before["nr_user_dispatches"]
    print(
        f"{dispatched} tasks: {thread['syscalls']} system calls, {thread['wakeups']} wakeups, "
        f"{thread['cpu_ns'] / dispatched / 1000:.1f} us of CPU time each"
    )
    # The thread also wakes up once a second to check whether the scheduler was unloaded. The bound
    # uses nr_wakeups, which the wakers count: unlike the kernel's count, it includes wakeups that
    # come just before the thread goes to sleep.
    wakeups = after["nr_wakeups"] - before["nr_wakeups"]
    assert thread["syscalls"] <= wakeups + 10 + 2 * summary["elapsed_s"]
    assert scheduler.end(signal.SIGINT) == 0


#: Two hogs become real-time tasks while they run. Prints the counters before and after. A third CPU
#: remains for the thread that ends the hogs.
HOGS_LEAVE = """
scx_rlfifo & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
taskset e scx_load --hogs 2 --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null & load=$!
sleep 0.5
scx_stats_client SOCKET ask 'TOTAL'
for task in /proc/$load/task/*; do
    grep -q hog $task/comm && chrt -f -p 50 ${task##*/} >/dev/null
done
sleep 0.2
scx_stats_client SOCKET ask 'TOTAL'
kill -INT $load
wait $load
kill -INT $scheduler
wait $scheduler
"""


def test_running_tasks_are_counted(replayed: Callable[[str], str]) -> None:
    """nr_running is right although tasks leave the ext class while they run: the kernel then calls
    ops.stopping() on the CPU of chrt, not on the CPU of the task."""
    counts = answers(replayed(HOGS_LEAVE.replace("SOCKET", SOCKET).replace("TOTAL", TOTAL)))
    before, after = (count["nr_running"] for count in counts)
    print(f"running: {before}, {after}")
    # The thread that answers the client also runs, and the client may still run.
    assert before in {3, 4}
    assert after in {1, 2}


def test_percpu_local_tasks_stay(guest: Guest, start: Start, load: Load) -> None:
    scheduler = serve(guest, start, "--percpu-local")
    recorder = Recorder(guest, "--comm", "sleeper", "--json")
    load("--hogs", "2", "--sleepers", "6", *QUIET[2:], "--seconds", "4").wait(TIMEOUT_S)
    runs, _ = recorder.records()
    cpus_of: dict[int, list[int]] = {}
    for run in runs:
        cpus_of.setdefault(run["pid"], []).append(run["cpu"])
    assert len(cpus_of) == 6
    moves = sum(a != b for cpus in cpus_of.values() for a, b in itertools.pairwise(cpus))
    # A task moves only in events that are counted. For example, if an emulated CPU does not react
    # to kicks in time, the tasks in its queue are moved to other CPUs.
    counts = total(guest)
    reasons = ("nr_rescued", "nr_bounce_dispatches", "nr_fallback_dispatches")
    assert moves <= sum(counts[reason] for reason in reasons), counts
    assert moves < len(runs) / 10, counts
    assert scheduler.end(signal.SIGINT) == 0


def test_builtin_idle_leaves_wakeups_to_the_kernel(replayed: Callable[[str], str]) -> None:
    """With --builtin-idle, a task bypasses the policy if the kernel finds an idle CPU for it on
    wakeup."""
    commands = ["scx_rlfifo", "scx_rlfifo --builtin-idle"]
    load = ("--hogs", "0", "--sleepers", "8", *QUIET[2:])
    asked, asked_builtin = (
        counts["nr_asked"] / (counts["nr_asked"] + counts["nr_kernel_dispatches"])
        for counts in counted(replayed, commands, load)
    )
    print(f"asked about: {asked:.2f}, with --builtin-idle {asked_builtin:.2f} of all")
    assert asked_builtin < asked / 2


def test_inherited_slice_is_not_extended(guest: Guest, start: Start, load: Load) -> None:
    """Two tasks that wake each other up share two CPUs with two hogs. On each wakeup, the wakee may
    inherit the rest of the waker's slice. If the slice grew on the way, the pair would starve the
    hogs."""
    scheduler = serve(guest, start, "--builtin-idle")
    quiet = ("--sleepers", "0", "--forks-per-s", "0", "--seconds", "4", "--json")
    result = finished(load("--hogs", "2", "--pipes", "1", *quiet, through="taskset 3"))
    assert result["pipes"]["round_trips"] > 100
    share = result["hogs"]["cpu_min_s"] / result["elapsed_s"]
    print(f"{result['pipes']['round_trips']} round trips; a hog got {share:.2f} of a CPU")
    assert share > 0.25
    assert scheduler.end(signal.SIGINT) == 0


def test_next_run_after_kill_9_restores_the_original_setting(guest: Guest, start: Start) -> None:
    if not guest.run(f"echo 1 >{COMPACTION}").ok:
        pytest.skip("the kernel does not compact memory")
    scheduler = start("scx_rlfifo").wait_enabled()
    assert read(guest, COMPACTION) == "0"
    assert scheduler.end(signal.SIGKILL) == 128 + signal.SIGKILL
    wait_disabled(guest)
    assert read(guest, COMPACTION) == "0"
    again = start("scx_rlfifo").wait_enabled()
    assert read(guest, COMPACTION) == "0"
    assert again.end(signal.SIGINT) == 0
    assert read(guest, COMPACTION) == "1"


# This must be the last test of its guest. While 6.12 enables a scheduler, it drops its reference to
# each task with a lock held, and takes the same lock again if this was the last reference
# (scx_ops_enable_workfn(), sched_ext_free()). So the kernel deadlocks if a task that has exited is
# freed at that time. After this test, there are thousands of such tasks.
@pytest.mark.once
def test_ten_thousand_tasks(guest: Guest, start: Start) -> None:
    guest.run("echo 40000 >/proc/sys/kernel/threads-max").check()
    scheduler = serve(guest, start)
    crowd = guest.spawn("crowd", ["scx_crowd", "10000"])
    try:
        wait_for("all tasks exist", lambda: "ready" in crowd.stdout(), timeout_s=300)
        before = total(guest)["nr_asked"]
        wait_for(
            "the tasks wake up", lambda: total(guest)["nr_asked"] > before + 12_000, timeout_s=300
        )
        assert total(guest)["nr_page_faults"] == 0
        assert state(guest) == "enabled"
        # End the scheduler before the tasks exit: a thousand exits per second are too many for an
        # emulated machine, and would delay the kernel's watchdog.
        assert scheduler.end(signal.SIGINT) == 0
        assert "unaccounted" not in scheduler.process.stderr()
    finally:
        crowd.signal(signal.SIGINT)
    assert crowd.wait(TIMEOUT_S) == 0, crowd.stderr()
