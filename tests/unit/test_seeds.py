# SPDX-License-Identifier: GPL-2.0-only
"""The table of `./dev test --seeds`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "vm"))
import seeds  # noqa: E402

pytest_plugins = ["pytester"]

SHARES = "tests/vm/test_scx_rusty.py::test_shares"


def test_each_test_has_a_line_and_each_failure_its_command() -> None:
    passed = [f"{SHARES}[seed1]", f"{SHARES}[seed3]", "tests/vm/test_x.py::test_y[numa-seed1]"]
    assert seeds.table(passed, [f"{SHARES}[seed2]"], "--kernel 6.17 ") == [
        "  2 of   3  test_scx_rusty.py::test_shares",
        "  1 of   1  test_x.py::test_y[numa]",
        f"again: ./dev test --seeds 2-2 --kernel 6.17 '{SHARES}'",
    ]


def test_seed_is_removed_from_the_name() -> None:
    assert seeds.without_seed("a.py::b[seed12]") == ("a.py::b", 12)
    assert seeds.without_seed("a.py::b[one heavy-seed3]") == ("a.py::b[one heavy]", 3)
    assert seeds.without_seed("a.py::b[seed17-0-alone]") == ("a.py::b[0-alone]", 17)


def test_failure_is_reported_when_it_occurs(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import seeds

        def pytest_addoption(parser):
            parser.addoption("--kernel")
            parser.addoption("--topology", default=seeds.topology.DEFAULT)

        def pytest_configure(config):
            config.pluginmanager.register(seeds.Report(config))
        """
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("seed", [1, 2, 3], ids="seed{}".format)
        def test_odd(seed):
            assert seed % 2
        """
    )
    lines = pytester.runpytest("-q", "-p", "no:cacheprovider").outlines
    again = [at for at, line in enumerate(lines) if line.startswith("again: ")]
    assert len(again) == 2
    assert lines[again[0]].startswith("again: ./dev test --seeds 2-2 ")
    # The first of the two lines "again" is printed before the third test has passed.
    assert lines[again[0] + 1].startswith(".")
