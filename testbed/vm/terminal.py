# SPDX-License-Identifier: GPL-2.0-only
"""The user's terminal, joined to a guest's."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from .link import Link

#: Ctrl-A, then x, leaves; Ctrl-A twice sends one.
ESCAPE = b"\x01"
LEAVE = b"x"
_CHUNK_BYTES = 65536

#: Run by a session leader: opening the device makes it the session's controlling terminal. Once
#: nobody has it open it forgets its size.
_SHELL = "cd; exec <>/dev/hvc0 >&0 2>&1; stty rows {rows} cols {columns}; exec sh -l"


def shell_script() -> str:
    """What the guest runs for an interactive shell of the size of the user's terminal."""
    size = shutil.get_terminal_size()
    return _SHELL.format(rows=size.lines, columns=size.columns)


class Keyboard:
    """Splits what the user types into bytes for the guest and the wish to leave."""

    def __init__(self) -> None:
        self.leaving = False
        self._escaped = False

    def typed(self, keys: bytes) -> bytes:
        """The bytes of `keys` that are for the guest."""
        passed = b""
        for key in (keys[i : i + 1] for i in range(len(keys))):
            if self._escaped:
                self._escaped = False
                self.leaving = self.leaving or key == LEAVE
                passed += key if key == ESCAPE else b""
            elif key == ESCAPE:
                self._escaped = True
            else:
                passed += key
        return passed


def interact(link: Link, port: socket.socket, ended: Callable[[], bool]) -> None:
    """Join stdin and stdout to the guest's terminal until `ended`, or the user leaves.

    Stdin must be a terminal. Raises GuestError when the guest is lost.
    """
    keyboard = Keyboard()
    stdin = sys.stdin.fileno()

    def on_key() -> None:
        keys = os.read(stdin, _CHUNK_BYTES)
        keyboard.leaving = keyboard.leaving or not keys
        # What a guest that hangs does not take is lost, as on any terminal; leaving must work.
        with suppress(OSError):
            port.send(keyboard.typed(keys), socket.MSG_DONTWAIT)

    def on_output() -> None:
        sys.stdout.buffer.write(port.recv(_CHUNK_BYTES))
        sys.stdout.buffer.flush()

    with _raw(stdin):
        link.watch(stdin, on_key)
        link.watch(port, on_output)
        try:
            link.wait_until(lambda: keyboard.leaving or ended())
        finally:
            link.unwatch(stdin)
            link.unwatch(port)


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Every key goes to the guest, Ctrl-C too; as before after the block."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
