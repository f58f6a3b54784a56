# SPDX-License-Identifier: GPL-2.0-only
"""The BPF library on a real kernel: every declaration of kfuncs.bpf.h; the effects of the wrappers
of compat.bpf.h, except the wrapper for task storage and those of the section "cgroups"; and running
averages compared with those of user space. The programs are scx_compat and scx_ravg_rust of
tests/scheds."""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from sched_ext import TIMEOUT_S, Load, Scheduler, Start, read, wait_for
from vm.guest import Guest

#: The values of each NAME in a line of NAME=VALUE fields that the program prints.
Values = dict[str, list[str]]

HEADER = Path(__file__).parents[1] / "scheds/scx_compat.h"
USES = re.findall(r"\bX\((\w+)\)", HEADER.read_text().partition("COMPAT_ENUMERATOR")[0])
#: How often a wrapper must have worked. The wrappers in ONCE are used only in ops.init().
WANTED = 5
ONCE = {"nodes", "enums"}
#: Wrappers whose result depends on the topology.
TOPOLOGY_DEPENDENT = {"nodes", "idle_node"}
#: Wrappers that are called from ops.select_cpu().
SELECTS = {"select_cpu_and", "idle_node"}
#: The first kernel series that has all constants of enums.bpf.h, and all kfuncs of kfuncs.bpf.h
#: except those whose declarations end in ___old.
COMPLETE = (7, 2)


def last_line(scheduler: Scheduler) -> Values:
    assert scheduler.process.running(), scheduler.process.stderr()
    values: Values = defaultdict(list)
    for field in " ".join(scheduler.lines()[-1:]).split():
        name, _, value = field.partition("=")
        values[name].append(value)
    return values


def nr_good(values: Values) -> int:
    return int("".join(values["good"]) or 0)


def check_events(guest: Guest, values: Values) -> None:
    events = read(guest, "/sys/kernel/sched_ext/root/events")
    expected = re.search(r"SCX_EV_BYPASS_ACTIVATE (\d+)", events)
    assert values["bypass_activate"] == [expected[1] if expected else "-1"]


def check_nodes(guest: Guest, values: Values) -> None:
    """Compares the nodes with the topology. On a kernel without scx_bpf_cpu_node(), the wrappers
    have to report a single node."""
    has_nodes = guest.run("grep -q ' scx_bpf_cpu_node$' /proc/kallsyms").ok
    shape = guest.topology
    assert values["nr_nodes"] == [str(max(1, len(shape.nodes)) if has_nodes else 1)]
    assert values["node"] == [str(shape.node(cpu) if has_nodes else 0) for cpu in shape.possible]


def check_enums(guest: Guest, values: Values) -> None:
    assert not values["wrong"], "values that differ from the kernel's"
    if guest.kernel.version >= COMPLETE:
        assert not values["absent"], "not even the newest kernel has these"


CHECKS = {"events": check_events, "nodes": check_nodes, "enums": check_enums}


@pytest.fixture
def preemption(guest: Guest, wrapper: str) -> Iterator[None]:
    """A real-time task that runs again and again, for tests of wrappers that re-enqueue tasks.
    There are tasks to re-enqueue only when a task of a higher class takes their CPU."""
    if "reenq" not in wrapper:
        yield
        return
    rt_hog = "while :; do chrt -f 10 sh -c 'i=0; while [ $i -lt 300 ]; do i=$((i+1)); done'; done"
    preempter = guest.spawn("preempter", rt_hog)
    yield
    guest.run(f"kill -9 -{preempter.pid}")
    preempter.wait(TIMEOUT_S)


@pytest.mark.usefixtures("preemption")
@pytest.mark.parametrize(
    "wrapper",
    [
        pytest.param(use, marks=[pytest.mark.every_topology] if use in TOPOLOGY_DEPENDENT else [])
        for use in USES
    ],
)
def test_wrapper_works(guest: Guest, start: Start, load: Load, wrapper: str) -> None:
    if wrapper in SELECTS and len(guest.topology.possible) == 1:
        pytest.skip("with one CPU, ops.select_cpu() is not called")
    scheduler = start("scx_compat", "--use", wrapper, "-i", "0.2").wait_enabled()
    # Wrappers that select an idle CPU need idle CPUs, other wrappers need waiting tasks.
    load("--hogs", "1" if wrapper in SELECTS else "6", "--forks-per-s", "20")
    wanted = 1 if wrapper in ONCE else WANTED
    wait_for(f"{wrapper} has worked", lambda: nr_good(last_line(scheduler)) >= wanted)
    values = last_line(scheduler)
    assert values["bad"] == ["0"], f"uses with the wrong effect: {values}"
    if wrapper in CHECKS:
        CHECKS[wrapper](guest, values)

    assert scheduler.end(signal.SIGINT) == 0


#: The kfuncs of declarations ending in ___old. Linux 6.12 has all of them.
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
    """If the prototype of a weak kfunc does not match, libbpf silently leaves it unresolved."""
    done = guest.run(["scx_kfuncs"])
    assert done.ok, f"a declaration that is not weak does not match: {done.stderr}"
    resolved = {line.split()[0]: line.endswith("1") for line in done.stdout.splitlines()}
    symbols = guest.run("grep -oE '\\b(__)?(scx_)?bpf_[a-z0-9_]+$' /proc/kallsyms").check()
    known = set(symbols.stdout.split())
    in_kernel = {name: (name.rpartition("___")[0] or name) in known for name in resolved}
    assert resolved == in_kernel

    old = {name for name in resolved if name.endswith("___old")}
    assert {name.removesuffix("___old") for name in old} == NAMES_OF_6_12
    if guest.kernel.version >= COMPLETE:
        assert not [name for name in resolved.keys() - old if not resolved[name]]
    if guest.kernel.version < (6, 13):
        assert all(resolved[name] for name in old)


def test_running_averages_match_those_of_user_space(guest: Guest) -> None:
    done = guest.run(["scx_ravg_rust"])
    print(done.stdout)
    assert done.ok, done.stdout + done.stderr
