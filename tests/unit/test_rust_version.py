# SPDX-License-Identifier: GPL-2.0-only
"""The minimum supported Rust version."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from schedulers import ROOT


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version; 1.88 and 1.88.0 are the same."""
    numbers = [int(number) for number in text.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


@pytest.fixture(scope="module")
def packages(build_options: dict[str, str], rust_host: str) -> list[dict]:
    """Metadata of all packages for this machine, from cargo's cache."""
    metadata = [build_options["cargo"], "metadata", "--format-version=1", "--locked", "--offline"]
    command = [*metadata, "--filter-platform", rust_host]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip("not all crates of Cargo.lock are here")
    return json.loads(done.stdout)["packages"]


def test_no_crate_needs_a_newer_rust(packages: list[dict]) -> None:
    promised = re.search(r'^rust-version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert promised
    needed = {
        f"{package['name']} {package['version']}": package["rust_version"]
        for package in packages
        if package["rust_version"]
    }
    assert any(name.startswith("bindgen ") for name in needed)
    limit = version(promised[1])
    assert {name: least for name, least in needed.items() if version(least) > limit} == {}


def test_setup_checks_for_the_same_version(packages: list[dict]) -> None:
    """RUST_MIN is the version that all crates of this tree declare."""
    setup = re.search(r"^RUST_MIN=(.+)$", (ROOT / "build-aux/setup.sh").read_text(), re.MULTILINE)
    assert setup
    ours = {
        package["name"]: package["rust_version"] for package in packages if not package["source"]
    }
    assert len(ours) > 1
    assert set(ours.values()) == {setup[1]}
