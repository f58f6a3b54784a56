# SPDX-License-Identifier: GPL-2.0-only
"""Compares scx_rustland with the committed results, as `./dev bench --check` does for all
schedulers."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import baseline, results, rounds
from bench.measure import Place, Subject
from bench.rounds import Plan
from bench.workloads import WORKLOADS
from vm import emulator, programs
from vm.kernels import Kernel
from vm.topology import Topology

pytestmark = pytest.mark.usefixtures("fit_emulator")

SCHEDULER = "scx_rustland"
#: Few enough to be checked with each change.
CHOSEN = tuple(WORKLOADS[name] for name in ("wakeup", "spawn", "messaging", "frames"))


def test_figures_are_not_worse_than_the_results(
    kernel: Kernel, shape: Topology, build_dir: Path, seed: int
) -> None:
    place = Place(kernel, shape, build_dir / "rust")
    of_emulator = f"QEMU {emulator.find().version()}"
    try:
        known = baseline.load(results.FOLDER / results.FIGURES, place, of_emulator)
    except baseline.BaselineError as error:
        pytest.skip(str(error))
    program = programs.scheduler(build_dir, SCHEDULER)
    assert program
    plan = Plan(place, (Subject(SCHEDULER, program),), CHOSEN, baseline.seeds_of_check(seed))
    # Run one guest at a time, so that the guests of other tests, which run in parallel, are not
    # slowed down.
    found = rounds.run(plan, jobs=1)
    assert not found.errors()
    verdicts = baseline.judge(found, known, [SCHEDULER], CHOSEN)
    print(*(verdict.text() for verdict in verdicts), sep="\n")
    # Each workload has figures of its own, and three of the scheduler's process.
    assert len(verdicts) > 4 * len(CHOSEN)
    assert not [verdict.text() for verdict in verdicts if verdict.is_worse]
