# SPDX-License-Identifier: GPL-2.0-only
"""Who gets how much of a CPU that is shared: hogs with nice values, as the kernel accounts them, in
a guest whose time is its own. Where an emulated CPU may halt for half a second, it is chance whose
half second that was."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

#: Weights of nice 0 and nice 5 (p->scx.weight), one divided by the other.
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
    """CPU time in s of hogs with these nice values that share CPU 0, in the same few seconds.
    `elsewhere` is started before them."""
    script = SCRIPT.replace("HOG", HOG).replace("SCHEDULER", scheduler)
    script = script.replace("ELSEWHERE", elsewhere).replace("NICES", " ".join(map(str, nices)))
    printed = replayed(script)
    assert "enabled" in printed.splitlines(), printed
    used_s = [
        sum(map(int, line.split())) / 1e9 for line in re.findall(r"^[\d ]+$", printed, re.MULTILINE)
    ]
    before_s, after_s = used_s[: len(nices)], used_s[len(nices) :]
    return [after - before for after, before in zip(after_s, before_s, strict=True)]
