# SPDX-License-Identifier: GPL-2.0-only
"""Shared by all Python tests: the TAP report, and the programs under test."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

#: See FailureTime.
FAILED_MAX_S = 1500.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tap", action="store_true", help="report in the Test Anything Protocol")


def _plain(text: str) -> str:
    """`text` with `?` in place of characters that are special in TAP or not printable."""
    return "".join(c if c.isprintable() and c not in "#\\" else "?" for c in text)


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    return _plain(str(text))


def _cause(report: pytest.TestReport) -> str:
    """Why a test failed, in one line: the beginning of the exception's message."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).splitlines()
    return _plain("; ".join(line.strip() for line in lines[:3] if line.strip()))[:300]


class TapReport:
    """Prints a test point of TAP for each finished test, with the cause of a failure, and for each
    file that cannot be collected. The test's duration and the full error follow as diagnostics."""

    def __init__(self) -> None:
        self.number = 0
        self.phases: list[pytest.TestReport] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        # If the run is killed, this is the only trace of the test.
        print(f"# begins: {_plain(nodeid.split('/')[-1])}", flush=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.phases.append(report)
        # The teardown is the last phase, and can still fail a test.
        if report.when == "teardown":
            self._print_test(self.phases)
            self.phases = []

    def _print_test(self, phases: list[pytest.TestReport]) -> None:
        self.number += 1
        failed = [phase for phase in phases if phase.failed]
        skipped = [phase for phase in phases if phase.skipped]
        name = _plain(phases[0].nodeid.split("/")[-1])
        note = "".join(f": {_cause(phase)}" for phase in failed)
        if skipped and not failed:
            note = f" # SKIP {_reason(skipped[0])}"
        print(f"{'not ok' if failed else 'ok'} {self.number} - {name}{note}", flush=True)
        # From these lines, build-aux/summary.py determines the slowest tests.
        print(f"# took {sum(phase.duration for phase in phases):.2f} s", flush=True)
        for phase in failed:
            for line in phase.longreprtext.splitlines():
                print(f"# {line}")

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        # Also called if FailureTime ends the run.
        print(f"Bail out! {_plain(str(excinfo.value)) or 'interrupted'}", flush=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.number += 1
            print(f"not ok {self.number} - collecting {report.nodeid}")
            for line in report.longreprtext.splitlines():
                print(f"# {line}")

    def pytest_sessionfinish(self) -> None:
        print(f"1..{self.number}", flush=True)


class FailureTime:
    """Ends the run when failed tests have taken more than FAILED_MAX_S together. If a guest or the
    machine is broken, each of many tests may fail only at its timeout, and the run would take
    hours. This class has no effect with pytest-xdist (`./dev test --seeds`), where each failure is
    printed when it occurs."""

    def __init__(self) -> None:
        self.failed_s = 0.0
        self.session: pytest.Session | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed_s += report.duration
        if self.session and self.failed_s > FAILED_MAX_S:
            self.session.shouldstop = f"failed tests took {self.failed_s:.0f} s"


# This hook runs last, so that pytest's own report exists and can be replaced.
@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FailureTime(), "failure-time")
    if config.getoption("--tap"):
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(TapReport(), "tap")


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Meson's build directory: $SCX_BUILD, or else `build` in this tree."""
    path = Path(os.environ.get("SCX_BUILD") or Path(__file__).parents[1] / "build")
    if not (path / "scheds").is_dir():
        pytest.skip(f"nothing is built in {path}: run ./dev build")
    return path


@pytest.fixture(scope="session")
def build_options(build_dir: Path) -> dict[str, str]:
    """Meson's options of the build."""
    if not shutil.which("meson"):
        pytest.skip("needs meson")
    command = ["meson", "introspect", "--buildoptions", str(build_dir)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return {option["name"]: option["value"] for option in json.loads(done.stdout)}


@pytest.fixture(scope="session")
def rust_programs(build_dir: Path, build_options: dict[str, str]) -> Path:
    """The directory of the Rust programs."""
    if not build_options["enable_rust"]:
        pytest.skip("built without the Rust programs")
    return build_dir / "rust"


@pytest.fixture(scope="session")
def rust_host(build_options: dict[str, str]) -> str:
    """The target triple of this machine."""
    if not shutil.which(build_options["cargo"]):
        pytest.skip("needs cargo")
    command = [build_options["cargo"], "--version", "--verbose"]
    about = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return re.findall(r"^host: (.+)$", about, re.MULTILINE)[0]
