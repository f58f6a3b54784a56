# SPDX-License-Identifier: GPL-2.0-only
"""`meson dist`: the tarball contains its crates and builds without a network.

The tests build the C schedulers with Meson, and one Rust scheduler with cargo. They need not build
the other Rust programs, which the build of this tree has built. It is sufficient that the tarball
has the files of the commit and complete copies of all crates of Cargo.lock, and that Meson finds
all inputs of its rules.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from schedulers import C_SCHEDULERS, ROOT
from shared import SAME_FLAGS, output

#: This scheduler uses all library packages, and thereby almost all crates of the schedulers.
RUST_SCHEDULER = "scx_rustland"


@pytest.fixture(scope="module")
def without_network() -> list[str]:
    """The prefix of a command line that removes network access."""
    for command in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        if subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    pytest.skip("needs a network namespace, which this machine does not permit")


@pytest.fixture(scope="module")
def run(unpacked: Path, workplace: Path, without_network: list[str]):
    """Runs a command in the tarball's directory, with no network and no crate in cargo's cache."""
    cargo_home = workplace / "cargo-home"
    cargo_home.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith("CARGO")}
    env |= {"CARGO_HOME": str(cargo_home), **SAME_FLAGS}

    def run(*command: str | Path) -> str:
        return output(*without_network, *command, timeout=3600, cwd=unpacked, env=env)

    return run


@pytest.fixture(scope="module")
def configured(run, unpacked: Path, target_dir: Path, build_options: dict[str, str]) -> Path:
    """Meson's build directory, with the shared target directory for cargo."""
    build = unpacked.parent / "build"
    build.mkdir()
    (build / "cargo").symlink_to(target_dir)
    tools = [f"-D{name}={build_options[name]}" for name in ("bpf_clang", "bpftool", "cargo")]
    run("meson", "setup", "-Doptimization=0", *tools, build)
    return build


@pytest.fixture(scope="module")
def built(run, configured: Path) -> Path:
    run("ninja", "-C", configured, *(f"scheds/c/{name}" for name in C_SCHEDULERS))
    return configured


def checksums(tree: Path) -> dict[str, str]:
    """The checksums of the crates in the lock file, by the crate's directory."""
    crate = r'^name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(.+)"$'
    found = re.findall(crate, (tree / "Cargo.lock").read_text(), re.MULTILINE)
    return {f"{name}-{version}": checksum for name, version, checksum in found}


def object_id(path: Path) -> str:
    """git's id of a file."""
    content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def test_has_the_files_of_the_commit(unpacked: Path) -> None:
    listed = output("git", "-C", ROOT, "ls-tree", "-r", "-z", "HEAD").rstrip("\0").split("\0")
    committed = {}
    for entry in listed:
        (mode, _, oid), name = entry.partition("\t")[0].split(), entry.partition("\t")[2]
        committed[name] = (oid, mode == "100755")
    found = {}
    for path in unpacked.rglob("*"):
        name = str(path.relative_to(unpacked))
        if name.startswith("vendor/") or (path.is_dir() and not path.is_symlink()):
            continue
        executable = not path.is_symlink() and bool(path.stat().st_mode & 0o100)
        found[name] = (object_id(path), executable)
    assert found.pop(".cargo/config.toml")
    assert found == committed


def test_has_every_crate_of_the_lock_file(unpacked: Path) -> None:
    crates = checksums(unpacked)
    assert crates
    assert {p.name for p in (unpacked / "vendor").iterdir()} == set(crates)


def test_crates_are_complete(unpacked: Path) -> None:
    """cargo checks the checksums, too, but only of the crates that it builds."""
    for name, checksum in checksums(unpacked).items():
        crate = unpacked / "vendor" / name
        listed = json.loads((crate / ".cargo-checksum.json").read_text())
        assert listed["package"] == checksum, name
        assert "Cargo.toml" in listed["files"], name
        for file, expected in listed["files"].items():
            found = hashlib.sha256((crate / file).read_bytes()).hexdigest()
            assert found == expected, f"{name}/{file}"


def test_crates_have_no_generated_files(unpacked: Path) -> None:
    names = (path.suffix for path in (unpacked / "vendor").rglob("*") if path.is_file())
    assert {".a", ".dll", ".html", ".lib", ".so"} & set(names) == set()


def test_every_file_has_the_time_of_the_commit(tarball: Path) -> None:
    commit = int(output("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    with tarfile.open(tarball) as archive:
        assert {member.mtime for member in archive} == {commit}


def test_every_input_of_a_rule_exists(run, configured: Path) -> None:
    assert "rust/scxtop" in run("ninja", "-C", configured, "-n", "-v")


@pytest.mark.parametrize("name", C_SCHEDULERS)
def test_scheduler_runs(built: Path, name: str) -> None:
    assert name in output(built / "scheds/c" / name, "--version")


@pytest.mark.parametrize("name", C_SCHEDULERS)
def test_scheduler_links_no_libbpf_at_run_time(built: Path, name: str) -> None:
    libraries = output("ldd", built / "scheds/c" / name)
    assert "libelf" in libraries
    assert "libbpf" not in libraries


def test_rust_scheduler_runs(run, target_dir: Path, build_options: dict[str, str]) -> None:
    options = ["--release", "--quiet", "--offline", "--locked", "--target-dir", target_dir]
    run(build_options["cargo"], "build", *options, "-p", RUST_SCHEDULER)
    assert RUST_SCHEDULER in output(target_dir / "release" / RUST_SCHEDULER, "--version")
