# SPDX-License-Identifier: GPL-2.0-only
"""What holds for every scheduler on a real kernel: it comes, it goes, and it says why not."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest
from sched_ext import TIMEOUT_S, Scheduler, read, state, wait_disabled
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS
from vm.guest import Guest, Process

Start = Callable[..., Scheduler]
Load = Callable[..., Process]


@pytest.fixture(params=C_SCHEDULERS + RUST_SCHEDULERS)
def program(request: pytest.FixtureRequest) -> str:
    return request.param


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


def last_words(scheduler: Scheduler) -> str:
    """Why it ended, as it says; before that it may say that all was well."""
    *before, last = scheduler.process.stderr().splitlines()
    assert all(re.match(r"scx_\w+: healthy: ", line) for line in before), before
    return last


@pytest.mark.every_topology
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_signal_ends_it_cleanly(guest: Guest, start: Start, program: str, number: int) -> None:
    scheduler = start(program).wait_enabled()
    assert scheduler.end(number) == 0
    assert last_words(scheduler) == "EXIT: unregistered from user space"
    assert state(guest) == "disabled"


def test_kill_9_leaves_a_working_system(
    guest: Guest, start: Start, load: Load, program: str
) -> None:
    """The kernel's scheduler takes over, and the next load works."""
    scheduler = start(program).wait_enabled()
    process = load("--hogs", "6", "--seconds", "4")
    assert scheduler.end(signal.SIGKILL) == 128 + signal.SIGKILL
    wait_disabled(guest)
    assert process.wait(TIMEOUT_S) == 0, process.stderr()

    again = start(program).wait_enabled()
    assert again.end(signal.SIGINT) == 0


def test_loads_while_another_is_still_being_unloaded(start: Start, program: str) -> None:
    scheduler = start(program).wait_enabled()
    scheduler.end(signal.SIGKILL)
    again = start(program).wait_enabled()
    assert again.end(signal.SIGINT) == 0


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


def test_sysrq_s_is_the_emergency_exit(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program).wait_enabled()
    guest.run("echo S >/proc/sysrq-trigger").check()
    assert scheduler.end() == 0
    assert last_words(scheduler) == "EXIT: disabled by sysrq-S"


def test_partial_leaves_other_tasks_alone(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program, "--partial").wait_enabled()
    assert read(guest, "/sys/kernel/sched_ext/switch_all") == "0"
    enabled = read(guest, f"/proc/{scheduler.process.pid}/sched")
    assert re.search(r"ext\.enabled\s+:\s+0", enabled), enabled
