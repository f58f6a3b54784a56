# SPDX-License-Identifier: GPL-2.0-only
"""The BPF library on a real kernel: every declaration of kfuncs.bpf.h, every wrapper of
compat.bpf.h, used and checked (tests/scheds/scx_compat), and running averages against those of
user space (scx_ravg_rust)."""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from sched_ext import Scheduler, read, wait_for
from vm.guest import Guest, Process

Start = Callable[..., Scheduler]
Load = Callable[..., Process]
#: What the program prints in a line: the values of each NAME=VALUE.
Values = dict[str, list[str]]

HEADER = Path(__file__).parents[1] / "scheds/scx_compat.h"
USES = re.findall(r"\bX\((\w+)\)", HEADER.read_text().partition("COMPAT_ENUMERATOR")[0])
#: How often a wrapper must have worked; those used once while loading: 1.
WANTED = 5
ONCE = {"nodes", "enums"}
#: They tell something else on each topology.
ABOUT_NODES = {"nodes", "idle_node"}
#: They are called from ops.select_cpu().
SELECTS = {"select_cpu_and", "idle_node"}
#: The first series that has all constants, and all kfuncs but those that end in ___old.
KNOWS_ALL = (7, 2)


def last_line(scheduler: Scheduler) -> Values:
    assert scheduler.process.running(), scheduler.process.stderr()
    values: Values = defaultdict(list)
    for field in " ".join(scheduler.lines()[-1:]).split():
        name, _, value = field.partition("=")
        values[name].append(value)
    return values


def times_good(values: Values) -> int:
    return int("".join(values["good"]) or 0)


def check_events(guest: Guest, values: Values) -> None:
    events = read(guest, "/sys/kernel/sched_ext/root/events")
    expected = re.search(r"SCX_EV_BYPASS_ACTIVATE (\d+)", events)
    assert values["bypass_activate"] == [expected[1] if expected else "-1"]


def check_nodes(guest: Guest, values: Values) -> None:
    """Against the topology, or what a kernel that does not tell is taken for: one node."""
    tells = guest.run("grep -q ' scx_bpf_cpu_node$' /proc/kallsyms").ok
    shape = guest.topology
    assert values["nr_nodes"] == [str(max(1, len(shape.nodes)) if tells else 1)]
    assert values["node"] == [str(shape.node(cpu) if tells else 0) for cpu in shape.possible]


def check_enums(guest: Guest, values: Values) -> None:
    assert not values["wrong"], "values that differ from the kernel's"
    if guest.kernel.version >= KNOWS_ALL:
        assert not values["absent"], "not even the newest kernel has these"


CHECKS = {"events": check_events, "nodes": check_nodes, "enums": check_enums}


@pytest.mark.parametrize(
    "wrapper",
    [
        pytest.param(use, marks=[pytest.mark.every_topology] if use in ABOUT_NODES else [])
        for use in USES
    ],
)
def test_wrapper_works(guest: Guest, start: Start, load: Load, wrapper: str) -> None:
    if wrapper in SELECTS and len(guest.topology.possible) == 1:
        pytest.skip("with one CPU there is nothing to select, and the kernel does not ask")
    scheduler = start("scx_compat", "--use", wrapper, "-i", "0.2").wait_enabled()
    # Those that select an idle CPU need one now and then, the others need tasks that wait.
    load("--hogs", "1" if wrapper in SELECTS else "6", "--forks-per-s", "20")
    # Takes CPUs away from ordinary tasks, for what only happens then.
    rt_hog = "while :; do chrt -f 10 sh -c 'i=0; while [ $i -lt 300 ]; do i=$((i+1)); done'; done"
    preempter = guest.spawn("preempter", rt_hog) if "reenq" in wrapper else None

    wanted = 1 if wrapper in ONCE else WANTED
    wait_for(f"{wrapper} has worked", lambda: times_good(last_line(scheduler)) >= wanted)
    values = last_line(scheduler)
    assert values["bad"] == ["0"], f"so many uses had the wrong effect: {values}"
    if wrapper in CHECKS:
        CHECKS[wrapper](guest, values)

    if preempter:
        guest.run(f"kill -9 -{preempter.pid}")
        preempter.wait(60)
    assert scheduler.end(signal.SIGINT) == 0


#: What a declaration ending in ___old stands for, since only Linux 6.12 can show that it exists.
NAMES_OF_6_12 = {
    "scx_bpf_dispatch",
    "scx_bpf_dispatch_vtime",
    "scx_bpf_consume",
    "scx_bpf_dispatch_from_dsq",
    "scx_bpf_dispatch_from_dsq_set_slice",
    "scx_bpf_dispatch_from_dsq_set_vtime",
    "scx_bpf_dispatch_vtime_from_dsq",
    "scx_bpf_cpu_rq",
}


def test_declarations_match_the_kernel(guest: Guest) -> None:
    """libbpf leaves a weak kfunc unresolved without a word if its prototype is not the kernel's."""
    done = guest.run(["scx_kfuncs"])
    assert done.ok, f"a declaration that is not weak does not match: {done.stderr}"
    resolved = {line.split()[0]: line.endswith("1") for line in done.stdout.splitlines()}
    symbols = guest.run("grep -oE '\\b(__)?(scx_)?bpf_[a-z0-9_]+$' /proc/kallsyms").check()
    known = set(symbols.stdout.split())
    in_kernel = {name: (name.rpartition("___")[0] or name) in known for name in resolved}
    assert resolved == in_kernel

    old = {name for name in resolved if name.endswith("___old")}
    assert {name.removesuffix("___old") for name in old} == NAMES_OF_6_12
    if guest.kernel.version >= KNOWS_ALL:
        assert not [name for name in resolved.keys() - old if not resolved[name]]
    if guest.kernel.version < (6, 13):
        assert all(resolved[name] for name in old)


def test_running_averages_are_those_of_user_space(guest: Guest) -> None:
    done = guest.run(["scx_ravg_rust"])
    print(done.stdout)
    assert done.ok, done.stdout + done.stderr
