# SPDX-License-Identifier: GPL-2.0-only
"""docs/writing-a-scheduler.md: follows the tutorial step by step in a copy of the tree.

A block below a line that names a file is that file, or a part of it:

    `FILE`:                  all of it
    `FILE`, below `LINE`:    lines to insert
    `FILE`, at the end:      lines to append

A block of the language `sh` is run; what `cargo run` prints is in the block after it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import debs
import pytest
from schedulers import ROOT
from shared import SAME_FLAGS, configure, fetch_crates, output
from vm import emulator, kernels, qemu

PAGE = ROOT / "docs/writing-a-scheduler.md"
#: Files that cargo needs: all members of the workspace, and the crates of a tarball.
NEEDED = [
    *("Cargo.toml", "Cargo.lock", "LICENSE", "clippy.toml", "rustfmt.toml"),
    *("rust", "scheds", "testbed", "tools", "tests/scheds", "vendor", ".cargo"),
]

STEP = re.compile(r"## Step (\d+): ")
PLACE = re.compile(r"`([^`]+)`(?:, (?:below `([^`]+)`|(at the end)))?:")
#: Runs Clippy as `cargo clippy` does, but in a build, which uses the crates that are compiled
#: already. `cargo clippy` would check each of these crates again.
CLIPPY = """--config 'build.rustc-workspace-wrapper="clippy-driver"'"""
#: Commands that are run at the end of each step, although the tutorial does not mention them.
LINTS = [
    "cargo fmt --check -p scx_mine",
    f"cargo build --quiet --release --all-targets -p scx_mine {CLIPPY}",
]


@dataclass(frozen=True)
class Block:
    """A fenced block of the page."""

    step: int
    language: str
    text: str
    #: Where the block belongs in `file`: after the line `below`, or at the end. If neither is
    #: given, the block is the whole file. A block without `file` belongs to no file.
    file: str = ""
    below: str = ""
    at_end: bool = False

    def write(self, tree: Path) -> None:
        """Apply the block to the copy of the tree."""
        path = tree / self.file
        assert path.resolve().is_relative_to(tree), self.file
        if self.at_end:
            path.write_text(path.read_text() + self.text)
        elif self.below:
            before, found, after = path.read_text().partition(f"\n{self.below}\n")
            assert found, f"{self.file} has no line {self.below}"
            path.write_text(before + found + self.text + after)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text)


def parse(page: str) -> Iterator[Block]:
    """The blocks of the page, in order."""
    step, place, block = 0, None, None
    for line in page.splitlines():
        if block is not None:
            if line == "```":
                file, below, end = place.groups() if place else ("", "", "")
                text = "".join(f"{part}\n" for part in block[1:])
                yield Block(step, block[0], text, file, below or "", bool(end))
                place, block = None, None
            else:
                block.append(line)
        elif line.startswith("```"):
            block = [line.removeprefix("```")]
        elif match := STEP.match(line):
            step = int(match[1])
        elif line:
            place = PLACE.fullmatch(line)


BLOCKS = list(parse(PAGE.read_text()))


@dataclass(frozen=True)
class Command:
    """A command to run after the first `nr_blocks` blocks of the page."""

    step: int
    nr_blocks: int
    script: str

    @property
    def is_for_a_guest(self) -> bool:
        return "./dev vm run" in self.script

    @property
    def is_lint(self) -> bool:
        return self.script in LINTS

    def __str__(self) -> str:
        return f"step {self.step}: {' '.join(self.script.split()[:3])}"


def commands() -> Iterator[Command]:
    """The commands of the page, and the linters after each step."""
    for number, block in enumerate(BLOCKS):
        if block.language == "sh":
            yield Command(block.step, number, block.text)
        if [b.step for b in BLOCKS[number : number + 2]] != [block.step] * 2:
            yield from (Command(block.step, number + 1, lint) for lint in LINTS)


COMMANDS = list(commands())
(STATISTICS, WEIGHTS) = (command for command in COMMANDS if command.is_for_a_guest)


@dataclass
class Reader:
    """Executes the steps of the page."""

    tree: Path
    env: dict[str, str]
    nr_blocks: int = 0
    outputs: dict[Command, str] = field(default_factory=dict)

    def run(self, command: Command) -> str:
        """Runs the page's earlier commands, except linters and commands for guests, and then this
        command. A command that has run already is not run again. Returns the output of this
        command."""
        before = COMMANDS[: COMMANDS.index(command)]
        for other in before:
            if not other.is_for_a_guest and not other.is_lint:
                self._run(other)
        return self._run(command)

    def _run(self, command: Command) -> str:
        if command not in self.outputs:
            for block in BLOCKS[self.nr_blocks : command.nr_blocks]:
                if block.file:
                    block.write(self.tree)
            self.nr_blocks = max(self.nr_blocks, command.nr_blocks)
            line = ["bash", "-euc", command.script]
            self.outputs[command] = output(*line, timeout=3600, cwd=self.tree, env=self.env)
        return self.outputs[command]


def copy(tree: Path) -> None:
    tree.mkdir()
    for name in NEEDED:
        source, target = ROOT / name, tree / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        elif source.exists():
            shutil.copy(source, target)


def provide(tools: Path, cargo: str) -> None:
    """Provides the cargo of the build under the name `cargo`."""
    tools.mkdir()
    (tools / "cargo").symlink_to(shutil.which(cargo) or cargo)


def replace_dev(dev: Path) -> None:
    """Replaces `./dev`: `./dev vm run` then does not check for missing packages, and its guests are
    deterministic. In a guest with the host's time, --for may expire on a busy host before the
    scheduler has started."""
    vm_run = f"exec {sys.executable} -m vm run --deterministic"
    dev.write_text(f'#!/bin/sh -eu\n[ "$1 $2" = "vm run" ]\nshift 2\n{vm_run} "$@"\n')
    dev.chmod(0o755)


def environment(build_options: dict[str, str]) -> dict[str, str]:
    """An environment that forbids downloads. Of the surrounding build, it keeps the settings of
    guests (SCX_VM_*), the caches, and clang for BPF."""
    kept = ("SCX_VM_", "SCX_CACHE")
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CARGO_", "BPF_", "SCX_")) or name.startswith(kept)
    }
    env |= {"CARGO_NET_OFFLINE": "true", "SCX_OFFLINE": "1", "CARGO_TERM_COLOR": "never"}
    env |= SAME_FLAGS
    if "CARGO_HOME" in os.environ:
        env["CARGO_HOME"] = os.environ["CARGO_HOME"]
    if build_options["bpf_clang"]:
        env["BPF_CLANG"] = build_options["bpf_clang"]
    return env


@pytest.fixture(scope="module")
def reader(
    build_dir: Path,
    build_options: dict[str, str],
    rust_host: str,
    workplace: Path,
    target_dir: Path,
    crates_of_tarball: str,
) -> Reader:
    """A reader with a copy of the tree."""
    fetch_crates(build_options["cargo"], "--target", rust_host)
    folder = workplace / "tutorial"
    configure(folder, crates_of_tarball)
    tree, tools = folder / "scx", folder / "bin"
    copy(tree)
    (tree / "target").symlink_to(target_dir)
    provide(tools, build_options["cargo"])
    replace_dev(tree / "dev")
    env = environment(build_options)
    env["PATH"] = f"{tools}:{env['PATH']}"
    env |= {"PYTHONPATH": str(ROOT / "testbed"), "SCX_BUILD": str(build_dir)}
    return Reader(tree, env)


def need_guest() -> None:
    """Skips if no deterministic guest can be booted; kernels are not fetched."""
    if not qemu.available():
        pytest.skip(f"{qemu.PROGRAM} is missing: install qemu-system-x86")
    if not kernels.local():
        pytest.skip("no local kernel: ./dev vm kernel fetch")
    try:
        emulator.find()
    except (qemu.QemuError, debs.DebsError) as error:
        pytest.skip(str(error))


def need_linter(command: Command) -> None:
    linter = "clippy-driver" if CLIPPY in command.script else "rustfmt"
    if subprocess.run([linter, "--version"], capture_output=True).returncode:
        pytest.skip(f"needs {linter}")


def test_every_block_has_a_place() -> None:
    """A misspelt place would drop or misplace the block."""
    for block in BLOCKS:
        assert bool(block.file) == (block.language in {"rust", "toml", "c"}), block
        assert block.language in {"rust", "toml", "c", "sh", "text"}, block
    assert sorted({block.step for block in BLOCKS}) == [1, 2, 3, 4, 5]


def test_quoted_files_are_current() -> None:
    """C blocks quote files of this tree."""
    quoted = [block for block in BLOCKS if block.language == "c"]
    assert quoted
    for block in quoted:
        assert block.text == (ROOT / block.file).read_text(), block.file


def test_policy_is_short() -> None:
    policies = [b.text for b in BLOCKS if b.file.endswith("/policy.rs") and not b.at_end]
    code = [re.findall(r"^\s*[^\s/].*$", text, re.MULTILINE) for text in policies]
    assert len(code[0]) <= 30
    assert len(code[-1]) <= 55


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_command_works(reader: Reader, command: Command) -> None:
    if command.is_for_a_guest:
        need_guest()
    if command.is_lint:
        need_linter(command)
    printed = reader.run(command)
    if command.is_lint:
        assert not printed
    if command.script.startswith("cargo run"):
        assert printed.endswith(f"`\n{BLOCKS[command.nr_blocks + 1].text}")
    if command.script.startswith("cargo test"):
        assert re.search(r"^test result: ok\. [1-9]\d* passed", printed, re.MULTILINE), printed


def figures(line: str) -> dict[str, int]:
    """The figures of a line of statistics."""
    pairs = (part.split("=") for part in line.split() if "/" not in part)
    return {name: int(value) for name, value in pairs}


def test_tasks_run_as_the_policy_decides(reader: Reader) -> None:
    need_guest()
    printed = reader.run(STATISTICS)
    lines = [figures(line) for line in printed.splitlines() if line.startswith("running=")]
    assert len(lines) >= 2, printed
    # The fields are those of the example on the page.
    example = next(b.text for b in BLOCKS if b.text.startswith("running="))
    assert list(lines[0]) == list(figures(example))
    # A line has the figures of one second: in each second, the policy dispatches tasks.
    assert all(line["user"] > 0 for line in lines), printed
    assert "ejected" not in printed


def test_weights_take_effect(reader: Reader) -> None:
    """The weights are 100 and 33. The limit of 1.5 leaves a margin for chance and ticks."""
    need_guest()
    printed = reader.run(WEIGHTS)
    ran_ns = [int(ns) for ns in re.findall(r"^(\d+) \d+ \d+$", printed, re.MULTILINE)]
    assert len(ran_ns) == 2, printed
    assert ran_ns[0] > 1.5 * ran_ns[1], printed
