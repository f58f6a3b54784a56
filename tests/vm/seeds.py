# SPDX-License-Identifier: GPL-2.0-only
"""The table of `./dev test --seeds`: how many seeds of each test passed, and the command that
replays each failure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import pytest
from vm import topology

_SEED = re.compile(r"\bseed(\d+)-?|-seed(\d+)\b")


def without_seed(test: str) -> tuple[str, int]:
    """A test's name without its seed, and the seed."""
    found = _SEED.search(test)
    assert found, test
    name = _SEED.sub("", test).replace("-]", "]").replace("[]", "")
    return name, int(found[1] or found[2])


def again(name: str, seed: int, more: str = "") -> str:
    """A line with the command that replays a test. `more` has further options of the command."""
    return f"again: ./dev test --seeds {seed}-{seed} {more}'{name}'"


def table(passed: Iterable[str], failed: Iterable[str], more: str = "") -> list[str]:
    """A line for each test, with the number of seeds that passed; then a command for each seed that
    failed. `more` has further options of the command."""
    seeds: dict[str, dict[int, bool]] = defaultdict(dict)
    for tests, well in ((passed, True), (failed, False)):
        for test in tests:
            name, seed = without_seed(test)
            seeds[name][seed] = well
    lines = [
        f"{sum(by_seed.values()):3} of {len(by_seed):3}  {name.rpartition('/')[2]}"
        for name, by_seed in sorted(seeds.items())
    ]
    for name, by_seed in sorted(seeds.items()):
        for seed in sorted(seed for seed, well in by_seed.items() if not well):
            lines.append(again(name, seed, more))
    return lines


class Report:
    """A plugin of pytest that prints the table at the end of the session, and the command for each
    failure also when it occurs: a session may take hours, or be stopped."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager
        defaults = {"--kernel": None, "--topology": topology.DEFAULT}
        given = {name: config.getoption(name) for name in defaults}
        changed = [f"{name} {value} " for name, value in given.items() if value != defaults[name]]
        self._more = "".join(changed)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A worker of pytest-xdist has no terminal.
        terminal = self._plugins.get_plugin("terminalreporter")
        if terminal and report.failed:
            # The progress of the session does not end with a newline.
            terminal.write_line("\n" + again(*without_seed(report.nodeid), self._more))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        stats = terminalreporter.stats
        failed = {report.nodeid for key in ("failed", "error") for report in stats.get(key, [])}
        passed = {report.nodeid for report in stats.get("passed", [])} - failed
        for line in table(passed, failed, self._more):
            terminalreporter.write_line(line)
