# SPDX-License-Identifier: GPL-2.0-only
"""Preemption on wakeup by scx_preempts_at_once() of <scx/preempt.bpf.h>, in a deterministic
guest."""

from __future__ import annotations

import re
from collections.abc import Callable

SCHEDULERS = ("scx_bpfland", "scx_economy", "scx_flash", "scx_lavd", "scx_rusty")

#: Prints the numbers of the kernel's IRQ work interrupts and of re-enqueued tasks, before and after
#: half a second of a load: first with one task that sleeps for 5 ms at a time, then with 16 such
#: tasks. There are twice as many hogs as CPUs.
ROUND = """
NAME & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
count() {
    grep IWI: /proc/interrupts
    grep -w SCX_EV_REENQ_IMMED /sys/kernel/sched_ext/root/events
}
for sleepers in 1 16; do
    scx_load --hogs 8 --sleepers $sleepers --sleep-us 5000 --work-us 0 --pipes 0 --forks-per-s 0 \
        --seconds 60 >/dev/null & load=$!
    sleep 0.5
    count
    sleep 0.5
    count
    kill -INT $load
    wait $load
done
kill -INT $scheduler
wait $scheduler
"""


def test_wakees_preempt_at_once(replayed: Callable[[str], str]) -> None:
    """A wakee that preempts the hog of its CPU needs no IRQ work interrupt. With
    scx_bpf_kick_cpu(), each of the 100 wakeups of the one sleeper would raise one. If two wakees
    preempt the same CPU at the same time, the kernel re-enqueues them. This happens on less than a
    tenth of the 1600 wakeups of the 16 sleepers."""
    printed = replayed("".join(ROUND.replace("NAME", name) for name in SCHEDULERS))
    interrupts = [
        sum(map(int, re.findall(r"\d+", line))) for line in re.findall(r"IWI:([ \d]+)", printed)
    ]
    enqueued_again = [int(count) for count in re.findall(r"REENQ_IMMED (\d+)", printed)]
    for index, name in enumerate(SCHEDULERS):
        before, after = interrupts[4 * index : 4 * index + 2]
        first, last = enqueued_again[4 * index + 2 : 4 * index + 4]
        print(name, after - before, last - first)
        assert after - before < 50, name
        assert last - first < 160, name
