# SPDX-License-Identifier: GPL-2.0-only
"""What `meson install` lays out, and that it works from there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from schedulers import C_SCHEDULERS, ROOT, RUST_SCHEDULERS

#: Where what belongs to a scheduler is installed.
C_FILES = [
    "bin/{}",
    "share/man/man8/{}.8",
    "share/bash-completion/completions/{}",
    "share/zsh/site-functions/_{}",
]
RUST_FILES = [
    "bin/{}",
    "share/man/man8/{}.8",
    "share/bash-completion/completions/{}.bash",
    "share/zsh/site-functions/_{}",
    "share/fish/vendor_completions.d/{}.fish",
]


@pytest.fixture(scope="module")
def installed(build_options: dict[str, str]) -> list[str]:
    """The schedulers that are built."""
    return C_SCHEDULERS + (RUST_SCHEDULERS if build_options["enable_rust"] else [])


@pytest.fixture(params=C_SCHEDULERS + RUST_SCHEDULERS)
def name(request: pytest.FixtureRequest, installed: list[str]) -> str:
    """Each scheduler's."""
    if request.param not in installed:
        pytest.skip("built without the Rust programs")
    return request.param


@pytest.fixture(scope="module")
def stage(
    build_dir: Path, build_options: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The prefix in a DESTDIR with everything installed."""
    destination = tmp_path_factory.mktemp("stage")
    command = ["meson", "install", "-C", str(build_dir), "--no-rebuild", "--quiet"]
    subprocess.run([*command, "--destdir", str(destination)], check=True, timeout=120)
    return destination / Path(build_options["prefix"]).relative_to("/")


def files_of(name: str) -> list[str]:
    """All that is installed of a scheduler."""
    return [file.format(name) for file in (C_FILES if name in C_SCHEDULERS else RUST_FILES)]


def completions(stage: Path, name: str, shell: str) -> Path:
    """The completions of a scheduler for bash, zsh or fish."""
    (file,) = (file for file in files_of(name) if f"/{shell}" in file)
    return stage / file


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_everything_is_where_it_belongs_and_nothing_else(stage: Path, installed: list[str]) -> None:
    found = {str(p.relative_to(stage)) for p in stage.rglob("*") if p.is_file()}
    expected = set()
    for name in installed:
        expected |= set(files_of(name))
    assert found == expected


def test_installed_program_runs(stage: Path, name: str) -> None:
    assert run(stage / "bin" / name, "--version").returncode == 0


def test_man_page_has_no_errors(stage: Path, name: str) -> None:
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    page = stage / "share/man/man8" / f"{name}.8"
    assert run("groff", "-man", "-ww", "-z", page).stderr == ""
    assert "@" not in page.read_text()


def test_man_page_is_found_by_its_summary(stage: Path, name: str) -> None:
    """`apropos` reads the section NAME, which is one line."""
    page = (stage / "share/man/man8" / f"{name}.8").read_text()
    assert re.search(rf"^\.SH NAME\n{name} \\- \S.*\n\.", page, re.MULTILINE)


def test_bash_completes_options(stage: Path, name: str) -> None:
    option = "--exit-dump-len"
    script = f"""
        source "{completions(stage, name, "bash")}"
        compopt() {{ :; }}
        COMP_WORDS=({name} --exit-d) COMP_CWORD=1
        _{name} {name} --exit-d {name}
        echo "${{COMPREPLY[@]}}"
        COMP_WORDS=({name} -) COMP_CWORD=1
        _{name} {name} - {name}
        echo "${{COMPREPLY[@]}}"
        complete -p {name} >/dev/null
    """
    # C schedulers' completions ask the program.
    script = f'PATH="{stage}/bin:$PATH"\n{script}'
    done = run("bash", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.removesuffix("=") == option
    assert {"-h", "--help", "-V", "--version"} <= set(second.split())
    assert "--generate" not in second


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_can_be_parsed(stage: Path, installed: list[str], shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    # fish makes its own of a C scheduler's manual page.
    names = RUST_SCHEDULERS if shell == "fish" else C_SCHEDULERS + RUST_SCHEDULERS
    for name in set(names).intersection(installed):
        done = run(shell, "-n", completions(stage, name, shell))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_generated_completions_name_the_options(
    stage: Path, installed: list[str], shell: str
) -> None:
    """All but the hidden one that they were generated with."""
    for name in set(RUST_SCHEDULERS).intersection(installed):
        text = completions(stage, name, shell).read_text()
        assert "exit-dump-len" in text
        assert "generate" not in text


def bpf_object(build_dir: Path, name: str) -> Path:
    """What is loaded into the kernel. cargo keeps those of earlier builds, too."""
    if name in C_SCHEDULERS:
        return build_dir / "scheds/c" / f"{name}.bpf.o"
    # A policy in user space has the BPF half of the crate that it stands on.
    own = list(build_dir.glob(f"cargo/*/build/{name}-*/out/bpf.bpf.o"))
    found = own or build_dir.glob("cargo/*/build/scx_rustland_core-*/out/bpf.bpf.o")
    return max(found, key=lambda file: file.stat().st_mtime)


def test_bpf_object_names_no_path_of_the_build_machine(build_dir: Path, name: str) -> None:
    """What is loaded into the kernel does not depend on where it was built."""
    contents = bpf_object(build_dir, name).read_bytes()
    for folder in (ROOT, build_dir.resolve(), Path.home() / ".cargo"):
        # Where a path begins: a tree in /scx is no part of include/scx/common.bpf.h.
        assert not re.search(rb"(?<![\w.-])" + re.escape(str(folder)).encode() + b"/", contents)
