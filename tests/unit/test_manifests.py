# SPDX-License-Identifier: GPL-2.0-only
"""The schedulers' manifests for scx_loader."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS

MODES = {"auto", "gaming", "lowlatency", "powersave", "server"}

#: Options that no manifest lists: they open files or sockets, control the output, or print a text
#: and exit.
NEVER_PASSED = {
    "bpf-token-path",
    "btf-custom-path",
    "exit-dump-len",
    "generate",
    "help",
    "kconfig",
    "manifest",
    "monitor",
    "pin-root-path",
    "stats",
    "stats-group",
    "stats-socket",
    "version",
}


@pytest.fixture(params=C_SCHEDULERS + RUST_SCHEDULERS)
def program(request: pytest.FixtureRequest, build_dir: Path, build_options: dict) -> Path:
    if request.param in C_SCHEDULERS:
        return build_dir / "scheds/c" / request.param
    if not build_options["enable_rust"]:
        pytest.skip("built without the Rust programs")
    return build_dir / "rust" / request.param


@pytest.fixture
def manifest(program: Path) -> dict[str, Any]:
    return json.loads(program.with_suffix(".json").read_text())


def options(program: Path) -> dict[str, tuple[str | None, bool]]:
    """The options in the program's help: name → letter, and whether the option takes a value."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60).stdout
    found = re.findall(r"^ {2,6}(?:-(\w), +)?--([\w-]+)(?:[= \[]+(\S+))?", text, re.MULTILINE)
    return {
        long: (letter or None, bool(re.match(r"<|[A-Z]+\b(?![a-z])", value)))
        for letter, long, value in found
    }


def test_options_match_the_help(program: Path, manifest: dict[str, Any]) -> None:
    known = options(program)
    assert manifest["name"] == program.name
    assert manifest["options"]
    for option in manifest["options"]:
        letter, takes_value = known[option["long"]]
        assert option.get("short") == letter, option
        assert (option["values"] != "none") == takes_value, option


def test_options_that_open_files_are_excluded(manifest: dict[str, Any]) -> None:
    assert not NEVER_PASSED.intersection(option["long"] for option in manifest["options"])


def test_modes_are_complete_and_some_have_arguments(manifest: dict[str, Any]) -> None:
    assert set(manifest["modes"]) == MODES
    assert manifest["modes"]["auto"] == []
    if manifest["name"] in ("scx_rustland", "scx_rusty"):
        others = [tuple(args) for mode, args in manifest["modes"].items() if mode != "auto"]
        assert all(others)
        assert len(set(others)) == len(others)


def test_schedulers_that_follow_the_power_profile_name_their_options(
    manifest: dict[str, Any],
) -> None:
    """The build checks that the schedulers accept these options."""
    known = {
        "scx_bpfland": ["--primary-domain", "auto"],
        "scx_flash": ["--primary-domain", "auto"],
        "scx_lavd": ["--autopower"],
    }
    assert manifest.get("power_profile_args") == known.get(manifest["name"])


def test_required_kfuncs_are_listed(manifest: dict[str, Any]) -> None:
    assert [name for name in manifest["kfuncs"] if name.startswith("scx_bpf_")]
    # A kfunc with several versions (NAME___VERSION) is not required.
    assert not [name for name in manifest["kfuncs"] if "___" in name]
