# SPDX-License-Identifier: GPL-2.0-only
"""Compares scx_rustland with the committed baseline (testbed/bench/baseline.json), which
`./dev bench --renew` measures."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import baseline, rounds
from bench.measure import Place
from vm import emulator, programs
from vm.kernels import Kernel
from vm.topology import Topology

pytestmark = pytest.mark.usefixtures("fit_emulator")


def test_figures_are_not_worse_than_the_baseline(
    kernel: Kernel, shape: Topology, build_dir: Path, seed: int
) -> None:
    try:
        known = baseline.load(baseline.key(kernel.release, f"QEMU {emulator.find().version()}"))
    except baseline.BaselineError as error:
        pytest.skip(str(error))
    program = programs.scheduler(build_dir, baseline.SCHEDULER)
    assert program
    place = Place(kernel, shape, build_dir / "rust")
    # Run one guest at a time, so that the guests of other tests, which run in parallel, are not
    # slowed down.
    results = rounds.run(baseline.plan(place, program, baseline.seeds_of_check(seed)), jobs=1)
    assert not results.errors()
    verdicts = baseline.judge(results, known)
    print(*(verdict.text() for verdict in verdicts), sep="\n")
    assert not [verdict.text() for verdict in verdicts if verdict.is_worse]
