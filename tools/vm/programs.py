# SPDX-License-Identifier: GPL-2.0-only
"""What is put into guests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def scheduler(build: Path, name: str) -> Path | None:
    """One of ours by its name; None if there is none."""
    files = [build / folder / name for folder in ("rust", "scheds/c")]
    # A path is no name, even if it leads to a program.
    return next((file for file in files if file.name == name and is_program(file)), None)


def is_program(file: Path) -> bool:
    """Whether `file` can be run."""
    return file.is_file() and os.access(file, os.X_OK)


def lacking() -> list[Path]:
    """Of the machine's own programs, those that tests need and busybox lacks."""
    return [Path(shutil.which(name) or name) for name in ("chrt", "nice")]
