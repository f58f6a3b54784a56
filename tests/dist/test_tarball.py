# SPDX-License-Identifier: GPL-2.0-only
"""`meson dist`: the tarball contains its crates and builds without a network."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from schedulers import C_SCHEDULERS, ROOT, RUST_SCHEDULERS
from shared import QUICK_BUILD, fetch_crates, need_git, output


@pytest.fixture(scope="module")
def tarball(build_dir: Path, build_options: dict[str, str]) -> Path:
    need_git()
    fetch_crates(build_options["cargo"])
    make = ["meson", "dist", "-C", build_dir, "--no-tests", "--allow-dirty", "--formats", "gztar"]
    found = re.search(r"^Created (.+\.tar\.gz)$", output(*make), re.MULTILINE)
    assert found
    return Path(found[1])


@pytest.fixture(scope="module")
def unpacked(tarball: Path) -> Iterator[Path]:
    """The only directory in the tarball; removed afterwards, since the build output is large."""
    with tempfile.TemporaryDirectory() as folder:
        output("tar", "-C", folder, "-xzf", tarball)
        (tree,) = Path(folder).iterdir()
        yield tree


@pytest.fixture(scope="module")
def without_network() -> list[str]:
    """The prefix of a command line that removes network access."""
    for command in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    pytest.skip("needs a network namespace, which this machine does not permit")


@pytest.fixture(scope="module")
def built(unpacked: Path, build_options: dict[str, str], without_network: list[str]) -> Path:
    """A build of the tarball beside it, with no network and no crate in cargo's cache."""
    build, cargo_home = unpacked.parent / "build", unpacked.parent / "cargo-home"
    cargo_home.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith("CARGO")}
    env |= {"CARGO_HOME": str(cargo_home), **QUICK_BUILD}
    tools = [f"-D{name}={build_options[name]}" for name in ("bpf_clang", "bpftool", "cargo")]
    setup = ["meson", "setup", "-Dbuildtype=debug", *tools, build, unpacked]
    output(*without_network, *setup, timeout=1800, env=env)
    output(*without_network, "ninja", "-C", build, timeout=3600, env=env)
    return build


def test_has_every_crate_of_the_lock_file(unpacked: Path) -> None:
    lock = (unpacked / "Cargo.lock").read_text()
    crates = re.findall(r'^name = "(.+)"\nversion = "(.+)"\nsource = ', lock, re.MULTILINE)
    assert crates
    assert {p.name for p in (unpacked / "vendor").iterdir()} == {"-".join(c) for c in crates}


def test_every_file_has_the_time_of_the_commit(tarball: Path) -> None:
    commit = int(output("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    with tarfile.open(tarball) as archive:
        assert {member.mtime for member in archive} == {commit}


@pytest.mark.parametrize("name", C_SCHEDULERS)
def test_scheduler_runs(built: Path, name: str) -> None:
    assert name in output(built / "scheds/c" / name, "--version")


@pytest.mark.parametrize("name", C_SCHEDULERS)
def test_scheduler_links_no_libbpf_at_run_time(built: Path, name: str) -> None:
    libraries = output("ldd", built / "scheds/c" / name)
    assert "libelf" in libraries
    assert "libbpf" not in libraries


@pytest.mark.parametrize("name", [*RUST_SCHEDULERS, "scx_load"])
def test_rust_program_runs(built: Path, name: str) -> None:
    assert name in output(built / "rust" / name, "--version")
