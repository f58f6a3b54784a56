# SPDX-License-Identifier: GPL-2.0-only
"""A short run of `./dev soak`, in its own guest."""

from __future__ import annotations

from pathlib import Path

import pytest
from soak import soak
from soak.__main__ import setup_of
from vm.kernels import Kernel
from vm.topology import Topology

pytestmark = pytest.mark.once

SECONDS = 30.0


@pytest.mark.parametrize("scheduler", ["scx_rustland"])
def test_scheduler_survives_half_a_minute_of_soak(
    kernel: Kernel, shape: Topology, build_dir: Path, scheduler: str
) -> None:
    setup = setup_of(build_dir, scheduler, (), kernel, shape, 1, SECONDS)
    verdict = soak.run(setup, print)
    assert verdict.faults == []
    # The minimum is low, because on a busy host the guest completes fewer actions in this time.
    assert verdict.nr_actions >= 3
