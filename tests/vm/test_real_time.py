# SPDX-License-Identifier: GPL-2.0-only
"""Tasks of a scheduler beside a real-time task, which takes their CPU."""

from __future__ import annotations

import signal

import pytest
from loads import QUIET, share_min, shares_beside_real_time
from sched_ext import Load, Start
from vm.guest import Guest
from vm.kernels import Kernel

#: Schedulers that have no ops.cpu_release(): their tasks leave a CPU only since SCX_ENQ_IMMED.
SINCE_IMMED = ["scx_central", "scx_fifo", "scx_flatcg", "scx_nest", "scx_simple"]
IMMED_SINCE = (7, 2)

ALWAYS = ["scx_bpfland", "scx_flash", "scx_lavd", "scx_rlfifo", "scx_rustland", "scx_rusty"]


@pytest.mark.parametrize("scheduler", [*ALWAYS, *SINCE_IMMED])
def test_tasks_leave_a_cpu_with_a_real_time_task(
    guest: Guest, kernel: Kernel, start: Start, load: Load, icount: bool, scheduler: str
) -> None:
    """A task that the real-time task preempts continues on another CPU."""
    if scheduler in SINCE_IMMED and kernel.version < IMMED_SINCE:
        pytest.skip("the kernel has no SCX_ENQ_IMMED")
    nr_cpus = len(guest.topology.online)
    process = start(scheduler).wait_enabled()
    hogs = load("--hogs", str(nr_cpus - 1), *QUIET, "--seconds", "3600", "--json")
    assert shares_beside_real_time(guest, [(hogs, nr_cpus - 1)])[0] > share_min(icount)
    assert process.end(signal.SIGINT) == 0
