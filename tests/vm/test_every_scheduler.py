# SPDX-License-Identifier: GPL-2.0-only
"""What holds for every scheduler on a real kernel: it comes, it goes, and it says why not."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from sched_ext import TIMEOUT_S, Load, Scheduler, Start, read, state, wait_disabled, wait_for
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS
from vm.guest import Guest, Process


@pytest.fixture(params=C_SCHEDULERS + RUST_SCHEDULERS)
def program(request: pytest.FixtureRequest) -> str:
    return request.param


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


def last_line(scheduler: Scheduler) -> str:
    """Why it ended, as it says; before that it may say that all was well."""
    *before, last = scheduler.process.stderr().splitlines()
    assert all(re.match(r"scx_\w+: healthy: ", line) for line in before), before
    return last


def nr_hogs(guest: Guest, load: Process) -> int:
    return int(guest.run(f"cat /proc/{load.pid}/task/*/comm | grep -c hog").stdout)


@pytest.mark.every_topology
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_signal_ends_it_cleanly(guest: Guest, start: Start, program: str, number: int) -> None:
    scheduler = start(program).wait_enabled()
    assert scheduler.end(number) == 0
    assert last_line(scheduler) == "EXIT: unregistered from user space"
    assert state(guest) == "disabled"


def test_kill_9_leaves_a_working_system(
    guest: Guest, start: Start, load: Load, program: str
) -> None:
    """The kernel's scheduler takes over, and the next load works."""
    scheduler = start(program).wait_enabled()
    process = load("--hogs", "6", "--seconds", "4")
    # Those that are forked while it goes are another matter: see below.
    wait_for("all run", lambda: nr_hogs(guest, process) == 6)
    assert scheduler.end(signal.SIGKILL) == 128 + signal.SIGKILL
    wait_disabled(guest)
    assert process.wait(TIMEOUT_S) == 0, process.stderr()

    again = start(program).wait_enabled()
    assert again.end(signal.SIGINT) == 0


#: The kernel's thread that ends RCU's grace periods: its id and policy.
RCU_THREAD = r"sed -nE '/[(]rcu_(preempt|sched)[)]/p' /proc/[0-9]*/stat | cut -d' ' -f1,41"
SCHED_OTHER, SCHED_FIFO = "0", "1"

#: What the kernel says if a grace period does not end for 21 s, and where the reader is.
RCU_WAITS = r"rcu: INFO: rcu_\w+ detected|Call Trace:"


def thread_policy(guest: Guest) -> list[str]:
    return guest.run(RCU_THREAD).check().stdout.split()


def sets_time_aside(guest: Guest) -> bool:
    """Whether the kernel runs a scheduler's tasks beside others that go first."""
    return guest.run("[ -d /sys/kernel/debug/sched/ext_server ]").ok


#: How long forked hogs run: a scheduler that they starve unloads only afterwards.
FORKS_END_S = 60


def goes_beside_forks(guest: Guest, scheduler: Scheduler, number: int, limit_s: int) -> bool:
    """Whether it is gone in that time, though tasks that were forked meanwhile compute."""
    forks = ["scx_forks", str(scheduler.process.pid), str(int(number)), str(limit_s)]
    done = guest.run(forks, timeout_s=2 * TIMEOUT_S)
    print(f"after {done.stdout or 'more than ' + str(limit_s)} s")
    wait_disabled(guest)
    return done.ok


@pytest.fixture
def rcu_readers(guest: Guest) -> Iterator[None]:
    """Threads that are within an RCU reader most of the time: paths are walked so."""
    walk = "while :; do find /sys/devices /sys/class /sys/bus >/dev/null 2>&1; done"
    readers = [guest.spawn(f"reader{i}", walk) for i in range(12)]
    yield
    for reader in readers:
        # What it has started ends by itself.
        reader.signal(signal.SIGKILL)
        reader.wait(TIMEOUT_S)


def test_forks_do_not_keep_it_from_going(
    guest: Guest, start: Start, rcu_readers: None, program: str
) -> None:
    """Tasks that are forked meanwhile go first, and keep the kernel from ending the grace period
    that it waits for; and each time they interrupt an RCU reader. 7.2 only becomes slow."""
    scheduler = start(program).wait_enabled()
    assert goes_beside_forks(guest, scheduler, signal.SIGTERM, FORKS_END_S)


@pytest.mark.kernel_complains(RCU_WAITS, series="6.12")
@pytest.mark.kernel_complains(RCU_WAITS, series="6.17")
def test_killed_beside_forks_it_goes_or_waits_for_their_end(
    guest: Guest, start: Start, program: str
) -> None:
    """On 6.12 and 6.17 nobody can help any more. The thread that ends grace periods has kept its
    policy, which is enough unless an RCU reader was interrupted; then it is gone when they end."""
    limit_s = FORKS_END_S if sets_time_aside(guest) else 10
    is_gone = goes_beside_forks(guest, start(program).wait_enabled(), signal.SIGKILL, limit_s)
    print(f"gone within {limit_s} s: {is_gone}")
    assert is_gone or not sets_time_aside(guest)
    _, policy = thread_policy(guest)
    assert policy == (SCHED_OTHER if sets_time_aside(guest) else SCHED_FIFO)


def test_the_thread_of_rcu_gets_its_policy_back(guest: Guest, start: Start, program: str) -> None:
    thread, _ = thread_policy(guest)
    # A scheduler that was killed may have left it.
    guest.run(["chrt", "-o", "-p", "0", thread]).check()
    scheduler = start(program).wait_enabled()
    assert thread_policy(guest) == [thread, SCHED_OTHER if sets_time_aside(guest) else SCHED_FIFO]
    assert scheduler.end(signal.SIGTERM) == 0
    assert thread_policy(guest) == [thread, SCHED_OTHER]


def test_its_memory_is_not_gathered_into_huge_pages(
    guest: Guest, start: Start, program: str
) -> None:
    """khugepaged is a fair task, and blocks tasks that access the pages meanwhile."""
    scheduler = start(program).wait_enabled()
    told = read(guest, f"/proc/{scheduler.process.pid}/status")
    assert re.search(r"^THP_enabled:\s+0$", told, re.MULTILINE), told
    assert scheduler.end(signal.SIGINT) == 0


def test_loads_while_another_is_still_being_unloaded(start: Start, program: str) -> None:
    scheduler = start(program).wait_enabled()
    scheduler.end(signal.SIGKILL)
    again = start(program).wait_enabled()
    assert again.end(signal.SIGINT) == 0


#: What the verifier may look at. 600,000 instructions are seven seconds of an emulated CPU, at each
#: restart, in which nobody is scheduled by what he has chosen.
VERIFIED_INSNS_MAX = 60_000


def test_verifier_is_soon_done(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program).wait_enabled()
    told = guest.run(f"cat /proc/{scheduler.process.pid}/fdinfo/*").stdout
    verified = [int(n) for n in re.findall(r"^verified_insns:\s+(\d+)$", told, re.MULTILINE)]
    print(f"{len(verified)} programs, {sum(verified)} instructions")
    assert len(verified) > 5
    assert sum(verified) < VERIFIED_INSNS_MAX
    assert scheduler.end(signal.SIGINT) == 0


def test_second_scheduler_is_refused(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program).wait_enabled()
    second = guest.run([program])
    assert second.status == 1
    name = program.removeprefix("scx_")
    assert second.stderr == f"{program}: the scheduler '{name}' is running: stop it first\n"
    # The first one does not notice.
    assert scheduler.process.running()
    assert state(guest) == "enabled"


def test_without_root_it_is_refused(guest: Guest, program: str) -> None:
    done = guest.run([program], user="nobody")
    assert done.status == 1
    assert one_line(done.stderr), done.stderr
    assert "root" in done.stderr


def test_without_btf_it_is_refused(guest: Guest, program: str) -> None:
    script = f"mount -t tmpfs none /sys/kernel/btf && exec {program}"
    done = guest.run(f"unshare -m sh -c '{script}'")
    assert done.status == 1
    assert one_line(done.stderr), done.stderr
    assert "/sys/kernel/btf/vmlinux" in done.stderr
    assert "CONFIG_DEBUG_INFO_BTF" in done.stderr


#: A cgroup that has less than others, where the kernel has such a control.
CGROUP = "/sys/fs/cgroup/scx_test"
MAKE_CGROUP = f"""
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control &&
mkdir {CGROUP} &&
echo 50 >{CGROUP}/cpu.weight
"""


def test_cgroup_control_that_does_not_count_is_named(
    guest: Guest, start: Start, program: str
) -> None:
    try:
        if not guest.run(MAKE_CGROUP).ok:
            pytest.skip("the kernel has no weights for cgroups")
        scheduler = start(program).wait_enabled()
        assert scheduler.end(signal.SIGINT) == 0
    finally:
        guest.run(f"rmdir {CGROUP}")
    first, *_ = scheduler.process.stderr().splitlines()
    assert first == (
        f"{program}: cpu.weight, cpu.idle and cpu.max of cgroups have no effect under this "
        f"scheduler: 1 set them, such as cpu.weight of {CGROUP}"
    )


def test_sysrq_s_is_the_emergency_exit(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program).wait_enabled()
    guest.run("echo S >/proc/sysrq-trigger").check()
    assert scheduler.end() == 0
    assert last_line(scheduler) == "EXIT: disabled by sysrq-S"


def test_partial_leaves_other_tasks_alone(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program, "--partial").wait_enabled()
    assert read(guest, "/sys/kernel/sched_ext/switch_all") == "0"
    enabled = read(guest, f"/proc/{scheduler.process.pid}/sched")
    assert re.search(r"ext\.enabled\s+:\s+0", enabled), enabled
