# SPDX-License-Identifier: GPL-2.0-only
"""How hogs of several nice values share a CPU: their CPU times, as accounted by the kernel, in a
deterministic guest. In other guests, the host may halt a CPU for half a second, which distorts the
shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

#: The weight of nice 0 divided by the weight of nice 5 (p->scx.weight).
NICE_0_TO_5 = 100 / 33

HOG = "scx_load --hogs 1 --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null"

SCRIPT = """
SCHEDULER >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
ELSEWHERE
hogs=
for nice in NICES; do
    nice -n $nice taskset 1 HOG & hogs="$hogs $!"
done
sleep 0.2
used() {
    for hog in $hogs; do
        cut -d " " -f 1 /proc/$hog/task/*/schedstat | tr "\\n" " "
        echo
    done
}
used
sleep 2
used
# The kernel's own scheduler shares by weight too.
cat /sys/kernel/sched_ext/state
kill -INT $scheduler
wait $scheduler
"""


def shares(
    replayed: Callable[[str], str],
    scheduler: str,
    nices: Sequence[int],
    elsewhere: str = "",
) -> list[float]:
    """The CPU time of each hog in s. The hogs have these nice values and share CPU 0 for about two
    seconds. `elsewhere` is a command that is started before the hogs."""
    script = SCRIPT.replace("HOG", HOG).replace("SCHEDULER", scheduler)
    script = script.replace("ELSEWHERE", elsewhere).replace("NICES", " ".join(map(str, nices)))
    printed = replayed(script)
    assert "enabled" in printed.splitlines(), printed
    used_s = [
        sum(map(int, line.split())) / 1e9 for line in re.findall(r"^[\d ]+$", printed, re.MULTILINE)
    ]
    before_s, after_s = used_s[: len(nices)], used_s[len(nices) :]
    return [after - before for after, before in zip(after_s, before_s, strict=True)]
