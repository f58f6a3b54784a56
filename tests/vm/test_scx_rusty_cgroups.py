# SPDX-License-Identifier: GPL-2.0-only
"""With scx_rusty --cgroups, cgroups share the machine by their weights (deterministic guests)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cgroups import FUNCTIONS, create, ideal, results, two_cgroups

Shares = dict[str, dict[str, float]]


def run(replayed: Callable[[str], str], *commands: str) -> Shares:
    found = results(replayed("\n".join([FUNCTIONS, *commands, "stop"])))
    print(found)
    return found


def test_weights_of_cgroups_are_an_option(replayed: Callable[[str], str]) -> None:
    both = results(replayed(two_cgroups("scx_rusty --cgroups")))["both"]
    plain = results(replayed(two_cgroups("scx_rusty")))["both"]
    print(both, plain)
    assert both["heavy"] / both["light"] == pytest.approx(3, rel=0.05)
    assert plain["heavy"] / plain["light"] == pytest.approx(1, rel=0.05)


def test_weights_count_at_every_level(replayed: Callable[[str], str]) -> None:
    """A weight is that of a whole cgroup, so the number of tasks in the cgroup does not count."""
    tree = {"a": 100, "a/x": 100, "a/y": 300, "b": 100}
    leaves = {"a/x": 4, "a/y": 3, "b": 8}
    hogs = [f"hogs {path} {number}" for path, number in leaves.items()]
    stage = ["sleep 1", f"share 4 tree {' '.join(leaves)}"]
    found = run(replayed, create(tree), "start scx_rusty --cgroups", *hogs, *stage)
    assert found["tree"] == pytest.approx(ideal(tree, leaves), rel=0.05)


#: Creates and removes a cgroup again and again, with processes that fork in it.
CHURN = """
(while :; do
    group churn 100
    sh -c "echo 0 >churn/cgroup.procs; (:); (:)"
    rmdir churn
done) & churn=$!
"""


def test_changes_under_load_take_effect(replayed: Callable[[str], str]) -> None:
    """Changes the weight of a cgroup, moves a task, and creates and removes cgroups."""
    tree = {"one": 100, "two": 200}
    commands = [create(tree), "start scx_rusty --cgroups", "hogs one 4", "hogs two 4", "sleep 1"]
    commands += ["share 3 equal one two"]
    commands += ["echo $(head -n 1 two/cgroup.procs) >one/cgroup.procs", "sleep 0.5"]
    commands += ["share 3 moved one two"]
    commands += ["group three 300", "hogs three 4", "sleep 1", "share 3 three one two three"]
    commands += ["end three", "rmdir three", "sleep 0.5", "share 3 removed one two"]
    commands += ["echo 50 >two/cpu.weight", "sleep 0.5", "share 3 changed one two"]
    commands += ["echo 200 >two/cpu.weight", CHURN, "sleep 0.5", "share 3 churn one two"]
    commands += ["kill $churn", "wait $churn"]
    found = run(replayed, *commands)
    for stage in ("equal", "moved", "removed", "churn"):
        assert found[stage]["two"] / found[stage]["one"] == pytest.approx(2, rel=0.05), stage
    assert found["changed"]["two"] / found["changed"]["one"] == pytest.approx(0.5, rel=0.05)
    sixths = {"one": 1 / 6, "two": 2 / 6, "three": 3 / 6}
    assert found["three"] == pytest.approx(sixths, rel=0.05)


def test_balancer_uses_the_weights_of_cgroups(replayed: Callable[[str], str]) -> None:
    """Two domains without work stealing start with six hogs each. By the number of tasks, or by
    their nice values, the domains are balanced, but not by the weights of the cgroups."""
    options = "--cpumasks 3 c --greedy-threshold 0 --direct-greedy-under 0 --interval 0.5"
    tree = {"heavy": 300, "light": 100}

    def bind(path: str, mask: str) -> str:
        return f"for task in $(cat {path}/cgroup.procs); do taskset -p {mask} $task; done"

    commands = [
        create(tree),
        f"start scx_rusty --cgroups {options}",
        "hogs heavy 6",
        "hogs light 6",
    ]
    commands += ["sleep 0.5", bind("heavy", "3"), bind("light", "c"), "sleep 2"]
    commands += ["share 1 apart heavy light"]
    commands += [bind("heavy", "f"), bind("light", "f"), "sleep 3", "share 4 free heavy light"]
    found = run(replayed, *commands)
    assert found["apart"]["heavy"] == pytest.approx(1 / 2, rel=0.05)
    assert found["free"]["heavy"] == pytest.approx(3 / 4, rel=0.05)


def test_light_cgroup_is_not_starved(replayed: Callable[[str], str]) -> None:
    """By weight alone, a task of the light cgroup would wait ten seconds for each slice of 1 ms."""
    commands = [create({"light": 1, "heavy": 10000}), "start scx_rusty --cgroups"]
    commands += ["hogs light 4", "hogs heavy 8", "sleep 1", "share 6 both light heavy"]
    both = run(replayed, *commands)["both"]
    print(both)
    # By weight it would be 0.0001. Because each task runs about every 4 s, it is 0.004 to 0.011.
    assert 0.001 < both["light"] < 0.02
