# SPDX-License-Identifier: GPL-2.0-only
"""Schedulers written for the kernel's own sched_ext headers (docs/upstream.md). They load,
schedule and end like the other schedulers of this tree. Their exit status is right although their
own main() returns 0 even after an ejection."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest
from sched_ext import STOPS_FAIR_SERVER_TWICE, Scheduler, ops, read, state, wait_for
from vm.guest import Guest, Process

Start = Callable[..., Scheduler]
SetCpu = Callable[[int, bool], float]
Load = Callable[..., Process]

PROGRAMS = ["scx_rbtree", "scx_masks", "scx_resized", "scx_uqueue"]

#: The kernel's message about an ejected scheduler, and a call trace.
EJECTED = pytest.mark.kernel_complains(r"sched_ext: .*(failing at|BPF sched)|Call Trace:")


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return request.param


def values(line: str) -> dict[str, int]:
    """The NAME=VALUE fields of a line of statistics."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}


def test_schedules_under_load(guest: Guest, start: Start, load: Load, program: str) -> None:
    scheduler = start(program).wait_enabled()
    assert ops(guest) == program.removeprefix("scx_")
    assert read(guest, "/sys/kernel/sched_ext/switch_all") == "1"

    # More hogs than CPUs: some tasks have to wait. scx_masks needs idle CPUs instead.
    nr_hogs = 0 if program == "scx_masks" else len(guest.topology.online) * 2
    process = load("--hogs", str(nr_hogs), "--sleepers", "8")
    first = values(scheduler.wait_lines(1)[0])
    last = values(scheduler.wait_lines(1)[0])
    print(first, last)
    assert last["enqueued"] > first["enqueued"]
    assert last["decided"] > first["decided"], "its own code made no decision"
    enabled = read(guest, f"/proc/{process.pid}/sched")
    assert re.search(r"ext\.enabled\s+:\s+1", enabled), enabled

    second = guest.run([program])
    assert second.status == 1
    name = program.removeprefix("scx_")
    assert second.stderr == f"{program}: the scheduler '{name}' is running: stop it first\n"

    assert scheduler.end(signal.SIGINT) == 0
    assert scheduler.process.stderr() == "EXIT: unregistered from user space\n"
    assert state(guest) == "disabled"


def test_partial_leaves_other_tasks_alone(guest: Guest, start: Start, program: str) -> None:
    """With -p, main() sets a flag whose value the running kernel defines. SysRq-S ends the program
    with status 0."""
    scheduler = start(program, "-p").wait_enabled()
    assert read(guest, "/sys/kernel/sched_ext/switch_all") == "0"
    guest.run("echo S >/proc/sysrq-trigger").check()
    assert scheduler.end() == 0
    assert scheduler.process.stderr() == "EXIT: disabled by sysrq-S\n"


#: A load for tests that need 60 enqueues. Without it, an idle guest takes half a minute for these.
BUSY = ("--hogs", "8", "--sleepers", "8")


@EJECTED
def test_error_ejects_with_status_2_and_a_dump(
    guest: Guest, start: Start, load: Load, program: str
) -> None:
    """The exit status is 2 although main() returns 0."""
    load(*BUSY)
    scheduler = start(program, "-e", "60")
    assert scheduler.end() == 2
    stderr = scheduler.process.stderr()
    assert "DEBUG DUMP" in stderr
    assert stderr.endswith("EXIT: scx_bpf_error (failing at enqueue 60)\n")
    assert state(guest) == "disabled"


@EJECTED
def test_dump_is_limited(start: Start, load: Load, program: str) -> None:
    load(*BUSY)
    scheduler = start(program, "-e", "60", "-d", "300")
    assert scheduler.end() == 2
    text = scheduler.process.stderr().split("=" * 80)[2]
    assert 100 < len(text.strip()) < 300


@STOPS_FAIR_SERVER_TWICE
def test_cpu_hotplug_restarts_it(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu, program: str
) -> None:
    """The exit code requests a restart. main() then loads the scheduler again, with its options."""
    scheduler = start(program, "-s", "3000").wait_enabled()
    load("--hogs", "6")
    set_cpu(1, False)
    wait_for("it ends", lambda: "unregistered from the main kernel" in scheduler.process.stderr())
    scheduler.wait_enabled()
    last = values(scheduler.wait_lines(1)[0])
    assert last["slice_us"] == 3000, "the option is lost"
    set_cpu(1, True)
    wait_for("it ends again", lambda: scheduler.process.stderr().count("EXIT:") == 2)
    scheduler.wait_enabled()
    assert scheduler.end(signal.SIGTERM) == 0


def test_without_root_it_is_refused(guest: Guest, program: str) -> None:
    done = guest.run([program], user="nobody")
    assert done.status == 1
    assert re.fullmatch(rf"{program}: .*root.*\n", done.stderr), done.stderr
