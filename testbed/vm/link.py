# SPDX-License-Identifier: GPL-2.0-only
"""The line between the host and a guest's agent: one loop over the guest's ports, with deadlines.

Whoever waits for something calls `wait_until`, which keeps every port flowing meanwhile: a guest
that writes to a port nobody reads from would spin. There are no threads.
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

#: QEMU's process and the guest's life time are looked at least this often.
_POLL_S = 0.5
#: A guest that has said nothing for this long is asked for a sign of life.
_PING_AFTER_S = 10.0
_CHUNK_BYTES = 65536
#: How long QEMU may take to be gone once it has closed its ports.
_EXIT_TIMEOUT_S = 5.0
#: What a line of the console log holds that tells why a guest died, most telling first.
_FATAL = ("BUG: ", "Oops: ", "Kernel panic")
#: And one that tells why a guest may hang: of the kernel's watchdogs.
_STUCK = ("watchdog: BUG: ", "rcu: INFO: ", "INFO: task ")


class GuestError(Exception):
    """The guest is lost: it did not boot, died, panicked, hung, or outlived its life time.

    The text is one line that ends with the path of the console log, which is kept.
    """


class Link:
    """A running QEMU with its ports, and what the agent has told so far."""

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
        #: Bytes of the data port that nobody has taken yet.
        self.data = bytearray()
        #: Gets the bytes of the stream port as they come.
        self.stream_sink: Callable[[bytes], Any] = _discard
        #: The host's end of the guest's terminal, where it has one.
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
        #: For how long the guest was waited for since its last byte.
        self._silent_s = 0.0
        self._pinged = False
        self._decoder = protocol.Decoder()
        self._outgoing = bytearray()
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
        """Queue a request for the agent; safe in a signal handler, never waits."""
        self._outgoing += request
        self._flush()

    def wait_until(self, condition: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Keep the ports flowing until `condition` holds; whether it does within `timeout_s`.

        Without `timeout_s` only the guest's life time is a limit. Raises GuestError when the guest
        is lost meanwhile, also by giving no sign of life.
        """
        deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not condition():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            self._turn(min(left_s, _POLL_S))
        return True

    def poll(self) -> None:
        """Take in what has arrived, without waiting. Raises GuestError when the guest is lost."""
        self._turn(0)

    def drain_stream(self) -> None:
        """Pass on every byte that the guest has written to the stream port."""
        while chunk := _receive(self._ports.stream):
            self.stream_sink(chunk)

    def lost(self, reason: str) -> GuestError:
        """Give the guest up: kill it. The error that says why, the same one from now on."""
        self._process.kill()
        if self._loss is None:
            self._loss = GuestError(f"{reason}; console log: {self._console_log}")
        return self._loss

    def hangs(self, how: str) -> GuestError:
        """Give the guest up because of this. The error, with what its kernel says of it."""
        seen = _line_with(_STUCK, self._console_log)
        return self.lost(f"the guest hangs: {how}" + (f" ({seen})" if seen else ""))

    @property
    def is_lost(self) -> bool:
        """Whether the guest was given up."""
        return self._loss is not None

    def close(self, timeout_s: float) -> bool:
        """Wait for QEMU to end, then kill it, and let go of the ports; whether it ended well."""
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
        """One turn of the loop, at most `timeout_s` long."""
        if self._loss is not None:
            raise self._loss
        self._flush()
        before_s = time.monotonic()
        readable = self._selector.select(timeout_s)
        # No more than what was to be waited: a host that was suspended says nothing of the guest.
        self._silent_s += min(time.monotonic() - before_s, timeout_s)
        for key, _ in readable:
            key.data()
        if self._process.poll() is not None:
            raise self._died()
        if time.monotonic() > self._dies_at_s:
            raise self.lost(f"the guest outlived its {self._lifetime_s:g} s")
        if self.ready:
            self._heed_silence()

    def _heed_silence(self) -> None:
        """Ask a guest that says nothing for a sign of life; give it up when there is none."""
        if not self._pinged:
            if self._silent_s >= self._ping_after_s:
                self._pinged = True
                self.send(protocol.ping())
        elif self._silent_s > self._max_silence_s:
            silence = f"no sign of life for {self._max_silence_s:g} s"
            raise self.hangs(silence)

    def _flush(self) -> None:
        try:
            while self._outgoing:
                sent = self._ports.control.send(self._outgoing)
                del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            raise self._died() from None

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
                pass  # That a byte came is the sign of life.

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
        """The last line of what QEMU, which has ended, wrote to its standard error."""
        stderr = self._process.stderr
        lines = stderr.read().decode(errors="replace").splitlines() if stderr else []
        return f": {lines[-1]}" if lines else ""


def cause_of_death(console_log: Path) -> str | None:
    """What a console log says about why the guest died, as one line."""
    line = _line_with(_FATAL, console_log)
    return f"the guest died: {line}" if line else None


def _line_with(marks: Sequence[str], console_log: Path) -> str | None:
    """The first line with the first of the marks that there is, from there on."""
    try:
        lines = console_log.read_text(errors="replace").splitlines()
    except OSError:
        return None
    found = (line[line.index(mark) :].strip() for mark in marks for line in lines if mark in line)
    return next(found, None)


def _receive(port: socket.socket) -> bytes | None:
    """What `port` has, b"" at its end, None when there is nothing now."""
    try:
        return port.recv(_CHUNK_BYTES)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""


def _discard(_: bytes) -> None:
    pass
