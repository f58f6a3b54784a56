# SPDX-License-Identifier: GPL-2.0-only
"""Every scheduler on a real kernel: loading, unloading, and error messages."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator

import pytest
from sched_ext import (
    SYSFS,
    TIMEOUT_S,
    Load,
    Scheduler,
    Start,
    read,
    schedulers_of,
    state,
    wait_disabled,
    wait_for,
)
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS
from vm.guest import Guest, Process


@pytest.fixture(scope="module", params=C_SCHEDULERS + RUST_SCHEDULERS)
def program(request: pytest.FixtureRequest) -> str:
    return request.param


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


def last_line(scheduler: Scheduler) -> str:
    """The last line of standard error, which is the reason for the exit. The lines before it may
    only say that the scheduler is healthy, or which features this kernel lacks."""
    allowed = r"scx_\w+: (healthy: |this kernel )"
    *before, last = scheduler.process.stderr().splitlines()
    assert all(re.match(allowed, line) for line in before), before
    return last


def nr_hogs(guest: Guest, load: Process) -> int:
    return read(guest, f"/proc/{load.pid}/task/*/comm").count("hog")


#: Prints the PID and the policy of RCU's grace-period kthread.
RCU_THREAD = r"sed -nE '/[(]rcu_(preempt|sched)[)]/p' /proc/[0-9]*/stat | cut -d' ' -f1,41"
SCHED_OTHER, SCHED_FIFO = "0", "1"


def thread_policy(guest: Guest) -> list[str]:
    return guest.run(RCU_THREAD).check().stdout.split()


def has_ext_server(guest: Guest) -> bool:
    """Whether the kernel has the ext server, which reserves CPU time for sched_ext tasks."""
    return guest.run("[ -d /sys/kernel/debug/sched/ext_server ]").ok


@pytest.mark.every_topology
def test_sigint_ends_it_cleanly(guest: Guest, start: Start, program: str) -> None:
    """The scheduler also restores the policy of the RCU thread."""
    thread, _ = thread_policy(guest)
    # A scheduler that was killed before may have left the policy changed.
    guest.run(["chrt", "-o", "-p", "0", thread]).check()
    scheduler = start(program).wait_enabled()
    assert thread_policy(guest) == [thread, SCHED_OTHER if has_ext_server(guest) else SCHED_FIFO]
    assert scheduler.end(signal.SIGINT) == 0
    assert last_line(scheduler) == "EXIT: unregistered from user space"
    assert state(guest) == "disabled"
    assert thread_policy(guest) == [thread, SCHED_OTHER]


def test_kill_9_leaves_a_working_system(
    guest: Guest, start: Start, load: Load, program: str
) -> None:
    """Under load, the scheduler can be started again while the kernel still unloads the killed one.
    After the second kill, the kernel's own scheduler takes over."""
    scheduler = start(program).wait_enabled()
    process = load("--hogs", "6", "--pipes", "0")
    # All hogs start before the unload. Other tests fork during the unload: see unloads_within().
    wait_for("all hogs run", lambda: nr_hogs(guest, process) == 6)
    # The state may still be that of the killed scheduler, so wait until the kernel has counted
    # another scheduler in enable_seq.
    nr_loads = read(guest, f"{SYSFS}/enable_seq")
    assert scheduler.end(signal.SIGKILL) == 128 + signal.SIGKILL
    again = start(program)
    wait_for(
        "it is loaded again",
        lambda: read(guest, f"{SYSFS}/enable_seq") != nr_loads or not again.process.running(),
    )
    again.wait_enabled()
    assert again.end(signal.SIGKILL) == 128 + signal.SIGKILL
    wait_disabled(guest)
    # Each hog has to run in order to end.
    process.signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 0, process.stderr()


#: The kernel's RCU stall warning, with the backtrace of a task. The kernel prints it if a grace
#: period does not end within 21 s.
RCU_WAITS = r"rcu: INFO: rcu_\w+ detected|Call Trace:"


#: Time limit of an unload beside forked hogs. If the hogs starve a task that the unload waits for,
#: the scheduler is unloaded only after scx_forks has killed the hogs at the limit.
FORKS_END_S = 60


def unloads_within(guest: Guest, scheduler: Scheduler, number: int, limit_s: int) -> bool:
    """Whether the scheduler is unloaded within `limit_s` after the signal. Hogs are forked before
    and after the signal, and run until the unload or the limit."""
    forks = ["scx_forks", str(scheduler.process.pid), str(int(number)), str(limit_s)]
    done = guest.run(forks, timeout_s=2 * TIMEOUT_S)
    print(f"after {done.stdout or 'more than ' + str(limit_s)} s")
    wait_disabled(guest)
    return done.ok


@pytest.fixture
def walk_paths(guest: Guest) -> Iterator[Callable[[], None]]:
    """A function that starts tasks that are in RCU read-side critical sections most of the
    time."""
    walk = "while :; do find /sys/devices /sys/class /sys/bus >/dev/null 2>&1; done"
    readers: list[Process] = []
    yield lambda: readers.extend(guest.spawn(f"reader{i}", walk) for i in range(12))
    for reader in readers:
        # Only the shell is killed. Its child, find, ends by itself.
        reader.signal(signal.SIGKILL)
    for reader in readers:
        reader.wait(TIMEOUT_S)


@pytest.mark.sampled
def test_unloads_beside_forks(
    guest: Guest, start: Start, walk_paths: Callable[[], None], program: str
) -> None:
    """Tasks forked during the unload are in the fair class. They can starve the tasks that are
    still in the ext class and that the unload waits for: RCU's grace-period thread, and preempted
    RCU readers. The scheduler's process prevents this, so the unload does not wait until the forked
    tasks end. On 7.2, which reserves CPU time for the ext class, the forked tasks could only slow
    down the unload."""
    scheduler = start(program).wait_enabled()
    walk_paths()
    assert unloads_within(guest, scheduler, signal.SIGTERM, FORKS_END_S)


@pytest.mark.sampled
@pytest.mark.kernel_complains(RCU_WAITS, series="6.12")
@pytest.mark.kernel_complains(RCU_WAITS, series="6.17")
def test_kill_9_beside_forks_unloads_at_the_latest_when_they_end(
    guest: Guest, start: Start, program: str
) -> None:
    """Without the ext server (6.12, 6.17), the RCU thread keeps SCHED_FIFO after a kill. This does
    not help if a forked hog has preempted an RCU reader: the unload then waits until the forked
    hogs end."""
    limit_s = FORKS_END_S if has_ext_server(guest) else 10
    is_unloaded = unloads_within(guest, start(program).wait_enabled(), signal.SIGKILL, limit_s)
    print(f"unloaded within {limit_s} s: {is_unloaded}")
    assert is_unloaded or not has_ext_server(guest)
    _, policy = thread_policy(guest)
    assert policy == (SCHED_OTHER if has_ext_server(guest) else SCHED_FIFO)


#: Maximum number of instructions that the verifier processes in all programs of a scheduler. On an
#: emulated CPU, this takes 0.7 s. During a restart, the kernel's own scheduler runs the tasks for
#: this time.
VERIFIED_INSNS_MAX = 60_000


class TestWhileItRuns:
    """Tests that share one run of the scheduler."""

    @pytest.fixture(scope="class")
    def running(self, guest: Guest, program: str) -> Iterator[Scheduler]:
        with schedulers_of(guest) as start:
            yield start(program).wait_enabled()

    def test_its_memory_has_no_huge_pages(self, guest: Guest, running: Scheduler) -> None:
        """khugepaged unmaps pages while it collapses them. Without --partial, it is a task of the
        ext class. A thread of the scheduler that faults on such a page would wait for khugepaged,
        which may itself need this thread to get a CPU."""
        status = read(guest, f"/proc/{running.process.pid}/status")
        assert re.search(r"^THP_enabled:\s+0$", status, re.MULTILINE), status

    def test_verification_is_fast(self, guest: Guest, running: Scheduler) -> None:
        fdinfo = guest.read(f"/proc/{running.process.pid}/fdinfo/*").stdout
        verified = [int(n) for n in re.findall(r"^verified_insns:\s+(\d+)$", fdinfo, re.MULTILINE)]
        print(f"{len(verified)} programs, {sum(verified)} instructions")
        # Every scheduler has at least the callbacks enqueue, dispatch, init and exit.
        assert len(verified) > 3
        assert sum(verified) < VERIFIED_INSNS_MAX

    def test_second_scheduler_is_refused(
        self, guest: Guest, running: Scheduler, program: str
    ) -> None:
        second = guest.run([program])
        assert second.status == 1
        name = program.removeprefix("scx_")
        assert second.stderr == f"{program}: the scheduler '{name}' is running: stop it first\n"
        # The first scheduler is not affected.
        assert running.process.running()
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


#: A cgroup with a lower weight than the default, if the kernel has cpu.weight.
CGROUP = "/sys/fs/cgroup/scx_test"
#: Schedulers that honour weights of cgroups without an option.
HONOURING = {"scx_flash", "scx_flatcg"}
MAKE_CGROUP = f"""
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control &&
mkdir {CGROUP} &&
echo 50 >{CGROUP}/cpu.weight
"""


def test_ignored_cgroup_control_is_reported(guest: Guest, start: Start, program: str) -> None:
    """This test also checks that SIGTERM ends the scheduler."""
    try:
        has_weights = guest.run(MAKE_CGROUP).ok
        scheduler = start(program).wait_enabled()
        assert scheduler.end(signal.SIGTERM) == 0
    finally:
        guest.run(f"rmdir {CGROUP}")
    text = scheduler.process.stderr()
    assert text.endswith("EXIT: unregistered from user space\n")
    if not has_weights:
        pytest.skip("the kernel has no weights for cgroups")
    if program in HONOURING:
        assert "under this scheduler" not in text
        return
    assert text.splitlines()[0] == (
        f"{program}: cpu.weight, cpu.idle and cpu.max of cgroups have no effect under this "
        f"scheduler: 1 set them, e.g. cpu.weight of {CGROUP}"
    )


def test_partial_leaves_other_tasks_alone(guest: Guest, start: Start, program: str) -> None:
    """With --partial, a task has to request the ext class. SysRq-S ends the scheduler."""
    scheduler = start(program, "--partial").wait_enabled()
    assert read(guest, "/sys/kernel/sched_ext/switch_all") == "0"
    enabled = read(guest, f"/proc/{scheduler.process.pid}/sched")
    assert re.search(r"ext\.enabled\s+:\s+0", enabled), enabled
    guest.run("echo S >/proc/sysrq-trigger").check()
    assert scheduler.end() == 0
    assert last_line(scheduler) == "EXIT: disabled by sysrq-S"
