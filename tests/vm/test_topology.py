# SPDX-License-Identifier: GPL-2.0-only
"""`--print-topology` in a guest prints the topology of the guest."""

from __future__ import annotations

import json

import pytest
from sched_ext import STOPS_FAIR_SERVER_TWICE, SetCpu
from vm.guest import Guest

Group = tuple[int, ...]


def cpus(text: str) -> Group:
    """Parses a CPU list of the kernel, such as 0-3,8."""
    ranges = (part.split("-") for part in text.split(",") if part)
    return tuple(cpu for ends in ranges for cpu in range(int(ends[0]), int(ends[-1]) + 1))


def detected(guest: Guest) -> dict:
    return json.loads(guest.run(["scx_fifo", "--print-topology=json"]).check().stdout)


def spans(groups: list[dict]) -> set[Group]:
    return {cpus(group["span"]) for group in groups}


def online(guest: Guest, group: Group) -> Group:
    return tuple(cpu for cpu in group if cpu in guest.topology.online)


@pytest.mark.every_topology
def test_detected_topology_matches_the_guest(guest: Guest) -> None:
    shape, found = guest.topology, detected(guest)
    assert cpus(found["possible"]) == shape.possible
    assert cpus(found["online"]) == shape.online
    assert found["nr_cpu_ids"] == len(shape.possible)
    assert found["smt_width"] == shape.threads
    assert [cpu["id"] for cpu in found["cpus"]] == list(shape.online)

    assert spans(found["cores"]) == {online(guest, shape.siblings(cpu)) for cpu in shape.online}
    assert spans(found["llcs"]) == {online(guest, shape.llc(cpu)) for cpu in shape.online}
    # Without NUMA tables there is one node.
    nodes = shape.nodes or (shape.possible,)
    assert [cpus(node["span"]) for node in found["nodes"]] == [online(guest, n) for n in nodes]
    assert [tuple(node["distances"]) for node in found["nodes"]] == list(
        shape.distances or ((10,),)
    )


@pytest.mark.every_topology
def test_indexes_of_cpus_and_groups_are_consistent(guest: Guest) -> None:
    found = detected(guest)
    for cpu in found["cpus"]:
        assert cpu["node"] == guest.topology.node(cpu["id"])
        for kind, groups in (("core", "cores"), ("llc", "llcs"), ("node", "nodes")):
            group = found[groups][cpu[kind]]
            assert group["index"] == cpu[kind]
            assert cpu["id"] in cpus(group["span"])


@STOPS_FAIR_SERVER_TWICE
def test_offline_cpu_is_possible_and_in_no_group(guest: Guest, set_cpu: SetCpu) -> None:
    set_cpu(1, False)
    found = detected(guest)
    set_cpu(1, True)
    assert cpus(found["possible"]) == guest.topology.possible
    assert cpus(found["online"]) == (0, 2, 3)
    assert spans(found["nodes"]) == {(0, 2, 3)}
    assert spans(found["cores"]) == {(0,), (2,), (3,)}
    assert detected(guest)["hotplug_seq"] > found["hotplug_seq"]


def test_text_output_needs_no_privileges(guest: Guest) -> None:
    done = guest.run(["scx_fifo", "--print-topology"], user="nobody").check()
    assert "4 possible CPUs, 4 online" in done.stdout
