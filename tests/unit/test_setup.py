# SPDX-License-Identifier: GPL-2.0-only
"""build-aux/setup.sh names a package for each program that CI runs.

programs.txt lists all programs executed by `./dev run` and `./dev test` in a fresh Debian 12, as
traced by sched_process_exec, except during the installation of packages.
"""

from __future__ import annotations

import re
from pathlib import Path

from schedulers import ROOT

#: Stands for a package in programs.txt if a minimal root has the program. This root is mmdebstrap's
#: variant minbase with git and ca-certificates.
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
    # An earlier dependency of the loader's unit.
    assert "procps" not in named()
