# SPDX-License-Identifier: GPL-2.0-only
"""What `meson install` lays out, and that it works from there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCHEDULERS = sorted(p.name.removesuffix(".bpf.c") for p in (ROOT / "scheds/c").glob("*.bpf.c"))


@pytest.fixture(scope="module")
def stage(
    build_dir: Path, build_options: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The prefix in a DESTDIR with everything installed."""
    destination = tmp_path_factory.mktemp("stage")
    command = ["meson", "install", "-C", str(build_dir), "--no-rebuild", "--quiet"]
    subprocess.run([*command, "--destdir", str(destination)], check=True, timeout=120)
    return destination / Path(build_options["prefix"]).relative_to("/")


def test_everything_is_where_it_belongs_and_nothing_else(stage: Path) -> None:
    found = {str(p.relative_to(stage)) for p in stage.rglob("*") if p.is_file()}
    expected = set()
    for name in SCHEDULERS:
        expected |= {
            f"bin/{name}",
            f"share/man/man8/{name}.8",
            f"share/bash-completion/completions/{name}",
            f"share/zsh/site-functions/_{name}",
        }
    assert found == expected


@pytest.mark.parametrize("name", SCHEDULERS)
def test_installed_program_runs(stage: Path, name: str) -> None:
    done = subprocess.run([stage / "bin" / name, "--version"], capture_output=True, timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("name", SCHEDULERS)
def test_man_page_has_no_errors(stage: Path, name: str) -> None:
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    page = stage / "share/man/man8" / f"{name}.8"
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", page], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert "@" not in page.read_text()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_bash_completes_options(stage: Path, name: str) -> None:
    script = f"""
        source "{stage}/share/bash-completion/completions/{name}"
        compopt() {{ :; }}
        COMP_WORDS=({name} --int) COMP_CWORD=1
        _{name} "{stage}/bin/{name}" --int
        echo "${{COMPREPLY[@]}}"
        _{name} "{stage}/bin/{name}" -
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    first, second = done.stdout.splitlines()
    assert first == "--interval="
    assert {"-h", "--help", "-V", "--version"} <= set(second.split())
    assert done.stderr == ""


@pytest.mark.parametrize("name", SCHEDULERS)
def test_bpf_object_names_no_path_of_the_build_machine(build_dir: Path, name: str) -> None:
    """What is loaded into the kernel does not depend on where it was built."""
    contents = (build_dir / "scheds/c" / f"{name}.bpf.o").read_bytes()
    for folder in (ROOT, build_dir.resolve()):
        # Where a path begins: a tree in /scx is no part of include/scx/common.bpf.h.
        assert not re.search(rb"(?<![\w.-])" + re.escape(str(folder)).encode() + b"/", contents)
