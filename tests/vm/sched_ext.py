# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the guest tests of all schedulers: starts schedulers, reads the kernel's state, and
checks for errors."""

from __future__ import annotations

import itertools
import re
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from vm import health
from vm.guest import Guest, Process

SYSFS = "/sys/kernel/sched_ext"

#: The sysctl that Rust schedulers with a policy in user space set to 0 while they run.
COMPACTION = "/proc/sys/vm/compact_unevictable_allowed"

#: Generous, because a guest may run a hundred times slower than a real machine.
TIMEOUT_S = 300.0
POLL_S = 0.05

#: Event counters that may increase in normal operation, with the reason.
EXPECTED_EVENTS = {
    "SCX_EV_SELECT_CPU_FALLBACK": "the affinity changed while a CPU was being selected",
    "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE": "the CPU of the local DSQ has gone offline",
    "SCX_EV_DISPATCH_KEEP_LAST": "no other task: prev keeps running",
    "SCX_EV_ENQ_SKIP_EXITING": "exiting tasks bypass the scheduler",
    "SCX_EV_REENQ_IMMED": "a task with SCX_ENQ_IMMED could not run at once",
    "SCX_EV_REENQ_LOCAL_REPEAT": "twice in a row; the kernel ejects a scheduler that loops",
    "SCX_EV_REFILL_SLICE_DFL": "a task without a slice keeps running",
    "SCX_EV_BYPASS_DURATION": "loading and unloading bypass the scheduler",
    "SCX_EV_BYPASS_DISPATCH": "as above",
    "SCX_EV_BYPASS_ACTIVATE": "as above",
}

#: Counts migration-disabled tasks that the kernel did not pass to ops.enqueue(). It may increase,
#: too, except under the schedulers in ENQUEUE_MIGRATION_DISABLED. They set the flag
#: SCX_OPS_ENQ_MIGRATION_DISABLED on every kernel that has it.
MIGRATION_DISABLED_EVENT = "SCX_EV_ENQ_SKIP_MIGRATION_DISABLED"
ENQUEUE_MIGRATION_DISABLED = (
    *("scx_bpfland", "scx_economy", "scx_flash", "scx_lavd", "scx_rusty"),
    *("scx_pair", "scx_rlfifo", "scx_rustland"),
)

#: Marks tests that take a CPU offline: see vm.health.
STOPS_FAIR_SERVER_TWICE = pytest.mark.kernel_complains(
    health.FAIR_SERVER_WARNING, series=health.FAIR_SERVER_SERIES
)

#: Marks tests that enable schedulers dozens of times: see vm.health.
ENABLES_OFTEN = pytest.mark.kernel_complains(
    health.NEW_THREAD_WARNING, series=health.NEW_THREAD_SERIES
)


def read(guest: Guest, path: str) -> str:
    """The contents of a file in the guest, without the final newline; "" if it does not exist."""
    return guest.read(path).stdout.rstrip("\n")


def state(guest: Guest) -> str:
    """The state of sched_ext: enabling, enabled, disabling or disabled; "" if it is unknown."""
    return read(guest, f"{SYSFS}/state")


def ops(guest: Guest) -> str:
    """The name of the loaded scheduler; "" if none is loaded."""
    return read(guest, f"{SYSFS}/root/ops")


def unexpected_events(guest: Guest, program: str) -> list[str]:
    """Event counters of the loaded scheduler that should be zero, but are not. Empty before Linux
    6.15."""
    expected = set(EXPECTED_EVENTS)
    if program not in ENQUEUE_MIGRATION_DISABLED:
        expected.add(MIGRATION_DISABLED_EVENT)
    counters = (line.split() for line in read(guest, f"{SYSFS}/root/events").splitlines())
    return [f"{name} {count}" for name, count in counters if count != "0" and name not in expected]


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Polls until the condition is true. Fails the test on timeout, which is in the host's time."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        before_s = time.monotonic()
        if condition():
            return
        if time.monotonic() > deadline_s:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        # A condition that runs a command takes CPU time from what is awaited, so sleep for at
        # least as long as the condition took.
        time.sleep(max(POLL_S, time.monotonic() - before_s))


def wait_disabled(guest: Guest) -> None:
    wait_for("no scheduler is loaded", lambda: state(guest) == "disabled")


_numbers = itertools.count()


def counters(line: str) -> dict[str, int]:
    """The numbers of a line of statistics, by name."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}


class Scheduler:
    """A scheduler's process in the guest."""

    def __init__(self, guest: Guest, program: str, *args: str) -> None:
        self.guest = guest
        self.program = program
        # The name is unique, so that a killed instance is not mistaken for the next instance.
        name = f"scheduler{next(_numbers)}"
        self.process: Process = guest.spawn(name, [program, *args])
        #: Unexpected events that had been counted when the scheduler was signalled.
        self.unexpected_events: list[str] = []
        #: Whether clean_up() had to kill the process.
        self.hung = False

    def wait_enabled(self) -> Scheduler:
        """Waits until the kernel reports a scheduler as enabled. Fails the test if the process ends
        instead."""
        wait_for("the scheduler is enabled", self._enabled_or_gone)
        assert self.process.running(), self.process.stderr()
        return self

    def _enabled_or_gone(self) -> bool:
        return state(self.guest) == "enabled" or not self.process.running()

    def lines(self) -> list[str]:
        """The complete lines of statistics that the process has printed so far."""
        return self.process.stdout().split("\n")[:-1]

    def wait_lines(self, count: int) -> list[str]:
        """Waits for at least `count` more lines of statistics. Returns all new lines."""
        before = len(self.lines())
        wait_for("statistics", lambda: len(self.lines()) >= before + count)
        return self.lines()[before:]

    def end(self, number: int | None = None) -> int:
        """Sends a signal, unless `number` is None, and waits for the end of the process. Returns
        the exit status."""
        if number is not None:
            self._signal(number)
        return self.process.wait(TIMEOUT_S)

    def _signal(self, number: int) -> None:
        # Read the counters first: the kernel removes them with the scheduler.
        self.unexpected_events += unexpected_events(self.guest, self.program)
        self.process.signal(number)

    def clean_up(self) -> None:
        """Ends the process, in case it still runs after the test."""
        if self.process.running():
            self._signal(signal.SIGINT)
            try:
                self.process.wait(TIMEOUT_S)
            except TimeoutError:
                self.hung = True
                self.process.signal(signal.SIGKILL)


@contextmanager
def schedulers_of(guest: Guest) -> Iterator[Start]:
    """Yields a function that starts schedulers. At the end of the block, the schedulers are ended.
    The kernel must have counted no unexpected event."""
    wait_disabled(guest)
    started: list[Scheduler] = []

    def launch(program: str, *args: str) -> Scheduler:
        started.append(Scheduler(guest, program, *args))
        return started[-1]

    yield launch
    for scheduler in started:
        scheduler.clean_up()
    wait_disabled(guest)
    assert not any(scheduler.hung for scheduler in started), "SIGINT did not end it"
    assert not [event for scheduler in started for event in scheduler.unexpected_events]


class KernelWatch:
    """The kernel log from the creation of this object on."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self._mark = f"scx test {uuid.uuid4()}"
        guest.run(f"echo '{self._mark}' >/dev/kmsg", is_urgent=True).check()

    def log(self) -> str:
        """The new kernel messages."""
        log = self.guest.kernel_log()
        # If the mark is missing, it was overwritten. Then all messages in the log are newer than
        # the mark.
        return log.partition(self._mark)[2] or log


#: The types of the fixtures `start`, `load` and `set_cpu`.
Start = Callable[..., Scheduler]
Load = Callable[..., Process]
SetCpu = Callable[..., float]
