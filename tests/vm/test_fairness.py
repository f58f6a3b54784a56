# SPDX-License-Identifier: GPL-2.0-only
"""Tasks of equal weight get equal shares of the CPUs, in deterministic guests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

#: Six hogs on four CPUs, so that tasks wait. The hogs cannot be divided equally among the CPUs.
SCRIPT = """
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
scx_load --hogs 6 --sleepers 0 --pipes 0 --forks-per-s 0 --seconds 5 --json
kill -INT $scheduler
wait $scheduler
"""


@pytest.mark.parametrize(
    "scheduler",
    [
        "scx_bpfland",
        "scx_economy",
        "scx_flash",
        "scx_lavd",
        "scx_nest",
        "scx_prev",
        "scx_rustland",
        "scx_simple",
    ],
)
def test_equal_hogs_get_equal_shares(replayed: Callable[[str], str], scheduler: str) -> None:
    """In 5 s, each hog gets at least 0.97 of the CPU time of any other hog."""
    printed = replayed(SCRIPT.replace("SCHEDULER", scheduler))
    (figures,) = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    cpu_s = json.loads(figures)["hogs"]["cpu_s"]
    print(cpu_s)
    assert min(cpu_s) >= 0.97 * max(cpu_s)
