# SPDX-License-Identifier: GPL-2.0-only
"""Exits of the C and the Rust runner, with a scheduler that fails on purpose: the programs scx_fail
and scx_fail_rust of tests/scheds, whose BPF side is the same."""

from __future__ import annotations

import re
import signal

import pytest
from sched_ext import ENABLES_OFTEN, TIMEOUT_S, Load, Start, state, wait_for
from vm.guest import Guest

ACT_RESTART = 1 << 48

#: The kernel's message about an ejected scheduler, and a call trace.
EJECTED = pytest.mark.kernel_complains(r"sched_ext: .*\bfail\b|Call Trace:")

#: The option that sets the interval of statistics.
INTERVAL = {"scx_fail": "-i", "scx_fail_rust": "--stats"}


@pytest.fixture(params=INTERVAL)
def program(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.kernel_complains("runtime error")
def test_failing_init_is_a_load_error(guest: Guest, start: Start, program: str) -> None:
    """The system call that enables the scheduler succeeds. Only the exit record shows the
    failure."""
    scheduler = start(program, "--init-error", "17")
    assert scheduler.end() == 1
    message = f"{program}: the scheduler failed to start: ops.init() failed (-17)\n"
    assert scheduler.process.stderr() == message
    assert state(guest) == "disabled"


@EJECTED
def test_error_ejects_with_status_2_and_a_dump(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program, "--error-after", "60")
    assert scheduler.end() == 2
    stderr = scheduler.process.stderr()
    assert "DEBUG DUMP" in stderr
    dumped = re.search(r"fail: (\d+) enqueued", stderr)
    assert dumped, "ops.dump() is not in the dump"
    # Other CPUs may enqueue more tasks before the dump.
    assert int(dumped[1]) >= 60
    assert stderr.endswith("EXIT: scx_bpf_error (failing after 60 enqueues as asked)\n")
    assert state(guest) == "disabled"


@EJECTED
def test_dump_is_limited(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program, "--error-after", "60", "--exit-dump-len", "300")
    assert scheduler.end() == 2
    rule = "=" * 80
    text = scheduler.process.stderr().split(rule)[2]
    assert 100 < len(text.strip()) < 300


#: A task of low weight, because scx_fail loses only such tasks. The name of the task contains a
#: newline and an escape character.
NAME = "\nEXIT: a\33c"
VICTIM = f"nice -n 5 sh -c 'printf \"{NAME}\" >/proc/$$/comm; while :; do :; done'"


@EJECTED
def test_stall_ejects_with_status_2(guest: Guest, start: Start, program: str) -> None:
    victim = guest.spawn("victim", VICTIM)
    wait_for("its name", lambda: guest.run("grep -q '^EXIT: a' /proc/[0-9]*/comm").ok)
    scheduler = start(program, "--stall-after", "1")
    assert scheduler.end() == 2
    stderr = scheduler.process.stderr()
    *dump, last = stderr.splitlines()
    assert re.match(r"EXIT: runnable task stall \(.EXIT: a.c\[\d+\] failed to run", last), last
    assert re.search("EXIT: a[?\N{REPLACEMENT CHARACTER}]c", "\n".join(dump))
    assert not re.search(r"[\0-\x08\x0b-\x1f\x7f]", stderr)
    # Lost tasks run again, under the kernel's scheduler.
    assert state(guest) == "disabled"
    assert victim.running()
    victim.signal(signal.SIGKILL)
    victim.wait(TIMEOUT_S)


def test_own_exit_code_is_a_clean_exit(guest: Guest, start: Start, program: str) -> None:
    scheduler = start(program, "--exit-after", "60", "--exit-code", "7")
    assert scheduler.end() == 0
    stderr = scheduler.process.stderr()
    assert stderr == "EXIT: unregistered from BPF (leaving after 60 enqueues as asked)\n"


def test_restart_keeps_the_options(start: Start, load: Load, program: str) -> None:
    """The exit code that requests a restart has 64 bits. Truncated to 32 bits, it would request an
    exit."""
    code = hex(ACT_RESTART | 7)
    scheduler = start(
        program, "--exit-after", "1000", "--exit-code", code, INTERVAL[program], "0.2"
    )
    load("--forks-per-s", "50")
    wait_for("two restarts", lambda: scheduler.process.stderr().count("restarting") >= 2)
    scheduler.wait_lines(1)
    assert scheduler.end(signal.SIGINT) == 0
    assert {line.split()[1] for line in scheduler.lines()} == {"exit_after=1000"}


@ENABLES_OFTEN
def test_signal_during_restarts_ends_it(guest: Guest, start: Start, program: str) -> None:
    """A scheduler that requests a restart at its first enqueue restarts again and again."""
    scheduler = start(program, "--exit-after", "1", "--exit-code", hex(ACT_RESTART))
    wait_for("restarts", lambda: scheduler.process.stderr().count("restarting") >= 4)
    assert scheduler.end(signal.SIGTERM) == 0
    assert state(guest) == "disabled"


def test_hangup_ends_it_cleanly(guest: Guest, start: Start, program: str) -> None:
    """If its terminal is closed, the scheduler restores all settings of the machine."""
    scheduler = start(program).wait_enabled()
    assert scheduler.end(signal.SIGHUP) == 0
    assert scheduler.process.stderr() == "EXIT: unregistered from user space\n"
    assert state(guest) == "disabled"


def test_nohup_ignores_a_hangup(guest: Guest, program: str) -> None:
    """`nohup` starts the program with SIGHUP ignored."""
    process = guest.spawn(program, f"trap '' HUP; exec {program} {INTERVAL[program]} 0.2")
    wait_for("a line", lambda: process.stdout().count("\n") > 0)
    process.signal(signal.SIGHUP)
    so_far = process.stdout().count("\n")
    wait_for("more lines", lambda: process.stdout().count("\n") > so_far + 2)
    process.signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 0


def test_closed_output_ends_it(guest: Guest, program: str) -> None:
    """A command such as `scx_simple | head` leaves no scheduler in the background."""
    command = f"{program} {INTERVAL[program]} 0.2"
    script = f"({command}; echo $? >/tmp/status) | head -n 2; cat /tmp/status"
    done = guest.run(script, TIMEOUT_S).check()
    *lines, status = done.stdout.splitlines()
    assert (len(lines), status) == (2, "0"), done.stdout
    assert state(guest) == "disabled"
