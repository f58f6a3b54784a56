# SPDX-License-Identifier: GPL-2.0-only
"""scx_bpfland on a real kernel; more in test_deadlines.py."""

from __future__ import annotations

import pytest
from figures import Replayed, measure_all, scx_load


@pytest.mark.parametrize(
    ("options", "least", "most"), [("", 0.2, 0.7), ("--local-pcpu", 0.9, 1.01)]
)
def test_pinned_task_beside_others(
    replayed: Replayed, options: str, least: float, most: float
) -> None:
    """One hog is pinned to a CPU, and six hogs may run on any of four CPUs. All make progress. With
    --local-pcpu, the pinned hog runs before the other hogs."""
    one, six = (scx_load(f"--hogs {count} --seconds 2") for count in (1, 6))
    script = f"taskset 1 {one} & pinned=$!\n{six}\nwait $pinned"
    figures, _ = measure_all(replayed, f"scx_bpfland {options}", script)
    cpu_s = sorted((load["hogs"]["cpu_s"] for load in figures), key=len)
    print(cpu_s)
    assert least <= cpu_s[0][0] / 2 <= most
    assert min(cpu_s[1]) > 0.3
