# SPDX-License-Identifier: GPL-2.0-only
"""Which source files each program of a build depends on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path


def programs(build: Path) -> dict[str, set[Path]]:
    """Program → its source files: from cargo's dependency files, and from ninja's graph and deps
    log. Raises CalledProcessError if ninja fails."""
    found = {path.stem: _of_cargo(path) for path in build.glob("cargo/release/scx*.d")}
    found |= {path.stem: _of_cargo(path) for path in build.glob("cargo/debug/scx*.d")}
    deps = _recorded(_ninja(build, "deps"), build)
    for folder in ("scheds/c", "tests/clients"):
        for path in (build / folder).glob("scx*"):
            if path.is_file() and not path.suffix:
                inputs = _ninja(build, "inputs", str(path.relative_to(build))).split("\n")
                found[path.name] = _with_recorded((build / i.strip("'") for i in inputs), deps)
    return found


def _of_cargo(path: Path) -> set[Path]:
    """The files in a dependency file of cargo: `NAME: FILE…`, with escaped spaces."""
    listed = path.read_text().partition(": ")[2].partition("\n")[0].replace("\\ ", "\0")
    return {Path(name.replace("\0", " ")).resolve() for name in listed.split(" ") if name}


def _ninja(build: Path, *query: str) -> str:
    command = ["ninja", "-C", str(build), "-t", *query]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _recorded(text: str, build: Path) -> dict[Path, set[Path]]:
    """Output file → the headers that it depends on, from the output of `ninja -t deps`."""
    found: dict[Path, set[Path]] = {}
    headers: set[Path] = set()
    for line in text.splitlines():
        if line.startswith(" "):
            headers.add((build / line.strip()).resolve())
        elif ": #deps" in line:
            headers = found.setdefault(build / line.partition(": #deps")[0], set())
    return found


def _with_recorded(inputs: Iterable[Path], deps: dict[Path, set[Path]]) -> set[Path]:
    found: set[Path] = set()
    for path in inputs:
        found |= {path.resolve()} | deps.get(path, set())
    return found
