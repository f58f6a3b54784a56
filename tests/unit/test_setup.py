# SPDX-License-Identifier: GPL-2.0-only
"""build-aux/setup.sh names a package for each program in programs.txt, and asks before it acts.

programs.txt lists the programs that `./dev run` and `./dev test` executed in a fresh Debian 12,
except while packages were installed. The list was recorded with the tracepoint sched_process_exec.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from schedulers import ROOT

#: The name in programs.txt, in place of a package, for programs that a minimal root has. The
#: minimal root is mmdebstrap's variant minbase with git and ca-certificates.
MINBASE = "minbase"


def named() -> set[str]:
    """The packages that build-aux/setup.sh installs if missing."""
    text = (ROOT / "build-aux/setup.sh").read_text()
    found = set(re.findall(r"\bneed(?:_file|_if_available)? \S+ ([\w.+-]+)", text))
    for words in re.findall(r"MISSING\+=\(([^)]*)\)", text):
        found |= set(words.replace('"', "").split())
    for array, name in (("CLANG_VERSIONS", "clang"), ("CLANG_FORMAT_VERSIONS", "clang-format")):
        versions = re.search(rf"^{array}=\((.*)\)", text, re.MULTILINE)
        assert versions
        found |= {f"{name}-{version}" for version in versions[1].split()}
    return found


def listed() -> list[list[str]]:
    lines = Path(__file__).with_name("programs.txt").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_setup_names_a_package_for_each_program() -> None:
    programs = listed()
    assert len(programs) > 50
    unnamed = [line for line in programs if line[2] not in {MINBASE, *named()}]
    assert not unnamed, "build-aux/setup.sh names no package with these programs"


def test_missing_package_is_detected() -> None:
    assert {"zstd", "clang-19", "clang-format-19", "gcc", "libelf-dev", "rustfmt-web"} <= named()
    # setup.sh does not name procps, so the test above would fail if programs.txt listed a program
    # of procps.
    assert "procps" not in named()


#: A replacement for apt-get that logs its arguments, and notes that the lists were updated. From
#: then on, SCRIPT needs the package $UPDATED instead of the package `one`.
APT_GET = """\
#!/bin/sh
echo "$@" >>"$LOG"
[ "$1" != update ] || touch "$LOG.updated"
"""
SCRIPT = f"""\
set -euo pipefail
SCX_OFFLINE=0
die() {{ echo "dev: $*" >&2; exit 1; }}
source {ROOT}/build-aux/setup.sh
as_root() {{ "$@"; }}
needs_of_fake() {{ MISSING+=(one); [[ ! -e $LOG.updated ]] || MISSING[0]=$UPDATED; }}
setup_for fake
"""


def asked(folder: Path, answers: str, updated: str) -> tuple[int, list[str]]:
    """The exit status of the setup, and the verb and the last argument of each call of apt-get."""
    apt_get, log = folder / "apt-get", folder / "log"
    apt_get.write_text(APT_GET)
    apt_get.chmod(0o755)
    log.touch()
    user, terminal = pty.openpty()
    os.write(user, answers.encode())
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "CI": "false"}
    env |= {"LOG": str(log), "UPDATED": updated}
    done = subprocess.run(["bash", "-c", SCRIPT], stdin=terminal, env=env, timeout=60)
    os.close(user)
    os.close(terminal)
    lines = [line.split() for line in log.read_text().splitlines()]
    return done.returncode, [f"{words[0]} {words[-1]}" for words in lines]


@pytest.mark.parametrize(
    ("answers", "updated", "status", "done"),
    [
        ("n\n", "one", 1, []),
        ("y\n", "one", 0, ["update --quiet=2", "install one"]),
        ("y\nn\n", "other", 1, ["update --quiet=2"]),
        ("y\ny\n", "other", 0, ["update --quiet=2", "install other"]),
    ],
)
def test_setup_asks_before_anything_is_done(
    tmp_path: Path, answers: str, updated: str, status: int, done: list[str]
) -> None:
    assert asked(tmp_path, answers, updated) == (status, done)
