# SPDX-License-Identifier: GPL-2.0-only
"""Programs for guests, and programs that Meson builds for the harness."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .qemu import QemuError

#: The programs of the harness that run in guests. Meson builds them from guest/*.c. The first saves
#: and resumes a guest, the second runs jobs for the host.
RESUME = "scx_resume"
AGENT = "scx_agent"


def scheduler(build: Path, name: str) -> Path | None:
    """A built program by its name; None if there is none."""
    files = [build / folder / name for folder in ("rust", "scheds/c")]
    # Do not accept a path instead of a name.
    return next((file for file in files if file.name == name and is_program(file)), None)


def is_program(file: Path) -> bool:
    """Whether `file` is executable."""
    return file.is_file() and os.access(file, os.X_OK)


def lacking() -> list[Path]:
    """Programs of this machine that tests need and busybox lacks."""
    return [Path(shutil.which(name) or name) for name in ("chrt", "nice")]


def built(name: str) -> Path:
    """A program or library that Meson builds for the harness. Raises QemuError if it is missing."""
    file = _of_harness(name)
    if not file.is_file():
        raise QemuError(f"{file} is missing: run ./dev build")
    return file


def is_built(name: str) -> bool:
    """Whether Meson has built this program or library."""
    return _of_harness(name).is_file()


def _of_harness(name: str) -> Path:
    return Path(os.environ.get("SCX_BUILD", "build")).absolute() / "testbed/vm" / name
