# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's monitor: commands and events as lines of JSON (QMP, docs/interop/qmp-spec.rst)."""

from __future__ import annotations

import json
import socket
import time
from typing import Any


class MonitorError(Exception):
    """QEMU rejects a command, does not answer, or has exited; the text is one line for the user."""


class Monitor:
    """A connection to the monitor. Every wait has a timeout."""

    def __init__(self, port: socket.socket) -> None:
        self._port = port
        self._received = b""
        self._events: list[str] = []
        self._is_greeted = False

    def execute(self, command: str, timeout_s: float = 60.0, **arguments: Any) -> Any:
        """The result of a command; `_` in argument names stands for `-`. Raises MonitorError."""
        deadline_s = time.monotonic() + timeout_s
        if not self._is_greeted:
            self._is_greeted = True
            self._await_reply(deadline_s, "QMP")
            self.execute("qmp_capabilities")
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        request = {"execute": command, "arguments": named}
        try:
            self._port.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise MonitorError(f"QEMU has exited: {error.strerror}") from error
        return self._await_reply(deadline_s, "return")

    def close(self) -> None:
        """Close the connection; QEMU keeps running."""
        self._port.close()

    def await_event(self, name: str, timeout_s: float) -> bool:
        """Wait for an event, and remove one report of it. Returns True at once if QEMU has already
        reported the event, and False if QEMU does not report it within the timeout. Raises
        MonitorError."""
        deadline_s = time.monotonic() + timeout_s
        if not self._is_greeted:
            self.execute("query-status", timeout_s)
        while name not in self._events:
            try:
                self._take(self._message(deadline_s))
            except TimeoutError:
                return False
        self._events.remove(name)
        return True

    def _await_reply(self, deadline_s: float, key: str) -> Any:
        while True:
            try:
                message = self._message(deadline_s)
            except TimeoutError as error:
                raise MonitorError("QEMU does not answer") from error
            if key in message:
                return message[key]
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        if "error" in message:
            raise MonitorError(f"QEMU: {message['error']['desc']}")
        if "event" in message:
            self._events.append(message["event"])

    def _message(self, deadline_s: float) -> dict[str, Any]:
        while b"\n" not in self._received:
            self._port.settimeout(max(deadline_s - time.monotonic(), 0.001))
            try:
                chunk = self._port.recv(65536)
            except TimeoutError:
                raise
            except OSError as error:
                raise MonitorError(f"QEMU has exited: {error.strerror}") from error
            if not chunk:
                raise MonitorError("QEMU has exited")
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)
