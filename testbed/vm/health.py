# SPDX-License-Identifier: GPL-2.0-only
"""Kernel messages that indicate an error."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Matched at the start of a word, because names in backtraces, such as _install_special_mapping(),
#: contain "stall".
COMPLAINTS = re.compile(
    r"\b(BUG\b|WARNING|Oops|stall|deprecat|lockup|hung task|blocked for more than|"
    r"runtime error|call trace)",
    re.IGNORECASE,
)

#: When a CPU goes offline, 6.12 stops the CPU's fair server (the deadline server for fair tasks) in
#: sched_cpu_dying(), even if the server is not running. The server's bandwidth is then subtracted
#: from dl_rq->running_bw twice, and task_non_contending() warns, or inactive_task_timer() within a
#: second. The kernel resets running_bw on this underflow, so there are no further effects. If no
#: sched_ext scheduler is loaded, the CPU's fair kernel threads keep the server running. If a
#: scheduler takes all tasks, there are no fair tasks, and the scheduler cannot avoid the warning.
#: Later kernels stop the server only if it is running.
FAIR_SERVER_SERIES = "6.12"
FAIR_SERVER_WARNING = r"WARNING: .* (task_non_contending|inactive_task_timer)\+|Call Trace:"

#: A kernel thread that is created while a scheduler is being enabled sets its own policy
#: (kthread()), enters the ext class without a slice, and may be preempted at once. 7.2 then warns
#: that the scheduler lacks SCX_OPS_ENQ_LAST, which most schedulers lack. The warning was seen once,
#: with "enabling+all" in the trace. A scheduler cannot avoid it.
NEW_THREAD_SERIES = "7.2"
NEW_THREAD_WARNING = r"WARNING: .* put_prev_task_scx\+|Call Trace:"


def complaints(log: str, allowed: Sequence[str] = ()) -> list[str]:
    """Lines of a kernel log that indicate errors, except those that match `allowed`."""
    return [
        line
        for line in log.splitlines()
        if COMPLAINTS.search(line) and not any(re.search(pattern, line) for pattern in allowed)
    ]
