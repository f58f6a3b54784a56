# SPDX-License-Identifier: GPL-2.0-only
"""`./dev test --fresh`: package sources, and reports."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import debs
import pytest
from fresh import __main__ as fresh
from roots import root as roots
from roots import suites

RELEASES = """\
version,codename,series,created,release,eol
24.04 LTS,Noble Numbat,noble,2023-10-12,2024-04-25,2029-05-31
25.10,Questing Quokka,questing,2025-04-17,2025-10-09,2026-07-09
98.04 LTS,Far Future,far,2097-10-12,2098-04-25,2103-05-31
"""


@pytest.fixture(autouse=True)
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ubuntu.csv").write_text(RELEASES)
    monkeypatch.setattr(suites, "_RELEASES", tmp_path)


def test_default_is_two_of_debian_and_the_last_lts_of_ubuntu() -> None:
    assert suites.default() == ["bookworm", "trixie", "noble"]


def test_debian_uses_the_mirror_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debs, "sources", lambda name: [f"deb http://mirror.test {name} main"])
    assert suites.find("trixie").sources == ("deb http://mirror.test trixie main",)


def test_ubuntu_needs_its_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(debs.Suite, "fetch", lambda *_: tmp_path)
    (option,) = suites.find("questing").options
    assert option.startswith(f"--keyring={tmp_path}/usr/share/keyrings/ubuntu")

    def no_network(*_: object) -> Path:
        raise debs.DebsError("SCX_OFFLINE=1 forbids it")

    monkeypatch.setattr(debs.Suite, "fetch", no_network)
    with pytest.raises(suites.SuiteError, match="no keys of Ubuntu's archive: SCX_OFFLINE=1"):
        suites.find("noble")


#: Replaces mmdebstrap: runs the script that a hook would copy into the root.
FAKE = """\
#!{python}
import shlex, subprocess, sys
hooks = [a.partition("=")[2] for a in sys.argv if a.startswith("--customize-hook=")]
script = next(h.split()[1] for h in hooks if h.endswith("/fresh /root"))
text = open(script).read().replace("cd /root", "cd {root}").replace("HOME=/root", "HOME={root}")
bundle = next(h.split()[1] for h in hooks if h.endswith("/scx.bundle /root"))
subprocess.run(["cp", bundle, "{root}/scx.bundle"], check=True)
sys.exit(subprocess.run(["sh", "-c", text]).returncode)
"""


def test_each_command_is_reported_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands run in a clone of the last commit."""
    if not (Path(__file__).parents[2] / ".git").exists():
        pytest.skip("needs a clone")
    root = tmp_path / "root"
    root.mkdir()
    fake = tmp_path / "bin" / "mmdebstrap"
    fake.parent.mkdir()
    fake.write_text(FAKE.format(python=sys.executable, root=root))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(roots, "why_impossible", lambda: None)
    monkeypatch.setattr(debs, "sources", lambda name: [])
    commands = ["--command", "head -n 1 README.md", "--command", "echo no; exit 3"]
    assert fresh.main(["bookworm", *commands, "--log", str(tmp_path / "logs")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("bookworm: head -n 1 README.md: passed, ")
    assert lines[1].endswith(" s: # scx")
    assert lines[2].startswith("bookworm: echo no; exit 3: status 3, ")
    assert lines[2].endswith(": no")
    (log,) = (tmp_path / "logs").iterdir()
    assert "# scx\n" in log.read_text()


def test_tree_without_git_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(roots, "why_impossible", lambda: None)
    monkeypatch.setattr(debs, "sources", lambda name: [])
    monkeypatch.setattr(fresh, "_TREE", tmp_path)
    assert fresh.main(["bookworm", "--log", str(tmp_path)]) == 1
    assert (
        capsys.readouterr().err == "fresh: the last commit cannot be copied: git has reported why\n"
    )


def test_skipped_where_no_root_can_be_created(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(roots, "why_impossible", lambda: "neither root nor user namespaces: no")
    assert fresh.main(["bookworm"]) == 0
    assert capsys.readouterr().out == "skipped: neither root nor user namespaces: no\n"


def test_help_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        fresh.main(["--help"])
    assert end.value.code == 0
    assert "./dev test --fresh" in capsys.readouterr().out
