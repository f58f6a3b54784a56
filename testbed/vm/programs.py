# SPDX-License-Identifier: GPL-2.0-only
"""Programs for guests, and programs that Meson builds for the harness."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import debs

from .qemu import QemuError

#: The program that stops a guest so that the host can save it, and unpacks the inbox of a resumed
#: guest. Meson builds it from guest/scx_resume.c.
RESUME = "scx_resume"
#: The program that prints the emulator's counters. Meson builds it from guest/scx_counters.c.
COUNTERS = "scx_counters"
#: The program that runs jobs for the host: see agent().
AGENT = "scx_agent"
_AGENT_SOURCE = Path(__file__).parent / "guest" / f"{AGENT}.c"


def scheduler(build: Path, name: str) -> Path | None:
    """The built program called `name`; None if there is none."""
    files = [build / folder / name for folder in ("rust", "scheds/c")]
    # Do not accept a path instead of a name.
    return next((file for file in files if file.name == name and is_program(file)), None)


def is_program(file: Path) -> bool:
    """Whether `file` is executable."""
    return file.is_file() and os.access(file, os.X_OK)


def lacking() -> list[Path]:
    """Programs of this machine that tests need and busybox may lack."""
    return [Path(shutil.which(name) or name) for name in ("chrt", "nice")]


def built(name: str) -> Path:
    """A program or library that Meson builds for the harness. Raises QemuError if it is missing."""
    file = _of_harness(name)
    if not file.is_file():
        raise QemuError(f"{file} is missing: run ./dev build")
    return file


def is_built(name: str) -> bool:
    """Whether Meson has built the program or library `name` of the harness."""
    return _of_harness(name).is_file()


def agent() -> Path:
    """The agent. Meson builds it; without a build, it is compiled now, once.

    Raises QemuError, debs.DebsError.
    """
    if is_built(AGENT):
        return _of_harness(AGENT)
    source = hashlib.sha256(_AGENT_SOURCE.read_bytes()).hexdigest()[:16]
    program = debs.cache_dir() / "agent" / source / AGENT
    with debs.locked(program.parent / "lock"):
        if not program.exists():
            _compile(_AGENT_SOURCE, program)
    return program


def _compile(source: Path, program: Path) -> None:
    unfinished = program.with_suffix(".new")
    command = ["cc", "-O2", "-o", unfinished, source]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise QemuError(f"cannot run cc: {error.strerror}: install gcc") from error
    if done.returncode:
        first = next(iter(done.stderr.splitlines()), "(no message)")
        raise QemuError(f"cannot compile {source.name}: {first}: install gcc and libc6-dev")
    unfinished.rename(program)


def _of_harness(name: str) -> Path:
    return Path(os.environ.get("SCX_BUILD", "build")).absolute() / "testbed/vm" / name
