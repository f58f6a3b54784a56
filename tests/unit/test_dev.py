# SPDX-License-Identifier: GPL-2.0-only
"""./dev: help, and messages about wrong usage, printed before anything is installed or built."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEV = Path(__file__).parents[2] / "dev"


def dev(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DEV, *args], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("args", [[], ["help"], ["--help"], ["-h"]])
def test_help_names_every_verb(args: list[str]) -> None:
    done = dev(*args)
    assert done.returncode == 0
    for verb in ("run", "test", "build", "package", "setup", "vm", "fmt", "lint"):
        assert f"\n  {verb} " in done.stdout


@pytest.mark.parametrize("verb", ["run", "test", "build", "setup", "fmt", "lint"])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_of_a_verb(verb: str, option: str) -> None:
    """The help is printed, and the command is not run."""
    done = dev(verb, option)
    assert done.returncode == 0
    assert done.stderr == ""
    verbs = [line.split()[0] for line in done.stdout.splitlines() if line[2] != " "]
    assert verbs == [verb]


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["fly"], "fly"),
        (["run", "scx_nope"], "scx_nope"),
        (["run", "scx_load"], "scx_load"),
        (["run", "--for"], "--for"),
        (["run", "--for", "0"], "'0'"),
        (["run", "--for=-1"], "'-1'"),
        (["run", "--for", "soon"], "'soon'"),
        (["run", "--kernel"], "--kernel"),
        (["run", "--topology="], "--topology"),
        (["run", "--host", "--kernel=7.2"], "--kernel"),
        (["run", "--host", "--topology", "numa"], "--topology"),
        (["run", "--vm", "--load"], "--load"),
        (["package"], "deb"),
        (["package", "rpm"], "deb"),
        (["test", "--kernels"], "--kernels"),
        (["test", "--kernels=6.1"], "'6.1'"),
        (["test", "--suite", "vm", "--kernels", "all,7.2"], "'all'"),
    ],
)
def test_wrong_usage_is_one_line(args: list[str], named: str) -> None:
    done = dev(*args)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("dev: ")
    assert done.stderr.count("\n") == 1
    assert named in done.stderr
