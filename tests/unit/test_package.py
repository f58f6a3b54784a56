# SPDX-License-Identifier: GPL-2.0-only
"""`./dev package deb` and packaging/debian: files of the packages, build dependencies, copyright,
version, progress and error messages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import pytest
import test_install
from package import __main__ as package
from roots import suites
from schedulers import ROOT, project_version

DEBIAN = ROOT / "packaging/debian"
UNITS = "usr/lib/systemd/system"
#: Meson's options in the build of the packages: those that debhelper sets, and defaults.
OPTIONS = {
    "prefix": "/usr",
    "sysconfdir": "/etc",
    "datadir": "share",
    "libexecdir": "libexec",
    "systemd_unit_dir": f"/{UNITS}",
    "dbus_dir": "",
    "polkit_action_dir": "",
    "enable_rust": "true",
    "systemd": "true",
    "dbus": "true",
    "openrc": "",
}


def installed() -> set[str]:
    """What `meson install` installs for a package; test_install.py compares this with a build."""
    programs = [
        f"usr/{file}" for name in test_install.PROGRAMS for file in test_install.files_of(name)
    ]
    return {*programs, *test_install.service_files(OPTIONS)}


def patterns() -> Iterator[tuple[str, str]]:
    """Package and pattern of each line that takes files of `meson install`."""
    for file in sorted([*DEBIAN.glob("*.install"), *DEBIAN.glob("*.examples")]):
        for line in file.read_text().splitlines():
            source = line.split()[0].replace("${env:SYSTEMD_UNIT_DIR}", UNITS)
            if not source.startswith("debian/") or source.startswith("debian/tmp/"):
                yield file.stem, source.removeprefix("debian/tmp/")


def takes(pattern: str, file: str) -> bool:
    """Whether dh_install takes the file: the file, or a directory above it, matches the pattern."""
    wanted = pattern.split("/")
    parts = file.split("/")[: len(wanted)]
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def paragraphs() -> list[dict[str, str]]:
    """The fields of each paragraph of debian/control."""
    text = re.sub(r"\n (?! *\n)", " ", (DEBIAN / "control").read_text())
    return [dict(re.findall(r"(?m)^([\w-]+): *(.*)$", part)) for part in text.split("\n\n")]


def test_every_installed_file_is_in_one_package() -> None:
    all_patterns = list(patterns())
    for file in sorted(installed()):
        owners = {owner for owner, pattern in all_patterns if takes(pattern, file)}
        assert len(owners) == 1, f"{file}: {owners or 'in no package'}"


def test_every_pattern_takes_a_file() -> None:
    files = installed()
    for owner, pattern in patterns():
        assert any(takes(pattern, file) for file in files), f"{owner}: {pattern}"


def test_packages_are_those_of_control() -> None:
    names = {fields["Package"] for fields in paragraphs() if "Package" in fields}
    assert {owner for owner, _ in patterns()} == names
    for file in DEBIAN.glob("*.install"):
        for source in re.findall(r"(?m)^debian/(?!tmp/)(\S+)", file.read_text()):
            assert (DEBIAN / source).is_file(), f"{file.name}: {source}"
    # Each unit has a preset, so that systemd does not enable the unit on the first boot.
    presets = "".join(file.read_text() for file in DEBIAN.glob("*.preset"))
    assert sorted(re.findall(r"(?m)^disable (\S+)$", presets)) == [
        PurePosixPath(file).name for file in sorted(installed()) if file.startswith(UNITS)
    ]


#: Patterns of the requirements in docs/building.md → Debian's packages. The group of a pattern is
#: the minimum version.
REQUIRED = {
    r"Meson ([\d.]+)": "meson",
    "ninja": "ninja-build",
    "pkg-config": "pkgconf",
    r"clang (\d+)": "clang",
    r"Rust\s+([\d.]+)": "rustc",
    r"Rust\s+([\d.]+) with cargo": "cargo",
    r"bpftool ([\d.]+)": "bpftool",
    "libelf": "libelf-dev",
    "zlib": "zlib1g-dev",
    "json-c": "libjson-c-dev",
    "cmocka": "libcmocka-dev",
}


def test_build_dependencies_are_the_documented_ones() -> None:
    text = (ROOT / "docs/building.md").read_text()
    listed = re.search(r"^Requirements: (.+?)\.\s", text, re.M | re.S)
    assert listed
    depends = paragraphs()[0]["Build-Depends"]
    for words, name in REQUIRED.items():
        found = re.search(words, listed[1])
        assert found, f"docs/building.md: no {words}"
        version = rf" \(>= (?:1:)?{re.escape(found[1])}\)" if found.groups() else ""
        assert re.search(rf"(?:^|[,|]) *{name}{version}[ ,]", depends), (name, found[0])
    setup = (ROOT / "build-aux/setup.sh").read_text()
    for variable, name in (
        ("RUST_MIN", "rustc"),
        ("CLANG_MIN", "clang"),
        ("BPFTOOL_MIN", "bpftool"),
    ):
        (version,) = re.findall(rf"(?m)^{variable}=(\S+)$", setup)
        assert re.search(rf"\b{name} \(>= (1:)?{re.escape(version)}\)", depends), variable


def test_changelog_has_the_version_of_the_project() -> None:
    first = (DEBIAN / "changelog").read_text().splitlines()[0]
    assert first.startswith(f"scx ({project_version()}-1) ")


LICENCE = """\
MIT License

Copyright (c) 2020 A. Uthor

Permission is hereby granted, free of charge, to any person.

The notices shall be included in all substantial portions of the Software.
"""


def crate(folder: Path, name: str, licence: str, text: str = "") -> None:
    (folder / name).mkdir(parents=True)
    manifest = f'[package]\nauthors = ["Some One"]\nlicense = "{licence}"\n'
    (folder / name / "Cargo.toml").write_text(manifest)
    if text:
        (folder / name / "LICENSE-MIT").write_text(text)


def complete(vendor: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, ROOT / "packaging/copyright.py", DEBIAN / "copyright", vendor.name]
    return subprocess.run(program, cwd=vendor.parent, capture_output=True, text=True, timeout=60)


def test_copyright_has_owners_and_licence_of_each_crate(tmp_path: Path) -> None:
    vendor = tmp_path / "vendor"
    crate(vendor, "a-1.0", "MIT/Apache-2.0", LICENCE)
    crate(vendor, "b-1.0", "(MIT OR Apache-2.0) AND MIT")
    done = complete(vendor)
    assert done.returncode == 0, done.stderr
    for stanza in (
        "Files: vendor/a-1.0/*\nCopyright: Copyright (c) 2020 A. Uthor\nLicense: MIT or Ap",
        "Files: vendor/b-1.0/*\nCopyright: Some One\nLicense: MIT or Apache-2.0, and MIT\n",
        "License: MIT\n Permission is hereby granted, free of charge, to any person.\n .\n The",
        "License: Apache-2.0\n On Debian systems",
    ):
        assert f"\n\n{stanza}" in done.stdout


@pytest.mark.parametrize(
    ("licence", "reason"),
    [
        ("Proprietary", "the licence Proprietary is not known"),
        ("MIT", "no crate has the text of the licence MIT"),
    ],
)
def test_copyright_needs_the_text_of_each_licence(
    tmp_path: Path, licence: str, reason: str
) -> None:
    crate(tmp_path / "vendor", "a-1.0", licence)
    done = complete(tmp_path / "vendor")
    assert (done.returncode, done.stderr) == (1, f"copyright.py: {reason}\n")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A git repository with one commit."""
    if not shutil.which("git"):
        pytest.skip("needs git")
    (tmp_path / "meson.build").write_text("project('scx', 'c',\n  version: '0.1.0',\n")
    env = {**os.environ, "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+02:00"}
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.test"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", tmp_path, *command], env=env, check=True)
    return tmp_path


def test_version_of_a_commit_precedes_its_release(tree: Path) -> None:
    commit = package.last_commit(tree)
    assert commit.version == f"0.1.0~git20260102010405.{commit.name}"
    assert commit.date == "Fri, 02 Jan 2026 01:04:05 +0000"
    subprocess.run(["git", "-C", tree, "tag", "v0.1.0"], check=True)
    assert package.last_commit(tree).version == "0.1.0"


def test_no_clone_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(package.PackageError, match="is no clone"):
        package.last_commit(tmp_path)


def test_release_of_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "_RELEASES", tmp_path)
    for vendor, row in (("debian", "13,Trixie,trixie"), ("ubuntu", "24.04 LTS,Noble,noble")):
        header = "version,codename,series,created,release,eol"
        (tmp_path / f"{vendor}.csv").write_text(
            f"{header}\n{row},2023-10-12,2024-04-25,2029-05-31\n"
        )
    assert (suites.release("trixie"), suites.release("noble")) == ("deb13", "ubuntu24.04")
    with pytest.raises(suites.SuiteError, match="there is no release 'nope'"):
        suites.release("nope")


def test_steps_are_printed_with_their_times(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["some output", "package: building", "more", "package: built"]
    package._follow("trixie", lines, Path("log"))
    out = capsys.readouterr().out
    assert re.fullmatch(r"trixie: creating a root … 0 s\ntrixie: building … 0 s\n", out)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("package: failed: files differ after purge", "files differ after purge"),
        ("E: Unable to locate package nope", "Unable to locate package nope"),
        ("E: scx-tools: no-copyright-file", "scx-tools: no-copyright-file"),
        ("dpkg-checkbuilddeps: error: unmet: meson", "unmet: meson"),
        ("silence", "failed"),
    ],
)
def test_failed_step_is_named_in_one_line(line: str, reason: str) -> None:
    with pytest.raises(package.PackageError) as error:
        package._follow("trixie", ["package: building", line], Path("a.log"))
    assert str(error.value) == f"trixie: building: {reason}: see a.log"


def test_unknown_suite_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert package.main(["deb", "--suite", "nope", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "package: there is no release 'nope' of Debian or Ubuntu\n"
