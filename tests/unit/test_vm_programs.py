# SPDX-License-Identifier: GPL-2.0-only
"""The agent of guests, if Meson has not built it: it is compiled once, and errors name the cure."""

from pathlib import Path

import pytest
from vm import programs
from vm.qemu import QemuError


@pytest.fixture(autouse=True)
def without_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCX_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("SCX_CACHE", str(tmp_path / "cache"))


def test_agent_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program = programs.agent()
    assert programs.is_program(program)
    monkeypatch.setenv("PATH", "")
    assert programs.agent() == program


def test_missing_compiler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(QemuError, match=r"^cannot run cc: No such file or directory: install gcc$"):
        programs.agent()


def test_failed_compilation_leaves_no_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "scx_agent.c"
    source.write_text("int main(void) { return missing; }\n")
    monkeypatch.setattr(programs, "_AGENT_SOURCE", source)
    for _ in range(2):
        with pytest.raises(QemuError, match=r"^cannot compile scx_agent\.c: .*: install gcc and"):
            programs.agent()
