# SPDX-License-Identifier: GPL-2.0-only
"""The kernels of a test run."""

from __future__ import annotations

from pathlib import Path

import pytest
from vm import choice, kernel_build
from vm.choice import ChoiceError, choose

TESTED = ["7.2", "6.17", "6.12"]
LISTED = Path(__file__).parents[1] / "vm/kernels.txt"


def none(_: str) -> bool:
    """No kernel has to be built, because every kernel is cached or in the archive."""
    return False


@pytest.mark.parametrize(
    ("to_build", "chosen"),
    [
        ([], ["7.2", "6.12"]),
        (["6.12"], ["7.2", "6.17"]),
        (["6.17", "6.12"], ["7.2"]),
        (TESTED, ["7.2"]),
    ],
)
def test_default_builds_nothing(to_build: list[str], chosen: list[str]) -> None:
    assert choose("default", TESTED, to_build.__contains__) == chosen


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("all", TESTED),
        ("6.12", ["6.12"]),
        ("6.12,7.2", ["7.2", "6.12"]),
        ("7.2,7.2", ["7.2"]),
    ],
)
def test_kernels_by_name(wanted: str, chosen: list[str]) -> None:
    assert choose(wanted, TESTED, none) == chosen


@pytest.mark.parametrize("wanted", ["6.1", "7.2,6.1", "", ",", "7.2,", "All", "7.2 6.12"])
def test_other_kernels_are_an_error(wanted: str) -> None:
    with pytest.raises(ChoiceError, match="is not tested: give all, default, or some of 7.2, 6.17"):
        choose(wanted, TESTED, none)


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        (["6.17-smp4"], ["6.17"]),
        (["scx:6.12-numa", "7.2-1cpu"], ["7.2", "6.12"]),
        (["--suite", "kernel-6.17"], ["6.17"]),
        (["--suite", "topologies-6.17"], ["6.17"]),
        (["--suite=unit", "python", "6.1"], ["7.2", "6.12"]),
        (["--suite", "vm"], ["7.2", "6.12"]),
    ],
)
def test_named_tests_decide(arguments: list[str], chosen: list[str]) -> None:
    assert choose("default", TESTED, none, arguments) == chosen


def test_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SCX_CACHE", str(tmp_path))
    monkeypatch.delenv("SCX_VM_KERNELS", raising=False)
    assert choice.main([str(LISTED), "default"]) == 0
    assert capsys.readouterr().out == "7.2\n6.17\n"
    assert choice.main([str(LISTED), "5.4"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("dev: --kernels 5.4: '5.4' is not tested")


def test_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCX_VM_KERNELS", "/nonexistent")
    assert choice.main([str(LISTED), "default"]) == 1
    assert capsys.readouterr().err.endswith("SCX_VM_KERNELS: /nonexistent is not a directory\n")


def test_each_tested_kernel_is_available() -> None:
    """6.12 is built from source: Debian ships it without sched_ext."""
    assert LISTED.read_text().split() == TESTED
    assert list(kernel_build.SUITES) == ["6.12"]
