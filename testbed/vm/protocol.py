# SPDX-License-Identifier: GPL-2.0-only
"""The messages between the host and the agent in the guest (guest/scx_agent.c), without any I/O.

Both directions use one line per message on the control port:

    host → guest                               guest → host
    start NAME OUTPUT USER SCRIPT              ready
    signal PID SIGNAL                          started NAME PID
    fetch NAME STDOUT_BYTES STDERR_BYTES       ended NAME STATUS STDOUT_BYTES STDERR_BYTES
    forget NAME                                pong
    read NAME PATTERN
    log NAME
    ping
    poweroff

A job is a shell script with a name. OUTPUT is where the job's two output streams go: `files` keeps
them in the guest until `fetch` sends them, raw, over the data port; `stream` sends both over the
stream port as they arrive. `urgent` is like `files`, and makes the job a real-time task. Other jobs
are ordinary tasks. A negative PID means the job's process group. Requests are served in order; jobs
run in parallel.

`read` and `log` start no process: the agent writes the contents of all files that match the
pattern, or the kernel's log, to the data port, and then reports the end of NAME, with status 1 if
no file matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Names of the virtio-serial ports, as in guest/scx_agent.c.
CONTROL_PORT = "scx.control"
DATA_PORT = "scx.data"
STREAM_PORT = "scx.stream"
TERMINAL_PORT = "scx.terminal"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_ESCAPED = re.compile(rb"[^\x20-\x7e]|\\")


class ProtocolError(Exception):
    """The guest sent an invalid message."""


@dataclass(frozen=True)
class Ready:
    """The guest has booted or was resumed, and its agent is ready."""


@dataclass(frozen=True)
class Started:
    """A job's process exists."""

    name: str
    pid: int


@dataclass(frozen=True)
class Ended:
    """A job has ended. The status is as in a shell: 128 + N for death by signal N."""

    name: str
    status: int
    stdout_bytes: int
    stderr_bytes: int


@dataclass(frozen=True)
class Pong:
    """The agent is alive; the answer to a ping."""


Event = Ready | Started | Ended | Pong


def start(name: str, script: str, *, output: str = "files", user: str = "root") -> bytes:
    """Request to start the job `name`. Raises ValueError for an invalid name, user or script."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"job name '{name}': use letters, digits, '.', '_' and '-'")
    if not _NAME.fullmatch(user):
        raise ValueError(f"no user '{user}' in the guest")
    if "\0" in script:
        raise ValueError(f"job {name}: a script cannot hold a NUL character")
    return f"start {name} {output} {user} {escape(script)}\n".encode()


def signal(pid: int, number: int) -> bytes:
    """Request to send a signal to the process `pid`, or to a process group if `pid` is negative."""
    return f"signal {pid} {number}\n".encode()


def fetch(ended: Ended) -> bytes:
    """Request for the output of a job that has ended. The guest then forgets the job."""
    return f"fetch {ended.name} {ended.stdout_bytes} {ended.stderr_bytes}\n".encode()


def forget(name: str) -> bytes:
    """Request to drop the output of a job that has ended."""
    return f"forget {name}\n".encode()


def read(name: str, pattern: str) -> bytes:
    """Request for the contents of all files that match a pattern of glob(7). Raises ValueError if
    the pattern is more than one line."""
    if "\n" in pattern:
        raise ValueError(f"pattern {pattern!r}: give one line")
    return f"read {name} {pattern}\n".encode()


def log(name: str) -> bytes:
    """Request for the kernel's log."""
    return f"log {name}\n".encode()


def ping() -> bytes:
    """Request for a pong, as a heartbeat."""
    return b"ping\n"


def poweroff() -> bytes:
    """Request to power the guest off."""
    return b"poweroff\n"


def escape(script: str) -> str:
    r"""Encodes a script as one line of printable ASCII: the agent decodes `\0` and three octal
    digits to a byte. The script gets a final newline.
    """
    raw = script.encode("utf-8", "surrogateescape") + b"\n"
    return _ESCAPED.sub(lambda match: b"\\0%03o" % match[0][0], raw).decode("ascii")


class Decoder:
    """Decodes the byte stream of the control port into events."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> list[Event]:
        """The events completed by `data`. Raises ProtocolError."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        return [_event(line.decode("ascii", "replace")) for line in lines]


def _event(line: str) -> Event:
    match line.split():
        case ["ready"]:
            return Ready()
        case ["pong"]:
            return Pong()
        case ["started", name, pid] if pid.isdecimal():
            return Started(name, int(pid))
        case ["ended", name, *numbers] if len(numbers) == 3 and all(map(str.isdecimal, numbers)):
            return Ended(name, *(int(number) for number in numbers))
    raise ProtocolError(f"the guest's agent sent '{line}'")
