# SPDX-License-Identifier: GPL-2.0-only
"""Helpers of the suite dist."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from schedulers import ROOT

#: Configuration of cargo for everything that is built here. Nothing is optimized, because the tests
#: run the programs only briefly. zbus is listed because Cargo.toml sets an opt-level for it. cargo
#: uses the same options for build scripts and procedural macros, so a crate that these and a
#: program need is compiled once.
QUICK_BUILD = """\
[profile.release]
opt-level = 0

[profile.release.package.zbus]
opt-level = 0
"""

#: Overrides the flags of build-aux/cargo.py, which name directories. If the flags differed, cargo
#: would compile all crates again.
SAME_FLAGS = {"RUSTFLAGS": ""}


def configure(folder: Path, text: str) -> None:
    """Configures cargo for all packages below the directory."""
    file = folder / ".cargo/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def output(*command: str | Path, timeout: float = 1800, **options) -> str:
    """Output of a command; fails the test with the output if the command fails."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        **options,
    )
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout}", pytrace=False)
    return done.stdout


def need_git() -> None:
    """Skips the test if git or the repository is missing: git lists the files of a commit."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no git: distributions are made from a commit")


def fetch_crates(cargo: str, *options: str) -> None:
    """Fetches the crates of Cargo.lock; without `--target`, for all systems. Skips the test if
    crates are unavailable."""
    if not shutil.which(cargo):
        pytest.skip("needs cargo")
    offline = ["--offline"] if os.environ.get("SCX_OFFLINE") == "1" else []
    command = [cargo, "fetch", "--quiet", "--locked", *offline, *options]
    if subprocess.run(command, cwd=ROOT, timeout=1800).returncode:
        pytest.skip("not all crates of Cargo.lock are available here")
