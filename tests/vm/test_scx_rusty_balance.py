# SPDX-License-Identifier: GPL-2.0-only
"""scx_rusty on a real kernel: placement and CPU time of tasks, and its load statistics, in
deterministic guests."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable

import pytest
from recorder import Record
from shares import NICE_0_TO_5, shares
from statistics_client import SOCKET, TOTAL, payload
from vm import topology

#: Two nodes; with CPUMASKS, two domains of one CPU in each.
NUMA = topology.find("numa")
CPUMASKS = "--cpumasks 1 2 4 8"

#: Options that turn off work stealing across domains, so that only the balancer moves tasks.
NO_STEALING = "--greedy-threshold 0 --direct-greedy-under 0 --kick-greedy-under 0"

#: Waits until the scheduler is enabled. Ends the script with status 1 if the scheduler has ended.
ENABLED = """
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
    kill -0 $scheduler || exit 1
    sleep 0.1
done
"""

#: A shell function that prints the CPU time of each hog in ns. scx_switches would not show hogs
#: that are never switched out.
USED = """
used() {
    for hog in $(grep -l hog /proc/$load/task/*/comm); do
        cut -d " " -f 1 ${hog%comm}schedstat
    done
}
"""

#: Hogs start on CPU 0. After 2 s, they may run on any CPU. After five further intervals of the
#: balancer, their CPUs and CPU times are recorded.
SPREAD = """
USED
scx_rusty OPTIONS --interval 0.5 >/dev/null & scheduler=$!
ENABLED
taskset 1 scx_load --hogs 4 --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null & load=$!
sleep 2
for thread in /proc/$load/task/*; do taskset -p f ${thread##*/} >/dev/null; done
sleep 2.5
scx_switches --comm hog --seconds 1 --json
used
sleep 1
used
scx_stats_client SOCKET ask 'TOTAL'
kill -INT $load
wait $load || exit 1
kill -INT $scheduler
wait $scheduler
"""


@pytest.fixture
def on_nodes(replayed_on: Callable[[topology.Topology, str], str]) -> Callable[[str], str]:
    """Runs a script in a deterministic guest with two nodes; returns its output."""

    def run(script: str) -> str:
        script = script.replace("SOCKET", SOCKET).replace("TOTAL", TOTAL)
        script = script.replace("ENABLED", ENABLED).replace("USED", USED)
        return replayed_on(NUMA, script)

    return run


def records(printed: str) -> list[Record]:
    return [json.loads(line) for line in re.findall(r"^\{.*\}$", printed, re.MULTILINE)]


def figures(printed: str) -> Record:
    """The figures of the load, which are on several lines."""
    (load,) = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    return json.loads(load)


def time_by_cpu(printed: str) -> dict[int, float]:
    """CPU time of the hogs on each CPU during the recording, in s."""
    ran_s: dict[int, float] = defaultdict(float)
    for record in records(printed):
        if record.get("type") == "run":
            ran_s[record["cpu"]] += record["ran_ns"] / 1e9
    return ran_s


def used_s(printed: str) -> list[float]:
    """CPU time of each hog between the two readings, in s."""
    times_ns = [int(line) for line in re.findall(r"^\d{4,}$", printed, re.MULTILINE)]
    before, after = times_ns[: len(times_ns) // 2], times_ns[len(times_ns) // 2 :]
    return [(then - now) / 1e9 for now, then in zip(before, after, strict=True)]


def nodes_of(cpus: Iterable[int]) -> set[int]:
    used = set(cpus)
    return {node for node, of_node in enumerate(NUMA.nodes) if used.intersection(of_node)}


def last_stats(printed: str) -> Record:
    """The last statistics of the scheduler."""
    *_, last = [record for record in records(printed) if "type" not in record]
    return payload(last)


def test_hogs_are_spread_over_nodes_and_domains(on_nodes: Callable[[str], str]) -> None:
    """Four hogs start on one CPU. After five intervals, each CPU runs a hog."""
    printed = on_nodes(SPREAD.replace("OPTIONS", f"{CPUMASKS} {NO_STEALING}"))
    assert sorted(time_by_cpu(printed)) == [0, 1, 2, 3]
    assert min(used_s(printed)) > 0.8
    stats = last_stats(printed)
    assert stats["nr_migrations"] >= 3
    domains = [dom for node in stats["nodes"].values() for dom in node["doms"].values()]
    assert len(stats["nodes"]) == 2
    assert len(domains) == 4
    # There is one hog in each domain. The client of the statistics adds to the load of its domain.
    assert all(0.8 < domain["load"] < 1.6 for domain in domains), domains
    assert all(abs(domain["imbal"]) < 0.5 for domain in domains), domains


def test_hogs_are_spread_over_nodes_without_contention(on_nodes: Callable[[str], str]) -> None:
    """Two hogs run on the two CPUs of a node. One of them moves to the other node, although no task
    waits."""
    script = SPREAD.replace("taskset 1", "taskset 3").replace("--hogs 4", "--hogs 2")
    where = "grep -h '(hog)' /proc/$load/task/*/stat | cut -d ' ' -f 39"
    script = script.replace("scx_switches --comm hog --seconds 1 --json", where)
    printed = on_nodes(script.replace("OPTIONS", NO_STEALING))
    assert nodes_of(map(int, re.findall(r"^\d$", printed, re.MULTILINE))) == {0, 1}
    stats = last_stats(printed)
    assert 1 <= stats["nr_migrations"] < 5
    assert all(abs(node["imbal"]) < 0.5 for node in stats["nodes"].values()), stats["nodes"]


def test_without_balancing_they_stay(on_nodes: Callable[[str], str]) -> None:
    printed = on_nodes(SPREAD.replace("OPTIONS", f"{CPUMASKS} {NO_STEALING} --no-load-balance"))
    assert set(time_by_cpu(printed)) == {0}
    stats = last_stats(printed)
    assert stats["nr_migrations"] == 0
    # The imbalance is still reported.
    assert stats["nodes"]["0"]["doms"]["0"]["imbal"] > 1


@pytest.mark.parametrize(("threshold", "nodes"), [(0, {0}), (1, {0, 1})])
def test_idle_cpus_of_the_other_node_take_work_only_when_allowed(
    on_nodes: Callable[[str], str], threshold: int, nodes: set[int]
) -> None:
    """The balancer is off, so that only stealing moves tasks."""
    options = f"--no-load-balance --direct-greedy-under 0 --greedy-threshold-x-numa {threshold}"
    printed = on_nodes(SPREAD.replace("OPTIONS", options))
    assert nodes_of(time_by_cpu(printed)) == nodes


#: Hogs of several weights, in one domain.
WEIGHTED = """
scx_rusty >/dev/null & scheduler=$!
ENABLED
scx_load --hogs NR --hog-nices NICES --sleepers 0 --pipes 0 --forks-per-s 0 --seconds 3 --json
kill -INT $scheduler
wait $scheduler
"""

#: p->scx.weight by nice value, before rounding: sched_prio_to_weight[] of kernel/sched/core.c,
#: scaled to 100 for nice 0.
WEIGHTS = {-10: 9548 / 10.24, 0: 100.0, 10: 110 / 10.24}


def feasible(nices: list[int], nr_cpus: int) -> list[float]:
    """The fraction of a CPU that each task is entitled to. A task can use at most one CPU. Tasks
    that would get more by weight use a whole CPU each, and the other tasks share the rest by
    weight."""
    weights = [WEIGHTS[nice] for nice in nices]
    by_weight = sorted(weights, reverse=True)
    for nr_full in range(nr_cpus + 1):
        rest = sum(by_weight[nr_full:])
        cpus = nr_cpus - nr_full
        if by_weight[nr_full] * cpus <= rest:
            return [min(1.0, weight * cpus / rest) for weight in weights]
    raise AssertionError("more CPUs than tasks")


@pytest.mark.parametrize(
    "nices",
    [[-10, 0, 0, 0, 0, 0], [-10, -10, 0, 0, 0, 0, 10], [0, 0, 0, 0, 0, 10, 10]],
    ids=["one heavy", "two heavy", "light"],
)
def test_cpu_time_matches_feasible_weights(
    replayed: Callable[[str], str], shape: topology.Topology, nices: list[int]
) -> None:
    """Each task gets its share to within 5 % of a CPU. By weight alone, a task of nice -10 would be
    entitled to more than one CPU."""
    script = WEIGHTED.replace("NICES", ",".join(map(str, nices))).replace("NR", str(len(nices)))
    load = figures(replayed(script.replace("ENABLED", ENABLED)))
    got = [cpu_s / load["elapsed_s"] for cpu_s in load["hogs"]["cpu_s"]]
    due = feasible(nices, len(shape.online))
    for nice, share, wanted in zip(nices, got, due, strict=True):
        print(f"nice {nice}: {share:.3f} of a CPU, due {wanted:.3f}")
    assert got == pytest.approx(due, abs=0.05)


def test_two_hogs_share_a_cpu_by_weight(replayed: Callable[[str], str]) -> None:
    heavy_s, light_s = shares(replayed, "scx_rusty", [0, 5])
    print(heavy_s / light_s)
    assert heavy_s / light_s == pytest.approx(NICE_0_TO_5, rel=0.15)


#: Three hogs on the only CPU of a domain. Two of them may not use any other CPU. Prints the CPU
#: times of the hogs in ns, at the beginning and at the end of a second.
FIFO = """
USED
scx_rusty --fifo-sched --no-load-balance --cpumasks 1 OPTIONS >/dev/null & scheduler=$!
ENABLED
taskset 1 scx_load --hogs 3 --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null & load=$!
sleep 1 # until they are not new any more, and stay where they are
set -- $(grep -l hog /proc/$load/task/*/comm)
thread=${1%/comm}
taskset -p f ${thread##*/} >/dev/null
sleep 0.2
used
sleep 1
used
kill -INT $load
wait $load || exit 1
kill -INT $scheduler
wait $scheduler
"""


def test_fifo_order_includes_tasks_bound_to_a_cpu(on_nodes: Callable[[str], str]) -> None:
    """Tasks that are bound to a CPU do not run before tasks that may use the whole domain."""
    got_s = used_s(on_nodes(FIFO.replace("OPTIONS", NO_STEALING)))
    print(got_s)
    # The sum may be above 1 s: more than a second may pass between the readings, because the shell
    # waits for a CPU, too.
    assert sum(got_s) > 0.9
    assert [one_s / sum(got_s) for one_s in got_s] == pytest.approx([1 / 3] * 3, abs=0.1)


#: Two pairs of tasks that wake each other up, beside hogs and sleepers, on the two CPUs of a node.
BESIDE_PIPES = """
scx_rusty >/dev/null & scheduler=$!
ENABLED
taskset c scx_load --hogs 2 --sleepers 4 --pipes 2 --forks-per-s 0 --seconds 4 --json
kill -INT $scheduler
wait $scheduler
"""


def test_pairs_that_wake_each_other_do_not_starve_hogs(on_nodes: Callable[[str], str]) -> None:
    """All tasks of the load are bound to two CPUs, while the other two CPUs are idle. With the
    kernel's default CPU selection, a hog got 0.11 s of CPU time in 2 s."""
    load = figures(on_nodes(BESIDE_PIPES))
    print(load["hogs"], load["sleepers"], load["pipes"])
    # Two hogs and four almost always runnable pipe tasks on two CPUs: a third of a CPU each.
    assert load["hogs"]["cpu_min_s"] / load["elapsed_s"] > 0.25
    # A sleeper preempts a hog, and does not wait for the end of a slice of 20 ms.
    assert load["sleepers"]["lateness_p50_us"] < 1000
    assert load["sleepers"]["lateness_p99_us"] < 4000


#: A load on four CPUs.
LOADED = f"""
scx_rusty >/dev/null & scheduler=$!
{ENABLED}
scx_load --pipes 0 --forks-per-s 0 OPTIONS --seconds 2 --json
kill -INT $scheduler
wait $scheduler
"""


def test_workers_of_a_server_do_not_preempt_each_other(replayed: Callable[[str], str]) -> None:
    """When each wakeup of a worker could preempt another worker, the slowest hundredth of the
    requests took 11 to 13 ms."""
    options = "--hogs 0 --sleepers 0 --workers 8 --request-us 1000"
    requests = figures(replayed(LOADED.replace("OPTIONS", options)))["requests"]
    print(requests)
    assert requests["done_per_s"] > 2000
    assert requests["latency_p99_ms"] < 6


def test_wakee_does_not_wait_for_new_hogs(replayed: Callable[[str], str]) -> None:
    """A new task cannot be preempted until its average runtime is known. When its first slice was
    20 ms, the longest wait was 27 to 45 ms. The bound is two ticks of 4 ms."""
    options = "--hogs 8 --sleepers 1 --sleep-us 5000 --work-us 0"
    sleepers = figures(replayed(LOADED.replace("OPTIONS", options)))["sleepers"]
    print(sleepers)
    assert sleepers["lateness_max_us"] < 8000


#: A shell starts four hogs one after the other, beside short-lived tasks that fill the machine
#: briefly. Prints the CPU times of the hogs in ns twice, 1 s apart: first 0.5 s after the end of
#: the short-lived tasks.
FORKS = """
scx_rusty OPTIONS >/dev/null & scheduler=$!
ENABLED
for n in CROWD; do
    (i=0; while [ $i -lt LASTS ]; do i=$((i + 1)); done) & crowd="$crowd $!"
done
for n in 1 2 3 4; do
    scx_spin & hogs="$hogs $!"
done
[ -z "$crowd" ] || wait $crowd
sleep 0.5
used() { for hog in $hogs; do cut -d " " -f 1 /proc/$hog/schedstat; done; }
used
sleep 1
used
kill $hogs
kill -INT $scheduler
wait $scheduler
"""


@pytest.mark.parametrize(
    ("options", "lasts"),
    [(f"--no-load-balance {NO_STEALING}", 1000), ("", 4000)],
    ids=["alone", "default"],
)
@pytest.mark.parametrize("crowd", [0, 4, 8])
def test_new_tasks_start_on_idle_cpus(
    on_nodes: Callable[[str], str], crowd: int, options: str, lasts: int
) -> None:
    """Each hog gets a CPU, whatever ran when the hog started. Without the balancer, this holds if
    the short-lived tasks end while the hog is still new. With the balancer, it also holds if they
    run for a second."""
    names = " ".join(map(str, range(crowd)))
    script = FORKS.replace("OPTIONS", options).replace("LASTS", str(lasts))
    got_s = used_s(on_nodes(script.replace("CROWD", names)))
    print(got_s)
    assert len(got_s) == 4
    assert min(got_s) > 0.9


#: Four hogs of the domain of CPUs 0 and 1, which the idle CPUs 2 and 3 steal. There, tasks of the
#: other domain run at times, so the hogs are enqueued. Prints the debug dump.
STOLEN = """
scx_rusty --cpumasks 3 c --no-load-balance >/dev/null & scheduler=$!
ENABLED
taskset 3 scx_load --hogs 4 --sleepers 0 --pipes 0 --forks-per-s 0 >/dev/null & load=$!
sleep 1.5
for thread in /proc/$load/task/*; do taskset -p f ${thread##*/} >/dev/null; done
taskset c scx_load --hogs 0 --sleepers 4 --pipes 0 --forks-per-s 0 >/dev/null & sleepers=$!
sleep 1
echo 1 >/sys/kernel/tracing/events/sched_ext/sched_ext_dump/enable
echo D >/proc/sysrq-trigger
sleep 0.1
grep -h "(hog)" /proc/$load/task/*/stat | cut -d " " -f 39
grep -o "domain [01]: .*" /sys/kernel/tracing/trace
kill -INT $load $sleepers
wait $load && wait $sleepers || exit 1
kill -INT $scheduler
wait $scheduler
"""


def test_stolen_tasks_keep_their_domain(replayed: Callable[[str], str]) -> None:
    """Only the balancer changes the domains of tasks that the kernel does not move."""
    printed = replayed(STOLEN.replace("ENABLED", ENABLED))
    print(printed)
    assert {"2", "3"} & set(re.findall(r"^\d$", printed, re.MULTILINE))
    (weight,) = re.findall(r"^domain 0: .* weight (\d+)", printed, re.MULTILINE)
    assert int(weight) >= 400
