# SPDX-License-Identifier: GPL-2.0-only
"""Connects the user's terminal to the terminal of a guest."""

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

#: Ctrl-A, then x, exits. Ctrl-A twice sends one Ctrl-A to the guest. Another key after Ctrl-A is
#: dropped.
ESCAPE = b"\x01"
LEAVE = b"x"
_CHUNK_BYTES = 65536

#: A session leader runs this script, so opening the device makes it the session's controlling
#: terminal. The device loses its window size when all processes have closed it, so the size is set
#: while the script has it open.
_SHELL = "cd; exec <>/dev/hvc0 >&0 2>&1; stty rows {rows} cols {columns}; exec sh -l"


def shell_script() -> str:
    """The guest's command for an interactive shell, with the size of the user's terminal."""
    size = shutil.get_terminal_size()
    return _SHELL.format(rows=size.lines, columns=size.columns)


class Keyboard:
    """Separates the user's input for the guest from the escape sequence."""

    def __init__(self) -> None:
        self.leaving = False
        self._escaped = False

    def typed(self, keys: bytes) -> bytes:
        """The bytes of `keys` for the guest."""
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
    """Connect stdin and stdout to the guest's terminal until `ended()` is true or the user exits.

    Stdin must be a terminal. Raises GuestError when the guest is lost.
    """
    keyboard = Keyboard()
    stdin = sys.stdin.fileno()

    def on_key() -> None:
        keys = os.read(stdin, _CHUNK_BYTES)
        keyboard.leaving = keyboard.leaving or not keys
        # Do not block if a hung guest does not read its input, because the escape sequence must
        # work. The input is then lost.
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
    """Raw mode: every key goes to the guest, including Ctrl-C. Restored after the block."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
