# SPDX-License-Identifier: GPL-2.0-only
"""The connection between the host and a guest's agent: an event loop over the guest's ports.

Every wait for the guest, except for its power-off, goes through `wait_until`, which serves all
ports, because a guest that writes to a full port spins until the host reads the port. There are no
threads.
"""

from __future__ import annotations

import math
import selectors
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import protocol
from .protocol import Ended, Pong, Ready, Started
from .qemu import Launched

#: Interval at which QEMU's process and the guest's life time are checked.
_POLL_S = 0.5
#: The agent is sent a ping if the guest was silent for this long, or for half of `max_silence_s`,
#: whichever is shorter.
_PING_AFTER_S = 10.0
_CHUNK_BYTES = 65536
#: Timeout for QEMU to exit after it has closed its ports.
_EXIT_TIMEOUT_S = 5.0
#: Console messages that explain a guest's death, the most significant first.
_FATAL = ("BUG: ", "Oops: ", "Kernel panic")
#: Messages of the kernel's watchdogs, which explain a hang.
_STUCK = ("watchdog: BUG: ", "rcu: INFO: ", "INFO: task ")


class GuestError(Exception):
    """A guest cannot be used: it did not boot, could not be saved or resumed, died, panicked, hung,
    or exceeded its life time.

    The text is one line. If a console log is kept, the text ends with its path.
    """


class Link:
    """A running QEMU with its ports, and the messages of the agent so far."""

    def __init__(
        self,
        launched: Launched,
        console_log: Path,
        lifetime_s: float,
        max_silence_s: float,
    ) -> None:
        process, ports = launched.process, launched.ports
        assert ports
        self.ready = False
        self.started: dict[str, int] = {}
        self.ended: dict[str, Ended] = {}
        #: Unread bytes of the data port.
        self.data = bytearray()
        #: Receives the bytes of the stream port.
        self.stream_sink: Callable[[bytes], Any] = _discard
        #: The host's end of the guest's terminal, if the guest has one.
        self.terminal = ports.terminal
        self._loss: GuestError | None = None
        self._launched = launched
        self._process = process
        self._ports = ports
        self._console_log = console_log
        self._lifetime_s = lifetime_s
        self._dies_at_s = time.monotonic() + lifetime_s
        self._max_silence_s = max_silence_s
        self._ping_after_s = min(_PING_AFTER_S, max_silence_s / 2)
        #: Time spent waiting for the guest since its last byte.
        self._silent_s = 0.0
        self._pinged = False
        self._decoder = protocol.Decoder()
        self._outgoing = bytearray()
        self._is_sending = False
        self._selector = selectors.DefaultSelector()
        self._watch_port(ports.control, self._on_control)
        self._watch_port(ports.data, self.data.extend)
        self._watch_port(ports.stream, self._on_stream)

    def watch(self, source: Any, on_readable: Callable[[], Any]) -> None:
        """Call `on_readable` from the loop whenever `source` (a file or socket) has input."""
        self._selector.register(source, selectors.EVENT_READ, on_readable)

    def unwatch(self, source: Any) -> None:
        """Undo `watch`."""
        self._selector.unregister(source)

    def send(self, request: bytes) -> None:
        """Queue a request for the agent, without waiting for the agent to read it. May be called
        from a signal handler. Raises GuestError if QEMU has closed its ports."""
        self._outgoing += request
        self._flush()

    def wait_until(self, condition: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Serve the ports until `condition` is true. Returns False if `timeout_s` passes before.

        Without `timeout_s`, the wait lasts until `condition` is true or the guest is lost. Raises
        GuestError when the guest is lost: it died, hangs, or exceeded its life time.
        """
        deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not condition():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            self._turn(min(left_s, _POLL_S))
        return True

    def poll(self) -> None:
        """Process pending input, without blocking. Raises GuestError when the guest is lost."""
        self._turn(0)

    def drain_stream(self) -> None:
        """Process all data that the guest has written to the stream port."""
        while chunk := _receive(self._ports.stream):
            self.stream_sink(chunk)

    def lost(self, reason: str) -> GuestError:
        """Kill the guest. Returns the error; if called again, with the first reason."""
        self._process.kill()
        if self._loss is None:
            self._loss = GuestError(f"{reason}; console log: {self._console_log}")
        return self._loss

    def hangs(self, how: str) -> GuestError:
        """Kill a guest that hangs, as `how` describes. Returns the error, with a message of the
        kernel's watchdogs if the console log has one."""
        seen = _line_with(_STUCK, self._console_log)
        return self.lost(f"the guest hangs: {how}" + (f" ({seen})" if seen else ""))

    @property
    def is_lost(self) -> bool:
        """Whether the guest was lost, and therefore killed."""
        return self._loss is not None

    def close(self, timeout_s: float) -> bool:
        """Wait for QEMU to exit, kill it after `timeout_s`, and close the ports. Returns whether
        QEMU exited with status 0."""
        status = None
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._selector.close()
            self._launched.close()
        return status == 0

    def _watch_port(self, port: socket.socket, on_bytes: Callable[[bytes], Any]) -> None:
        port.setblocking(False)

        def on_readable() -> None:
            chunk = _receive(port)
            if chunk:
                self._silent_s, self._pinged = 0.0, False
                on_bytes(chunk)
            elif chunk is not None:
                raise self._died()

        self.watch(port, on_readable)

    def _turn(self, timeout_s: float) -> None:
        """One iteration of the loop, at most `timeout_s` long."""
        if self._loss is not None:
            raise self._loss
        self._flush()
        before_s = time.monotonic()
        readable = self._selector.select(timeout_s)
        # Count at most the intended wait. If the host is a VM that was paused, the host's clock may
        # have advanced, but the guest could not respond.
        self._silent_s += min(time.monotonic() - before_s, timeout_s)
        for key, _ in readable:
            key.data()
        if self._process.poll() is not None:
            raise self._died()
        if time.monotonic() > self._dies_at_s:
            raise self.lost(f"the guest exceeded its life time of {self._lifetime_s:g} s")
        if self.ready:
            self._heed_silence()

    def _heed_silence(self) -> None:
        """Ping a guest that is silent, and kill it if it does not respond."""
        if not self._pinged:
            if self._silent_s >= self._ping_after_s:
                self._pinged = True
                self.send(protocol.ping())
        elif self._silent_s > self._max_silence_s:
            silence = f"no heartbeat for {self._max_silence_s:g} s"
            raise self.hangs(silence)

    def _flush(self) -> None:
        # If this call is in a signal handler that has interrupted another call, the other call
        # sends the queued bytes.
        while self._outgoing and not self._is_sending:
            self._is_sending = True
            try:
                sent = self._ports.control.send(self._outgoing)
                del self._outgoing[:sent]
            except BlockingIOError:
                return
            except OSError:
                raise self._died() from None
            finally:
                self._is_sending = False

    def _on_control(self, chunk: bytes) -> None:
        try:
            for event in self._decoder.feed(chunk):
                self._on_event(event)
        except protocol.ProtocolError as error:
            raise self.lost(str(error)) from error

    def _on_event(self, event: protocol.Event) -> None:
        match event:
            case Ready():
                self.ready = True
            case Started():
                self.started[event.name] = event.pid
            case Ended():
                self.ended[event.name] = event
            case Pong():
                pass  # Any byte counts as a heartbeat.

    def _on_stream(self, chunk: bytes) -> None:
        self.stream_sink(chunk)

    def _died(self) -> GuestError:
        try:
            status = self._process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return self.lost("QEMU closed the guest's ports")
        cause = cause_of_death(self._console_log)
        return self.lost(cause or f"QEMU ended with status {status}{self._stderr_tail()}")

    def _stderr_tail(self) -> str:
        """The last line of QEMU's standard error, after QEMU has exited."""
        stderr = self._process.stderr
        lines = stderr.read().decode(errors="replace").splitlines() if stderr else []
        return f": {lines[-1]}" if lines else ""


def cause_of_death(console_log: Path) -> str | None:
    """The reason for the guest's death, as one line; None if the console log has no reason."""
    line = _line_with(_FATAL, console_log)
    return f"the guest died: {line}" if line else None


def _line_with(marks: Sequence[str], console_log: Path) -> str | None:
    """The first line with the most significant message that occurs, from the message on."""
    try:
        lines = console_log.read_text(errors="replace").splitlines()
    except OSError:
        return None
    found = (line[line.index(mark) :].strip() for mark in marks for line in lines if mark in line)
    return next(found, None)


def _receive(port: socket.socket) -> bytes | None:
    """The data of `port`, b"" at its end, None if there is none at present."""
    try:
        return port.recv(_CHUNK_BYTES)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _discard(_: bytes) -> None:
    pass
