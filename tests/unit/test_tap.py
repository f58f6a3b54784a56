# SPDX-License-Identifier: GPL-2.0-only
"""The TAP report: one test point for each test, with the cause of a failure."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """
import pytest

@pytest.fixture
def broken_setup():
    raise RuntimeError("at the beginning")

@pytest.fixture
def broken_teardown():
    yield
    raise RuntimeError("at the end")

def test_passes(): pass
def test_fails(): assert False, "in between"
def test_is_skipped(): pytest.skip("for # a reason")
def test_never_starts(broken_setup): pass
def test_ends_badly(broken_teardown): pass
def test_fails_and_ends_badly(broken_teardown): assert False, "in between"
"""


def test_every_test_is_reported_once(tmp_path: Path) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--tap", "-p", "no:cacheprovider", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if not line.startswith("# ")] == [
        "ok 1 - test_it.py::test_passes",
        "not ok 2 - test_it.py::test_fails: AssertionError: in between; assert False",
        "ok 3 - test_it.py::test_is_skipped # SKIP Skipped: for ? a reason",
        "not ok 4 - test_it.py::test_never_starts: RuntimeError: at the beginning",
        "not ok 5 - test_it.py::test_ends_badly: RuntimeError: at the end",
        "not ok 6 - test_it.py::test_fails_and_ends_badly: AssertionError: in between; "
        "assert False: RuntimeError: at the end",
        "1..6",
    ]
    for text in ("in between", "at the beginning", "at the end"):
        assert text in done.stdout
    begun = [line.partition("::")[2] for line in done.stdout.splitlines() if "begins" in line]
    assert begun == re.findall(r"def (test_\w+)", TESTS)


HANGS = """
import threading

def test_hangs(): threading.Event().wait()
def test_passes(): pass
"""


def test_test_that_hangs_fails(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    pytest.importorskip("pytest_timeout")
    # Longer than the waits of testbed/vm/guest.py.
    assert float(pytestconfig.getini("timeout")) > 600
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_it.py").write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "--tap", "-p", "no:cacheprovider", tmp_path]
    done = subprocess.run([*command, "--timeout=1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    hung, passed = re.findall("^(?:not )?ok .*$", done.stdout, re.MULTILINE)
    assert hung.startswith("not ok 1 - test_it.py::test_hangs: Failed: Timeout")
    assert passed == "ok 2 - test_it.py::test_passes"
    # The report has the line in which the test hangs.
    assert "threading.Event().wait()" in done.stdout


SLOW_FAILURES = """
import time
import pytest

@pytest.mark.parametrize("number", range(5))
def test_fails_late(number):
    time.sleep(0.4)
    assert False
"""


def test_run_ends_after_slow_failures(tmp_path: Path) -> None:
    limit = "FAILED_MAX_S = 1500.0"
    text = CONFTEST.read_text()
    assert limit in text
    (tmp_path / "conftest.py").write_text(text.replace(limit, "FAILED_MAX_S = 1.0"))
    (tmp_path / "test_it.py").write_text(SLOW_FAILURES)
    command = [sys.executable, "-m", "pytest", "--tap", "-p", "no:cacheprovider", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    failed = re.findall("^not ok .*$", done.stdout, re.MULTILINE)
    assert 1 <= len(failed) < 5
    assert re.search("^Bail out! failed tests took [0-9]+ s$", done.stdout, re.MULTILINE)
    assert done.stdout.endswith(f"1..{len(failed)}\n")
