# SPDX-License-Identifier: GPL-2.0-only
"""Scripts that measure in a deterministic guest how CPU time is shared between cgroups, and a
function that computes the shares from the output of such a script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod

#: Shell functions for a tree of cgroups. All paths are relative to the root cgroup.
FUNCTIONS = """
cd /sys/fs/cgroup
echo +cpu >cgroup.subtree_control
start() {
    "$@" >/dev/null & scheduler=$!
    until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
}
stop() {
    cat /sys/kernel/sched_ext/state
    kill -INT $scheduler
    wait $scheduler
}
# group PATH WEIGHT
group() {
    case $1 in */*) echo +cpu >${1%/*}/cgroup.subtree_control ;; esac
    mkdir $1
    echo $2 >$1/cpu.weight
}
# hogs PATH NUMBER
hogs() {
    for number in $(seq $2); do
        sh -c "echo 0 >$1/cgroup.procs; exec scx_spin" &
    done
}
# end PATH...: kills the hogs. A killed hog counts as runnable until it has run and exited.
end() {
    for path in $*; do echo 1 >$path/cgroup.kill; done
    for path in $*; do
        while grep -q "populated 1" $path/cgroup.events; do sleep 0.1; done
    done
}
used() {
    for path in $*; do
        echo "used $path $(sed -n 's/usage_usec //p' $path/cpu.stat)"
    done
}
# share SECONDS NAME PATH...: what each of these cgroups uses within this time
share() {
    seconds=$1; name=$2; shift 2
    echo "stage $name"
    used $*; sleep $seconds; used $*
}
"""

#: A cgroup's path, relative to the root → its weight. A parent precedes its children.
Tree = Mapping[str, int]


def leaves(tree: Tree) -> list[str]:
    return [path for path in tree if not any(other.startswith(path + "/") for other in tree)]


def ideal(tree: Tree, active: Iterable[str]) -> dict[str, float]:
    """The share of each active leaf by weight alone, as if each leaf could use all CPUs."""

    def above(path: str) -> list[str]:
        names = path.split("/")
        return ["/".join(names[:depth]) for depth in range(1, len(names) + 1)]

    alive = {path for leaf in active for path in above(leaf)}

    def part(path: str) -> float:
        parent = path.rpartition("/")[0]
        siblings = [other for other in alive if other.rpartition("/")[0] == parent]
        return tree[path] / sum(tree[other] for other in siblings)

    return {leaf: prod(part(path) for path in above(leaf)) for leaf in active}


def create(tree: Tree) -> str:
    """Commands that create the tree."""
    return "\n".join(f"group {path} {weight}" for path, weight in tree.items())


def two_cgroups(scheduler: str) -> str:
    """A script in which two cgroups share the machine in the stage "both": "light" with a weight of
    100, and "heavy" with a weight of 300. Each has three hogs."""
    tree = {"light": 100, "heavy": 300}
    hogs = [f"hogs {path} 3" for path in tree]
    stage = ["sleep 1", f"share 4 both {' '.join(tree)}", "stop"]
    return "\n".join([FUNCTIONS, create(tree), f"start {scheduler}", *hogs, *stage])


def results(printed: str) -> dict[str, dict[str, float]]:
    """By stage and by path of a cgroup, the cgroup's share of the CPU time that all cgroups of the
    stage have used."""
    found: dict[str, dict[str, float]] = {}
    for stage, _, lines in (text.partition("\n") for text in printed.split("stage ")[1:]):
        used = re.findall(r"^used (\S+) (\d+)$", lines, re.MULTILINE)
        before, after = dict(used[: len(used) // 2]), dict(used[len(used) // 2 :])
        spent = {path: int(after[path]) - int(before[path]) for path in before}
        found[stage] = {path: us / sum(spent.values()) for path, us in spent.items()}
    return found
