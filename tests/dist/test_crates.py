# SPDX-License-Identifier: GPL-2.0-only
"""`cargo package`: each publishable crate builds without this tree.

The crates are in no registry yet, so `[patch.crates-io]` replaces their dependencies on each other
by the unpacked packages, not by directories of this tree. Uncommitted changes are packaged, too.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from schedulers import ROOT, RUST_SCHEDULERS, project_version
from shared import SAME_FLAGS, configure, fetch_crates, need_git, output

CODE = {".rs", ".c", ".h"}
#: Files that cargo adds: the original manifest, and the commit.
OF_CARGO = {"Cargo.toml.orig", ".cargo_vcs_info.json"}


def manifests() -> dict[str, Path]:
    """Name → Cargo.toml of all publishable packages."""
    text = (ROOT / "Cargo.toml").read_text()
    members = re.findall(r'^    "([\w/]+)",$', text.partition("\n]\n")[0], re.MULTILINE)
    files = [ROOT / member / "Cargo.toml" for member in members]
    return {f.parent.name: f for f in files if "\npublish = false\n" not in f.read_text()}


NAMES = sorted(manifests())
#: Packages with their own BPF side.
WITH_BPF = [name for name in NAMES if any(manifests()[name].parent.glob("src/**/*.bpf.c"))]


def environment(build_options: dict[str, str]) -> dict[str, str]:
    """The environment without variables of the outer build, which could hide missing files of a
    package."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CARGO_", "BPF_", "SCX_"))}
    env |= SAME_FLAGS
    if "CARGO_HOME" in os.environ:
        env["CARGO_HOME"] = os.environ["CARGO_HOME"]
    if build_options["bpf_clang"]:
        env["BPF_CLANG"] = build_options["bpf_clang"]
    return env


@pytest.fixture(scope="module")
def folder(workplace: Path) -> Path:
    path = workplace / "packages"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def archives(folder: Path, build_options: dict[str, str], rust_host: str) -> dict[str, Path]:
    """The .crate files. They have no lock file, because to write a lock file, cargo would query a
    registry."""
    need_git()
    cargo = build_options["cargo"]
    fetch_crates(cargo, "--target", rust_host)
    target = folder / "packaged"
    selection = [arg for name in NAMES for arg in ("-p", name)]
    options = ["--no-verify", "--exclude-lockfile", "--allow-dirty", "--target-dir", target]
    output(cargo, "package", "--quiet", "--offline", *options, *selection, cwd=ROOT)
    found = {name: target / "package" / f"{name}-{project_version()}.crate" for name in NAMES}
    assert set(target.glob("package/*.crate")) == set(found.values())
    return found


def unpack(archive: Path, folder: Path) -> Path:
    """Unpacks the archive, and returns the directory in it."""
    output("tar", "-C", folder, "-xzf", archive)
    return folder / archive.name.removesuffix(".crate")


@pytest.fixture(scope="module")
def packages(
    archives: dict[str, Path], folder: Path, crates_of_tarball: str
) -> dict[str, Path]:
    """The unpacked packages, configured as replacements for those of the registry."""
    found = {name: unpack(archive, folder) for name, archive in archives.items()}
    patches = [
        f'{name} = {{ path = "{path.name}" }}'
        for name, path in found.items()
        if name not in RUST_SCHEDULERS
    ]
    configure(folder, "\n".join(["[patch.crates-io]", *patches, "", crates_of_tarball]))
    for path in found.values():
        # With this lock file, the versions are those that were fetched and tested.
        shutil.copy(ROOT / "Cargo.lock", path)
    return found


@pytest.fixture(scope="module")
def build(packages: dict[str, Path], target_dir: Path, build_options: dict[str, str]):
    """A function that builds a package with all features. It returns cargo's messages of all
    builds of this package so far, a string for each build."""
    line = [build_options["cargo"], "build", "--release", "--all-features", "--offline"]
    env = environment(build_options)
    messages: dict[str, list[str]] = {name: [] for name in packages}

    def run(name: str) -> list[str]:
        options = {"timeout": 3600, "cwd": packages[name], "env": env}
        messages[name].append(output(*line, "--target-dir", target_dir, **options))
        return messages[name]

    return run


def members(archive: Path) -> dict[str, tarfile.TarInfo]:
    """The files of a package, by their path in the package."""
    with tarfile.open(archive) as tar:
        return {member.name.partition("/")[2]: member for member in tar}


def texts(package: Path) -> Iterator[tuple[Path, str]]:
    """The files of a package with their contents, except the lock file and files that cargo
    adds."""
    for path in package.rglob("*"):
        if path.is_file() and path.name not in OF_CARGO | {"Cargo.lock"}:
            yield path, path.read_text()


def test_tools_and_testbed_are_not_publishable() -> None:
    libraries = {"scx_cargo", "scx_rustland_core", "scx_stats", "scx_stats_derive", "scx_utils"}
    assert set(NAMES) == libraries | set(RUST_SCHEDULERS)


@pytest.mark.parametrize("name", NAMES)
def test_archive_has_regular_files_in_one_directory(archives: dict[str, Path], name: str) -> None:
    for path, member in members(archives[name]).items():
        assert member.isreg(), path
        assert member.name.startswith(f"{name}-{project_version()}/")
        assert ".." not in Path(path).parts


@pytest.mark.parametrize("name", NAMES)
def test_manifest_has_description_and_licence(packages: dict[str, Path], name: str) -> None:
    manifest = (packages[name] / "Cargo.toml").read_text()
    assert re.search(r'^description = ".{20,}"$', manifest, re.MULTILINE)
    assert '\nlicense = "GPL-2.0-only"\n' in manifest
    # A package may request other packages only by their versions.
    assert not re.search(r"^(path|git|workspace) = .*(\.\.|:|true)", manifest, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_licence_is_packaged(packages: dict[str, Path], name: str) -> None:
    assert (packages[name] / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    for path, text in texts(packages[name]):
        if path.suffix in {".c", ".h"}:
            assert "SPDX-License-Identifier: GPL-2.0-only" in text, path


@pytest.mark.parametrize("name", NAMES)
def test_references_stay_within_the_package(packages: dict[str, Path], name: str) -> None:
    for path, text in texts(packages[name]):
        assert str(ROOT) not in text, path
        if path.suffix not in CODE:
            continue
        # Paths in #include and in #[path] must be inside the package.
        for reference in re.findall(r'(?:include|path).*["<](\.\.?/[^">]+)[">]', text):
            there = (path.parent / reference).resolve()
            assert there.is_relative_to(packages[name]), f"{path}: {reference}"


def test_headers_are_packaged_with_scx_cargo(packages: dict[str, Path]) -> None:
    def headers(folder: Path) -> dict[str, bytes]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    ours = headers(ROOT / "scheds/include")
    assert "scx/common.bpf.h" in ours
    assert headers(packages["scx_cargo"] / "include") == ours


@pytest.mark.parametrize("name", NAMES)
def test_builds_by_itself(build, name: str) -> None:
    build(name)


@pytest.mark.parametrize("name", RUST_SCHEDULERS)
def test_program_runs(build, target_dir: Path, name: str) -> None:
    build(name)
    version = output(target_dir / "release" / name, "--version")
    # The version must not contain the commit of a surrounding tree.
    assert version.startswith(f"{name} {project_version()} ")


@pytest.mark.parametrize("name", WITH_BPF)
def test_second_build_compiles_nothing(build, name: str) -> None:
    build(name)
    for messages in build(name)[1:]:
        assert "Compiling" not in messages


@pytest.mark.parametrize("name", WITH_BPF)
def test_bpf_side_uses_packages_only(
    build, folder: Path, packages, target_dir: Path, name: str
) -> None:
    """A BPF side reads only files of the packages and of the target directory, among them the
    headers of scx_cargo and those of libbpf."""
    build(name)
    # The target directory also contains the depfiles of other trees.
    depfiles = target_dir.glob(f"release/build/{name}-*/out/bpf.d")
    depfiles = [depfile for depfile in depfiles if f"{folder}/" in depfile.read_text()]
    assert depfiles
    for depfile in depfiles:
        read = [Path(word) for word in depfile.read_text().replace("\\\n", " ").split()[1:]]
        absolute = [path for path in read if path.is_absolute()]
        assert all(folder in path.parents or target_dir in path.parents for path in absolute), read
        assert packages["scx_cargo"] / "include/scx/common.bpf.h" in read
        assert depfile.parent / "include/bpf/bpf_helpers.h" in read
