# SPDX-License-Identifier: GPL-2.0-only
"""Fetching Debian packages: mirror, cache, error messages."""

import os
import shutil
import subprocess
from pathlib import Path

import debs
import pytest

needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")

ONE_LINE = """\
deb http://other.test/vendor bookworm main
deb http://security.test/debian-security bookworm-security main
deb-src http://mirror.test/debian bookworm main
deb http://mirror.test/debian bookworm main contrib
"""
DEB822 = """\
Types: deb deb-src
URIs: https://mirror.test/debian/
Suites: bookworm bookworm-updates
Components: main
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SCX_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SCX_OFFLINE", raising=False)
    return tmp_path / "cache"


def machine(root: Path, name: str, sources: str) -> list[str]:
    """apt's options for a machine with only these sources."""
    path = root / "etc/apt" / name
    path.parent.mkdir(parents=True)
    path.write_text(sources)
    (root / "var/lib/apt/lists/partial").mkdir(parents=True)
    return ["-o", f"Dir={root}", "-o", "Dir::State::status=/dev/null"]


@needs_apt
@pytest.mark.parametrize(
    ("name", "sources", "uri"),
    [
        ("sources.list", ONE_LINE, "http://mirror.test/debian"),
        ("sources.list.d/debian.sources", DEB822, "https://mirror.test/debian"),
        ("sources.list", "deb http://mirror.test/d stable main\n", "http://mirror.test/d"),
    ],
    ids=["one-line", "deb822", "alias"],
)
def test_mirror_of_this_machine_is_used(tmp_path: Path, name: str, sources: str, uri: str) -> None:
    assert debs.archive_uri("bookworm", machine(tmp_path, name, sources)) == uri


@needs_apt
def test_no_source_for_this_debian(tmp_path: Path) -> None:
    options = machine(tmp_path, "sources.list", "deb http://mirror.test/x other main\n")
    with pytest.raises(debs.DebsError, match="no source for Debian bookworm$"):
        debs.archive_uri("bookworm", options)


@needs_apt
def test_sources_of_another_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debs, "debian_codename", lambda: "bookworm")
    options = machine(tmp_path, "sources.list", ONE_LINE)
    assert debs.sources("trixie", options) == [
        "deb http://mirror.test/debian trixie main",
        "deb http://mirror.test/debian trixie-updates main",
        "deb http://security.test/debian-security trixie-security main",
    ]


def os_release(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@needs_apt
def test_codename_of_this_debian(tmp_path: Path) -> None:
    file = os_release(tmp_path / "os", 'NAME="x"\nID=debian\nVERSION_CODENAME=trixie\n')
    assert debs.debian_codename(file) == "trixie"
    file = os_release(tmp_path / "os", "ID=debian\n")
    assert debs.debian_codename(file) == "sid"


def test_other_distributions_are_reported(tmp_path: Path) -> None:
    file = os_release(tmp_path / "os", 'ID=fedora\nPRETTY_NAME="Fedora 44"\n')
    with pytest.raises(debs.DebsError, match="packages on Fedora 44$"):
        debs.debian_codename(file)
    with pytest.raises(debs.DebsError, match="packages on this system$"):
        debs.debian_codename(tmp_path / "nothing")


def test_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert debs.cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("SCX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert debs.cache_dir() == tmp_path / "xdg/scx"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert debs.cache_dir() == tmp_path / ".cache/scx"


def unpacked(cache: Path, suite: str, name: str) -> Path:
    directory = cache / "debs" / suite / "unpacked" / name
    directory.mkdir(parents=True)
    return directory


def test_cached_package_needs_no_apt(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = unpacked(own_cache, "sid", "tool_1.0")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert debs.Suite("sid").fetch("tool") == tool
    assert debs.main(["fetch", "sid", "tool=1.0"]) == 0
    assert capsys.readouterr().out == f"{tool}\n"


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="needs dpkg")
def test_newest_cached_version_is_used(own_cache: Path) -> None:
    for version in ("9.0", "1%3a1.9", "1%3a1.10", "1%3a1.10~bpo12+1"):
        unpacked(own_cache, "sid", f"tool_{version}")
    unpacked(own_cache, "sid", "tool-extra_2.0")
    assert debs.Suite("sid").fetch("tool").name == "tool_1%3a1.10"
    assert debs.Suite("sid").fetch("tool", "1:1.9").name == "tool_1%3a1.9"


def test_offline_fetches_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCX_OFFLINE", "1")
    with pytest.raises(debs.DebsError, match="SCX_OFFLINE=1 forbids fetching from Debian sid"):
        debs.Suite("sid").fetch("tool")
    assert debs.main(["fetch", "sid", "tool"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("debs: SCX_OFFLINE=1 forbids")
    assert message.count("\n") == 1


def local_archive(root: Path) -> None:
    """An unsigned archive with one package, made with dpkg-deb."""
    package = root / "build"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "usr/bin").mkdir(parents=True)
    (package / "usr/bin/tool").write_text("hello\n")
    (package / "DEBIAN/control").write_text(
        "Package: tool\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@x.test>\n"
        "Description: a tool\n"
    )
    binary = root / "dists/suite/main/binary-all"
    binary.mkdir(parents=True)
    deb = root / "tool_1.0_all.deb"
    subprocess.run(["dpkg-deb", "-b", package, deb], check=True, capture_output=True)
    control = (package / "DEBIAN/control").read_text()
    size = deb.stat().st_size
    (binary / "Packages").write_text(f"{control}Filename: tool_1.0_all.deb\nSize: {size}\n")


@needs_apt
def test_unverified_archive_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unsigned package lists are rejected."""
    if not Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists():
        pytest.skip("needs the package debian-archive-keyring")
    local_archive(tmp_path / "archive")
    monkeypatch.setattr(debs, "archive_uri", lambda _: f"file:{tmp_path}/archive")
    monkeypatch.setattr(debs, "debian_codename", lambda: "bookworm")
    with pytest.raises(debs.DebsError, match="Debian suite: apt-get: "):
        debs.Suite("suite").fetch("tool")


@needs_apt
@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_fetch_unpacks_once_and_refreshes_only_when_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path
) -> None:
    local_archive(tmp_path / "archive")
    calls: list[str] = []

    def apt(self: debs.Suite, program: str, *arguments: str, cwd: Path | None = None) -> str:
        calls.append(arguments[-2] if arguments[-1] == "tool" else arguments[-1])
        if arguments[-1] == "tool":
            shutil.copy(tmp_path / "archive/tool_1.0_all.deb", cwd or "")
        return ""

    monkeypatch.setattr(debs.Suite, "_apt", apt)
    monkeypatch.setattr(debs.Suite, "_prepared", lambda self: own_cache / "debs/suite")
    suite = debs.Suite("suite")
    with suite.unpacked("tool") as tree:
        assert (tree / "usr/bin/tool").read_text() == "hello\n"
    assert not tree.exists()
    directory = suite.fetch("tool")
    assert suite.fetch("tool", "1.0") == directory
    assert (directory / "usr/bin/tool").read_text() == "hello\n"
    assert calls == ["update", "download", "download"]
    stamp = own_cache / "debs/suite/refreshed"
    os.utime(stamp, (0, 0))
    with suite.unpacked("tool"):
        assert calls[3:] == ["update", "download"]
