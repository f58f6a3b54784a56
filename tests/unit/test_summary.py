# SPDX-License-Identifier: GPL-2.0-only
"""build-aux/summary.py: the summary of `./dev test`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUMMARY = Path(__file__).parents[2] / "build-aux/summary.py"
#: What Meson writes for a suite with two test points that passed.
JUNIT = """<testsuites><testsuite name="scx.vm">
<testcase name="1 - test_a" /><testcase name="2 - test_b" />
</testsuite></testsuites>"""
PASSED = "# begins: test_a\nok 1 - test_a\n# took 1.00 s\n# begins: test_b\nok 2 - test_b\n"


def summary(folder: Path, result: str, output: str) -> tuple[int, list[str]]:
    """The exit status of the summary of one suite, and its last two lines."""
    (folder / "testlog.junit.xml").write_text(JUNIT)
    run = {"name": "scx:vm / 7.2-smp4", "result": result, "duration": 3600.2, "stdout": output}
    (folder / "testlog.json").write_text(json.dumps(run) + "\n")
    command = [sys.executable, SUMMARY, folder / "testlog.junit.xml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines()[-2:]


def test_passed_tests_are_counted(tmp_path: Path) -> None:
    status, lines = summary(tmp_path, "OK", PASSED)
    assert (status, lines[-1]) == (0, "2 passed, 0 failed, 0 skipped")


def test_failed_test_is_no_unfinished_suite(tmp_path: Path) -> None:
    """The result of the suite is ERROR, because its exit status is not 0."""
    _, lines = summary(tmp_path, "ERROR", PASSED + "# begins: test_c\nnot ok 3 - test_c\n1..3\n")
    assert lines[-1] == "2 passed, 0 failed, 0 skipped"
    _, lines = summary(tmp_path, "ERROR", PASSED + "not ok 3 - test_c\nBail out! x\n1..3\n")
    assert lines[-1] == "2 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize("result", ["TIMEOUT", "INTERRUPT", "ERROR"])
@pytest.mark.parametrize(
    ("more", "where"), [("# begins: test_c\n", "in test_c"), ("", "outside its tests")]
)
def test_unfinished_suite_fails(tmp_path: Path, result: str, more: str, where: str) -> None:
    """Meson reports only the test points that the suite has printed."""
    status, lines = summary(tmp_path, result, PASSED + more)
    assert status == 1
    assert lines == [
        f"FAILED: scx:vm / 7.2-smp4: {result} after 3600 s, {where}",
        "2 passed, 1 failed, 0 skipped",
    ]
