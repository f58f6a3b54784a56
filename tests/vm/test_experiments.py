# SPDX-License-Identifier: GPL-2.0-only
"""The figures of the experiments in docs/experiments are as expected, with every seed. The tests
use the scripts and checks of `./dev experiment`, in deterministic guests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from experiments import checks, fifo_rr
from vm import topology
from vm.topology import Topology

Replayed = Callable[[Topology, str], str]


@pytest.mark.parametrize("slice_ms", fifo_rr.SLICES_MS)
def test_fifo_and_round_robin(replayed_on: Replayed, slice_ms: int) -> None:
    """With three and with six tasks, a turn lasts for at least a slice, and at most two ticks
    longer. The guest with the shortest slice also shows that tasks of nice -5 run to completion,
    and that a task that is alone gets further slices."""
    printed = replayed_on(topology.find(fifo_rr.SHAPE), fifo_rr.script(slice_ms))
    found = list(checks.checks(fifo_rr.read(printed, slice_ms)))
    print(*(check.text() for check in found), sep="\n")
    assert found
    assert [check.text() for check in found if not check.is_met] == []


def test_no_migration(replayed_on: Replayed) -> None:
    shape = topology.find(fifo_rr.SHAPE_OF_MOVES)
    check = checks.check_moves(fifo_rr.read_moves(replayed_on(shape, fifo_rr.script_of_moves())))
    print(check.text())
    assert check.is_met, check.text()
