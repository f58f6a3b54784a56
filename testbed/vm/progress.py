# SPDX-License-Identifier: GPL-2.0-only
"""Progress of long steps on stderr, with a line for each step. In CI, only warnings are printed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_quiet = os.environ.get("CI") == "true"


def silence() -> None:
    """Disable all output except warnings."""
    global _quiet
    _quiet = True


def note(text: str) -> None:
    """Print one line for the user, unless silenced."""
    if not _quiet:
        print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Print one line for the user, even if silenced."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print `text`, and the duration of the block, or that it failed."""
    if _quiet:
        yield
        return
    print(f"{text} … ", end="", file=sys.stderr, flush=True)
    started_s = time.monotonic()
    outcome = "failed"
    try:
        yield
        outcome = f"{time.monotonic() - started_s:.1f} s"
    finally:
        print(outcome, file=sys.stderr, flush=True)
