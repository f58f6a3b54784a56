# SPDX-License-Identifier: GPL-2.0-only
"""What a healthy guest's kernel does not log."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Beginnings of words: the functions of a backtrace have names like _install_special_mapping().
COMPLAINTS = re.compile(
    r"\b(BUG\b|WARNING|Oops|stall|deprecat|lockup|hung task|blocked for more than|"
    r"runtime error|call trace)",
    re.IGNORECASE,
)

#: Where a CPU is taken offline, 6.12 stops that CPU's fair server, the reservation for ordinary
#: tasks (dl_server_stop() in sched_cpu_dying()), even if it is not running, and takes its bandwidth
#: off twice: task_non_contending() warns, or inactive_task_timer() within a second. It corrects the
#: sum in the same breath, so nothing else follows. Without a scheduler the CPU's own kernel threads
#: are ordinary tasks that keep the server running; with one that takes all tasks, nothing does. No
#: scheduler can help it. Later kernels only stop a server that runs.
FAIR_SERVER_SERIES = "6.12"
FAIR_SERVER_WARNING = r"WARNING: .* (task_non_contending|inactive_task_timer)\+|Call Trace:"

#: A kernel thread that is born while a scheduler is being enabled sets its own policy (kthread()),
#: comes into the class with no slice, and may be preempted at once. 7.2 then warns that the
#: scheduler does not want to hear of the last task of a CPU (SCX_OPS_ENQ_LAST), which is true of
#: most, and goes on. Seen once, with "enabling+all" in the trace; no scheduler can help it.
NEW_THREAD_SERIES = "7.2"
NEW_THREAD_WARNING = r"WARNING: .* put_prev_task_scx\+|Call Trace:"


def complaints(log: str, allowed: Sequence[str] = ()) -> list[str]:
    """Lines of a kernel log that should not be there; those of the patterns `allowed` may."""
    return [
        line
        for line in log.splitlines()
        if COMPLAINTS.search(line) and not any(re.search(pattern, line) for pattern in allowed)
    ]
