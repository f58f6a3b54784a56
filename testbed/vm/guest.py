# SPDX-License-Identifier: GPL-2.0-only
"""A running guest: boot it, run commands in it, power it off.

    with Guest(kernel, programs=[path]) as guest:
        scheduler = guest.spawn("scheduler", ["scx_simple", "-v"])
        assert guest.read("/sys/kernel/sched_ext/state").stdout == "enabled\\n"
        scheduler.signal(signal.SIGINT)
        assert scheduler.wait(timeout_s=10) == 0

A command is a shell script (a string), or a program with its arguments (a list), which then
receives signals directly. Every wait has a deadline. If a guest dies, panics or hangs, GuestError
is raised, and the guest's console log is kept.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from types import FrameType, TracebackType

from debs import DebsError

from . import accelerator, emulator, initramfs, protocol, qemu, saved, terminal
from .kernels import Kernel
from .link import GuestError, Link
from .programs import RESUME, agent, built, is_built
from .progress import step, warn
from .topology import DEFAULT, TOPOLOGIES, Topology

__all__ = ["CommandError", "Guest", "GuestError", "Process", "Result"]

# All timeouts are in host time. A second of the guest may take several seconds of the host.

#: Timeout for a killed command to exit, and for the agent to read files or the kernel's log. If it
#: expires, the guest counts as hung. It is longer than the kernel's watchdog timeout (30 s of the
#: guest), after which the kernel ejects a scheduler that does not run tasks.
_KILL_GRACE_S = 300.0
#: Timeout for a command to end on a signal, before it is killed.
_STOP_GRACE_S = 20.0
#: Timeout for a guest to power off, before it is killed.
_POWEROFF_TIMEOUT_S = 15.0
#: Timeout for a guest to power off after Ctrl-C or SIGTERM, before it is killed.
_HASTY_POWEROFF_S = 5.0
#: Maximum time without a heartbeat. It is longer than the kernel's watchdog timeout (30 s of the
#: guest).
_MAX_SILENCE_S = 300.0
#: Timeout for the start of a job's process, and for the transfer of a job's output.
_START_TIMEOUT_S = 60.0

#: Matches the level of a kernel message; see syslog(2).
_LEVEL = re.compile("^<[0-9]+>", re.MULTILINE)

Command = str | Sequence[str]


class CommandError(Exception):
    """A command in the guest failed unexpectedly; the text is one line for the user."""


@dataclass(frozen=True)
class Result:
    """The result of a command. The status is as in a shell: 128 + N for death by signal N."""

    command: str
    status: int
    stdout_raw: bytes = b""
    stderr_raw: bytes = b""
    #: Whether the command exceeded its timeout, and was sent a signal for that reason.
    timed_out: bool = False

    @property
    def stdout(self) -> str:
        """Standard output as text; undecodable bytes become U+FFFD."""
        return self.stdout_raw.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text; undecodable bytes become U+FFFD."""
        return self.stderr_raw.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether the command exited with status 0 before its timeout."""
        return self.status == 0 and not self.timed_out

    def check(self) -> Result:
        """This result. Raises CommandError unless it is `ok`."""
        if self.ok:
            return self
        outcome = "took too long" if self.timed_out else f"ended with status {self.status}"
        raise CommandError(f"'{self.command}' {outcome}: {self.stderr.strip() or '(no message)'}")


class Process:
    """A background command in a guest, created by Guest.spawn."""

    def __init__(self, guest: Guest, link: Link, name: str) -> None:
        self.name = name
        #: Process id in the guest.
        self.pid = link.started[name]
        self._guest = guest
        self._link = link

    def signal(self, number: int) -> None:
        """Send a signal to the process, unless the process has ended. Raises GuestError."""
        if self.running():
            self._link.send(protocol.signal(self.pid, number))

    def running(self) -> bool:
        """Whether the process has not ended yet. Raises GuestError."""
        self._link.poll()
        return self.name not in self._link.ended

    def wait(self, timeout_s: float) -> int:
        """Wait for the exit status. Raises GuestError, and TimeoutError if the process still runs
        after `timeout_s`."""
        if not self._link.wait_until(lambda: self.name in self._link.ended, timeout_s):
            raise TimeoutError(f"'{self.name}' still runs after {timeout_s:g} s")
        return self._link.ended[self.name].status

    def stdout(self) -> str:
        """What the process has written to its standard output so far. Raises GuestError."""
        return self._output("stdout")

    def stderr(self) -> str:
        """What the process has written to its standard error so far. Raises GuestError."""
        return self._output("stderr")

    def _output(self, stream: str) -> str:
        return self._guest.read(f"/run/spawn/{self.name}/{stream}").check().stdout


class Guest:
    """A guest with a given kernel. It is booted on entry to its context.

    `programs` are executables of the host that are added to the guest's PATH with their libraries.
    `files` are further files, by their path in the guest. A guest older than `lifetime_s`, or
    without a heartbeat for `max_silence_s`, is killed during the next wait. The console log is
    written to `console_log`, or to a temporary file that is removed after a clean power-off.
    `with_terminal` makes `shell` possible.

    With `icount`, if there is no hardware virtualisation and QEMU is recent enough, the guest's
    time is the number of instructions that its CPUs have executed, so no runnable task waits
    because the host is slow. While all CPUs are idle, time passes as on the host.
    """

    def __init__(
        self,
        kernel: Kernel,
        topology: Topology = TOPOLOGIES[DEFAULT],
        *,
        programs: Sequence[Path] = (),
        files: Mapping[str, initramfs.File] | None = None,
        kernel_args: Sequence[str] = (),
        boot_timeout_s: float = 180.0,
        lifetime_s: float = 5400.0,
        max_silence_s: float = _MAX_SILENCE_S,
        console_log: Path | None = None,
        with_terminal: bool = False,
        icount: bool = False,
    ) -> None:
        self.kernel = kernel
        self.topology = topology
        self._programs = tuple(programs)
        self._files = dict(files or {})
        # Read the files of the host now, so that missing files are reported before anything is
        # started.
        self._parcel = _parcel(self._programs, tuple(self._files.items()))
        self._kernel_args = tuple(kernel_args)
        self._boot_timeout_s = boot_timeout_s
        self._lifetime_s = lifetime_s
        self._max_silence_s = max_silence_s
        self._log_is_temporary = console_log is None
        self._with_terminal = with_terminal
        self._icount = icount
        self._job_numbers = itertools.count(1)
        self._running: Link | None = None
        #: The console log: the given file, or a temporary file from the boot to a clean power-off.
        #: None while there is no log.
        self.console_log = console_log

    def __enter__(self) -> Guest:
        self.boot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(_poweroff_timeout_s(error))

    def boot(self) -> None:
        """Boot, or resume from a saved guest of this kind, and wait for the agent.

        Raises GuestError, QemuError, InitramfsError, DebsError.
        """
        accel, program = self._accelerator()
        if self.console_log is None:
            self.console_log = temporary_log()
        resumes = self._can_resume(accel)
        # QEMU reads the image before the guest runs, so the image can be removed after the boot.
        with tempfile.TemporaryDirectory(prefix="scx-vm-") as scratch:
            image = Path(scratch) / "initramfs.cpio"
            image.write_bytes(self._image(resumes))
            machine = qemu.Machine(
                self.kernel,
                image,
                self.topology,
                accel,
                self.console_log,
                terminal=self._with_terminal,
                kernel_args=self._kernel_args,
                has_inbox=resumes,
                emulator=program,
            )
            verb = "resuming" if resumes else "booting"
            try:
                with step(f"{verb} Linux {self.kernel.release} ({self.topology.name}, {accel})"):
                    self._connect(machine)
            except BaseException as error:
                self.close(_poweroff_timeout_s(error))
                raise

    def _accelerator(self) -> tuple[str, qemu.Emulator]:
        """How to run the guest, and with which QEMU."""
        accel = accelerator.choose(self.kernel)
        if accel == "tcg" and self._icount:
            try:
                return "icount", emulator.find()
            except (qemu.QemuError, DebsError) as error:
                warn(f"the guest has the host's time: {error}")
        return accel, qemu.Emulator()

    def _can_resume(self, accel: str) -> bool:
        """Whether to resume a saved guest. With hardware virtualisation, this would save little
        time. A guest with additional kernel parameters always boots, as does every guest if
        scx_resume is not built."""
        return accel != "kvm" and not self._kernel_args and is_built(RESUME)

    def _image(self, resumes: bool) -> bytes:
        if resumes:
            return initramfs.build([built(RESUME), agent()])
        return initramfs.build([agent(), *self._programs], files=self._files)

    def _connect(self, machine: qemu.Machine) -> None:
        if machine.has_inbox:
            launched = saved.resume(machine, self._parcel, SystemRandom().getrandbits(64))
        else:
            launched = qemu.launch(machine)
        link = Link(launched, machine.console_log, self._lifetime_s, self._max_silence_s)
        self._running = link
        if not link.wait_until(lambda: link.ready, self._boot_timeout_s):
            raise link.lost(f"the guest did not boot within {self._boot_timeout_s:g} s")

    def close(self, timeout_s: float = _POWEROFF_TIMEOUT_S) -> None:
        """Power the guest off, or kill it after `timeout_s`.

        The console log is removed, unless it was requested, or the guest was lost or killed.
        """
        link, self._running = self._running, None
        if link is not None and not self._power_off(link, timeout_s):
            return
        if self._log_is_temporary and self.console_log is not None:
            self.console_log.unlink(missing_ok=True)
            self.console_log = None

    def _power_off(self, link: Link, timeout_s: float) -> bool:
        """Power the guest off. Returns whether it has powered off. If it has not, and was not lost
        before, prints a warning with the path of the console log."""
        well, was_lost = False, link.is_lost
        with contextlib.suppress(GuestError):
            link.send(protocol.poweroff())
        try:
            well = link.close(timeout_s) and not link.is_lost
        finally:
            # If the guest was lost, an error with the path of the log has been raised already.
            if not well and not was_lost:
                warn(f"the guest did not power off; console log: {self.console_log}")
        return well

    def run(
        self,
        command: Command,
        timeout_s: float = 120.0,
        *,
        user: str = "root",
        is_urgent: bool = False,
    ) -> Result:
        """Run a command to completion, or kill it with its children after `timeout_s`.

        If `is_urgent`, the command is a real-time task, which the scheduler under test does not
        delay. Use this for commands that read the state of the guest. Raises GuestError when the
        guest is lost, or the command cannot be killed.
        """
        link = self._link
        name = self._new_name()
        self._start(name, command, output="urgent" if is_urgent else "files", user=user)
        in_time = link.wait_until(lambda: name in link.ended, timeout_s)
        if not in_time:
            self._kill(name)
        ended = link.ended[name]
        stdout, stderr = self._collect(ended)
        return Result(_text(command), ended.status, stdout, stderr, timed_out=not in_time)

    def read(self, pattern: str) -> Result:
        """The contents of the files that match a pattern of glob(7), as standard output. The status
        is 1 if no file matches. This starts no process in the guest. Raises GuestError, and
        ValueError if the pattern is more than one line."""
        name = self._new_name()
        return self._answer(f"read {pattern}", name, protocol.read(name, pattern))

    def spawn(self, name: str, command: Command, *, user: str = "root") -> Process:
        """Start a command in the background, with a name that is unique among running commands.

        Raises ValueError for a name that is invalid or in use, CommandError when the command cannot
        be started, GuestError.
        """
        link = self._link
        if name in link.started and name not in link.ended:
            raise ValueError(f"'{name}' already runs in the guest")
        link.started.pop(name, None)
        link.ended.pop(name, None)
        self._start(name, command, user=user)
        self._await_pid(name)
        return Process(self, link, name)

    def stream(
        self,
        command: Command,
        *,
        user: str = "root",
        timeout_s: float | None = None,
        timeout_signal: int = signal.SIGINT,
        sink: Callable[[bytes], object] | None = None,
    ) -> Result:
        """Run a command and copy both output streams to `sink` as they arrive.

        The default sink is the host's standard output. The result contains no output. SIGINT or
        SIGTERM to this process is forwarded to the command and its children, but a second signal
        acts on this process. After `timeout_s` the command and its children get `timeout_signal`,
        and the result is marked as timed out. A command that ignores the signal is killed after
        _STOP_GRACE_S. Raises GuestError, CommandError. For the main thread only.
        """
        link = self._link
        link.stream_sink = sink or to_stdout
        name = self._new_name()
        early: list[int] = []
        sent: list[int] = []

        def forward(number: int) -> None:
            if name in link.started:
                link.send(protocol.signal(-link.started[name], number))
                sent.append(number)
            else:
                early.append(number)

        with _forwarded_signals(forward):
            self._start(name, command, output="stream", user=user)
            self._await_pid(name)
            for number in early:
                forward(number)
            in_time = link.wait_until(lambda: name in link.ended or bool(sent), timeout_s)
            if not in_time:
                forward(timeout_signal)
            if not link.wait_until(lambda: name in link.ended, _STOP_GRACE_S):
                self._kill(name)
        link.drain_stream()
        ended = link.ended[name]
        self._collect(ended)
        return Result(_text(command), ended.status, timed_out=not in_time)

    def shell(self) -> int:
        """Run an interactive shell on the user's terminal, in a guest with a terminal.

        Returns the status of the shell, or 0 if the user left the shell running. Raises GuestError.
        """
        link = self._link
        if link.terminal is None:
            raise GuestError("the guest has no terminal")
        name = self._new_name()
        self._start(name, terminal.shell_script())
        terminal.interact(link, link.terminal, lambda: name in link.ended)
        return link.ended[name].status if name in link.ended else 0

    @property
    def console(self) -> str:
        """The console log so far; "" if there is none."""
        return self.console_log.read_text(errors="replace") if self.console_log else ""

    def kernel_log(self) -> str:
        """The kernel's log buffer, including messages that the console omits. Raises GuestError."""
        name = self._new_name()
        log = self._answer("kernel log", name, protocol.log(name)).check().stdout
        return _LEVEL.sub("", log)

    @property
    def _link(self) -> Link:
        if self._running is None:
            raise GuestError("the guest is not running")
        return self._running

    def _new_name(self) -> str:
        """A generated name for a job."""
        return f"_{next(self._job_numbers)}"

    def _start(
        self, name: str, command: Command, *, output: str = "files", user: str = "root"
    ) -> None:
        script = command if isinstance(command, str) else f"exec {shlex.join(command)}"
        self._link.send(protocol.start(name, script, output=output, user=user))

    def _answer(self, what: str, name: str, request: bytes) -> Result:
        """The result of a request that the agent serves itself, without a process."""
        link = self._link
        link.send(request)
        if not link.wait_until(lambda: name in link.ended, _KILL_GRACE_S):
            raise link.hangs(f"no answer to '{what}' within {_KILL_GRACE_S:g} s")
        ended = link.ended.pop(name)
        return Result(what, ended.status, self._take(ended.stdout_bytes))

    def _take(self, size: int) -> bytes:
        """The next `size` bytes of the data port."""
        data = self._link.data
        if not self._link.wait_until(lambda: len(data) >= size, _START_TIMEOUT_S):
            raise self._link.hangs("it does not send a command's output")
        taken = bytes(data[:size])
        del data[:size]
        return taken

    def _await_pid(self, name: str) -> int:
        link = self._link
        if not link.wait_until(
            lambda: name in link.started or name in link.ended, _START_TIMEOUT_S
        ):
            raise link.hangs(f"no process after {_START_TIMEOUT_S:g} s")
        if name not in link.started:
            _, stderr = self._collect(link.ended[name])
            raise CommandError(f"cannot start '{name}': {stderr.decode(errors='replace').strip()}")
        return link.started[name]

    def _kill(self, name: str) -> None:
        link = self._link
        link.send(protocol.signal(-self._await_pid(name), signal.SIGKILL))
        if not link.wait_until(lambda: name in link.ended, _KILL_GRACE_S):
            raise link.hangs(f"a command survives SIGKILL for {_KILL_GRACE_S:g} s")

    def _collect(self, ended: protocol.Ended) -> tuple[bytes, bytes]:
        """Both outputs of a job that has ended. The job is then forgotten."""
        link = self._link
        size = ended.stdout_bytes + ended.stderr_bytes
        link.send(protocol.fetch(ended) if size else protocol.forget(ended.name))
        output = self._take(size)
        del link.ended[ended.name]
        link.started.pop(ended.name, None)
        return output[: ended.stdout_bytes], output[ended.stdout_bytes :]


@functools.lru_cache(maxsize=1)
def _parcel(programs: tuple[Path, ...], files: tuple[tuple[str, initramfs.File], ...]) -> bytes:
    """The archive for a resumed guest. It is cached, because most guests of a test run have the
    same archive, of about 100 MB."""
    return initramfs.parcel(programs, dict(files))


def _text(command: Command) -> str:
    return command if isinstance(command, str) else shlex.join(command)


def _poweroff_timeout_s(error: BaseException | None) -> float:
    """Timeout for power-off after `error`. It is short after Ctrl-C or SIGTERM."""
    in_haste = error is not None and not isinstance(error, Exception)
    return _HASTY_POWEROFF_S if in_haste else _POWEROFF_TIMEOUT_S


def temporary_log() -> Path:
    """A new empty temporary file for a console log."""
    number, path = tempfile.mkstemp(prefix="scx-vm-", suffix=".log")
    os.close(number)
    return Path(path)


def to_stdout(chunk: bytes) -> None:
    """Write to the host's standard output, at once."""
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def _forwarded_signals(forward: Callable[[int], None]) -> Iterator[None]:
    """Pass the first SIGINT or SIGTERM to `forward`. The next signal acts as before the block."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, _: FrameType | None) -> None:
        restore()
        forward(number)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
