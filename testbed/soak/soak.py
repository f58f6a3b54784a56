# SPDX-License-Identifier: GPL-2.0-only
"""Runs the sequence of actions in a guest, and evaluates the scheduler."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vm import health, kernels
from vm.guest import Guest, Process, temporary_log
from vm.kernels import Kernel
from vm.topology import Topology

from .actions import Action, Scene, sequence

#: Time at the start during which the scheduler's memory may grow without limit.
_SETTLE_S = 5.0
#: Allowed growth of the scheduler's memory, KiB.
_GROWTH_MAX_KIB = 1024
#: A line in the kernel log. The messages before this line are not caused by the scheduler.
_MARK = "scx soak begins"
#: Timeout of operations that take at most a few seconds in a healthy guest.
_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Setup:
    """The scheduler and its environment."""

    kernel: Kernel
    topology: Topology
    scheduler: Path
    arguments: tuple[str, ...]
    #: scx_load, and programs that busybox may lack.
    programs: tuple[Path, ...]
    seed: int
    seconds: float
    #: Whether the scheduler uses scx_rustland_core. Its policy thread must then cause no page
    #: faults.
    is_in_user_space: bool
    #: See Scene.
    has_monitor: bool


@dataclass
class Verdict:
    """The result."""

    nr_actions: int = 0
    page_faults: int = 0
    memory_kib: tuple[int, int] = (0, 0)
    #: A file with the output of the scheduler and of the kernel, if the test failed.
    log: Path | None = None
    #: All failures; empty if the test passed.
    faults: list[str] = field(default_factory=list)


def run(setup: Setup, tell: Callable[[str], None]) -> Verdict:
    """Boot a guest and run the stress test. `tell` is called with a line for each action.

    Raises the errors of Guest.boot(), and CommandError.
    """
    lifetime_s = setup.seconds * 3 + 1800
    programs = [setup.scheduler, *setup.programs]
    with Guest(setup.kernel, setup.topology, programs=programs, lifetime_s=lifetime_s) as guest:
        return _Soak(setup, guest, tell).run()


class _Soak:
    """One run."""

    def __init__(self, setup: Setup, guest: Guest, tell: Callable[[str], None]) -> None:
        self.setup = setup
        self.guest = guest
        self.tell = tell
        self.verdict = Verdict()
        guest.run(f"echo '{_MARK}' >/dev/kmsg").check()
        self.process: Process = guest.spawn("scheduler", [setup.scheduler.name, *setup.arguments])

    def run(self) -> Verdict:
        if self._wait(lambda: self._state() == "enabled"):
            self._soak()
        else:
            self.verdict.faults.append(f"it was not enabled: {self._said()}")
        self._end()
        return self.verdict

    def _soak(self) -> None:
        self.guest.run(["sleep", str(_SETTLE_S)]).check()
        before = self._figures()
        self._sequence()
        if not self.verdict.faults:
            self._judge(before, self._figures())

    def _sequence(self) -> None:
        setup = self.setup
        scene = Scene(setup.topology, self.process.pid, setup.scheduler.name, setup.has_monitor)
        deadline_s = time.monotonic() + setup.seconds
        for action in sequence(scene, setup.seed):
            if time.monotonic() > deadline_s:
                return
            self._act(action)
            # After hotplug, the scheduler may still be restarting.
            self._wait(lambda: self._state() == "enabled" or not self.process.running())
            if self._state() != "enabled" or not self.process.running():
                self.verdict.faults.append(f"it ended during '{action.what}': {self._said()}")
                return

    def _act(self, action: Action) -> None:
        self.verdict.nr_actions += 1
        self.tell(f"{self.verdict.nr_actions}: {action.what}")
        done = self.guest.run(action.script, timeout_s=_TIMEOUT_S)
        if done.timed_out:
            self.verdict.faults.append(f"'{action.what}' took more than {_TIMEOUT_S:g} s")
        self.guest.run(["sleep", "0.5"]).check()

    def _judge(self, before: dict[str, int], after: dict[str, int]) -> None:
        verdict = self.verdict
        verdict.page_faults = after["faults"] - before["faults"]
        verdict.memory_kib = (before["memory_kib"], after["memory_kib"])
        if self.setup.is_in_user_space and verdict.page_faults:
            verdict.faults.append(f"{verdict.page_faults} page faults of the policy thread")
        if after["memory_kib"] > before["memory_kib"] + _GROWTH_MAX_KIB:
            verdict.faults.append(
                "its memory has grown from {} to {} KiB".format(*verdict.memory_kib)
            )

    def _end(self) -> None:
        verdict = self.verdict
        if self.process.running():
            self.process.signal(signal.SIGINT)
            try:
                status = self.process.wait(_TIMEOUT_S)
                if status != 0:
                    verdict.faults.append(f"it ended with status {status}: {self._said()}")
            except TimeoutError:
                verdict.faults.append("SIGINT does not end it")
        if not _wait(lambda: self._state() == "disabled"):
            verdict.faults.append("the kernel does not unload it")
        is_lenient = kernels.matches(self.setup.kernel.release, health.FAIR_SERVER_SERIES)
        allowed = [health.FAIR_SERVER_WARNING] if is_lenient else []
        log = self.guest.kernel_log().rpartition(_MARK)[2]
        complaints = health.complaints(log, allowed)
        verdict.faults += [f"kernel error: {line}" for line in complaints[:10]]
        if verdict.faults:
            verdict.log = temporary_log()
            verdict.log.write_text(f"{self.process.stderr()}\n{log}")

    def _figures(self) -> dict[str, int]:
        """Memory of the process in KiB, and the number of page faults of its main thread."""
        pid = self.process.pid
        status = self.guest.read(f"/proc/{pid}/status").check().stdout
        memory = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        stat = self.guest.read(f"/proc/{pid}/task/{pid}/stat").check().stdout
        # The fields from the third on: the second, the name, may contain spaces. minflt is the
        # tenth, majflt the twelfth.
        fields = stat.rpartition(")")[2].split()
        return {"memory_kib": int(memory.split()[1]), "faults": int(fields[7]) + int(fields[9])}

    def _state(self) -> str:
        return self.guest.read("/sys/kernel/sched_ext/state").stdout.strip()

    def _said(self) -> str:
        return " ".join(self.process.stderr().strip().splitlines()[-3:])

    def _wait(self, condition: Callable[[], bool]) -> bool:
        return _wait(condition, lambda: not self.process.running())


def _wait(condition: Callable[[], bool], has_ended: Callable[[], bool] = lambda: False) -> bool:
    """Wait until the condition is true, but not after `has_ended()` is true, and at most for the
    timeout. Returns whether it is true."""
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline_s or has_ended():
            return condition()
        time.sleep(0.2)
    return True
