# SPDX-License-Identifier: GPL-2.0-only
"""What each scheduler lacks on this kernel, and what its verification costs: docs/kernels.md."""

from __future__ import annotations

import os
import re
import signal

import kernel_table
import pytest
from sched_ext import Scheduler, Start
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS
from vm.guest import Guest

#: The environment variable that makes the test write the tables instead of comparing them.
RENEW = "SCX_RENEW_KERNELS"

#: The cell of a cost is written again only if the number of instructions has changed by more than
#: this fraction of the old number.
CHANGE = 0.2
#: Maximum cost relative to the table. The programs of the table may have been built by another
#: compiler.
MOST = 2


def missing(scheduler: Scheduler) -> str:
    """The cell of the table of features: the messages about what the kernel lacks, without the name
    of the program, or "all" (all features) if the scheduler has printed no such message."""
    said = re.findall(r"^scx_\w+: (this kernel .*)$", scheduler.process.stderr(), re.MULTILINE)
    return "; ".join(said) or "all"


def verified_insns(guest: Guest, scheduler: Scheduler) -> int:
    """How many instructions the verifier has processed in all programs of the scheduler."""
    script = f"cat /proc/{scheduler.process.pid}/fdinfo/* 2>/dev/null; true"
    printed = guest.run(script).check().stdout
    # Count each program id once, because the process may have two descriptors of a program.
    programs = re.findall(r"^prog_id:\s*(\d+).*?^verified_insns:\s*(\d+)", printed, re.M | re.S)
    assert programs, printed
    return sum(int(count) for count in dict(programs).values())


@pytest.mark.parametrize("program", C_SCHEDULERS + RUST_SCHEDULERS)
def test_tables_are_up_to_date(guest: Guest, start: Start, program: str) -> None:
    features, costs = kernel_table.read()
    series = next((s for s in features.series if guest.kernel.release.startswith(s + ".")), None)
    if series is None:
        pytest.skip(f"the tables have no column for {guest.kernel.release}")
    scheduler = start(program).wait_enabled()
    cost, lacks = verified_insns(guest, scheduler), missing(scheduler)
    assert scheduler.end(signal.SIGINT) == 0
    told = costs.cells.get(program, {}).get(series, "")
    before = int(told.replace(" ", "") or 0)
    print(lacks, cost, before)
    if os.environ.get(RENEW):
        features.cells.setdefault(program, {})[series] = lacks
        if abs(cost - before) > CHANGE * before:
            costs.cells.setdefault(program, {})[series] = f"{cost:,}".replace(",", " ")
        kernel_table.write([features, costs])
        return
    assert program in features.cells, f"docs/kernels.md has no row of {program}: set {RENEW}=1"
    assert features.cells[program][series] == lacks
    assert cost <= MOST * before
