# SPDX-License-Identifier: GPL-2.0-only
"""Kernel messages that indicate errors, and similar messages that do not."""

from __future__ import annotations

import pytest
from vm import health

FAIR_SERVER = """\
WARNING: CPU: 1 PID: 4711 at kernel/sched/deadline.c:394 task_non_contending+0x2c1/0x330
Modules linked in:
Call Trace:
 <TASK>
 ? __warn+0x7f/0x120
 sched_cpu_dying+0x1f5/0x2a0
 _install_special_mapping+0x8d/0x120
 acpi_install_address_space_handler+0x4e/0x80
 do_debug+0x11/0x22
 </TASK>"""


@pytest.mark.parametrize(
    "line",
    [
        "BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "WARNING: CPU: 1 PID: 4711 at kernel/sched/ext.c:1234 set_next_task_scx+0x12/0x34",
        "Oops: general protection fault, probably for non-canonical address",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 2-... }",
        "sched_ext: rlfifo: watchdog failed to check in for 10.004s: runnable task stall",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s!",
        "INFO: task khungtaskd:42 blocked for more than 120 seconds.",
        "sched_ext: ops.cpu_acquire() is deprecated",
        "Call Trace:",
    ],
)
def test_errors_are_detected(line: str) -> None:
    assert health.complaints(f"fine\n[   12.345678] {line}\nfine") == [f"[   12.345678] {line}"]


def test_functions_of_a_backtrace_are_not_errors() -> None:
    warning, trace = FAIR_SERVER.splitlines()[0], "Call Trace:"
    assert health.complaints(FAIR_SERVER) == [warning, trace]
    assert health.complaints(FAIR_SERVER, [health.FAIR_SERVER_WARNING]) == []
