# SPDX-License-Identifier: GPL-2.0-only
"""Topologies: arguments of QEMU and the kernel, and properties for tests."""

import dataclasses

import pytest
from vm import topology

ALL = pytest.mark.parametrize("shape", topology.TOPOLOGIES.values(), ids=topology.TOPOLOGIES)


def pairs(args: list[str]) -> list[tuple[str, str]]:
    """QEMU's arguments as (option, value)."""
    return list(zip(args[::2], args[1::2], strict=True))


@ALL
def test_counts_multiply(shape: topology.Topology) -> None:
    smp = dict(pairs(shape.qemu_args()))["-smp"]
    counts = f"sockets={shape.sockets},cores={shape.cores},threads={shape.threads}"
    assert smp == f"{shape.sockets * shape.cores * shape.threads},{counts}"


@ALL
def test_groups_partition_the_cpus(shape: topology.Topology) -> None:
    for group in (shape.siblings, shape.llc):
        for cpu in shape.possible:
            members = group(cpu)
            assert cpu in members
            assert all(group(member) == members for member in members)


@ALL
def test_nodes_hold_every_cpu_once(shape: topology.Topology) -> None:
    if shape.nodes:
        assert sorted(cpu for node in shape.nodes for cpu in node) == list(shape.possible)
        assert len(shape.distances) == len(shape.nodes)


def test_smt_siblings_are_adjacent() -> None:
    smt = topology.find("smt")
    assert smt.siblings(5) == (4, 5)
    assert smt.llc(5) == (4, 5, 6, 7)
    assert smt.node(5) == 0


def test_numa_gives_each_node_its_cpus_memory_and_distance() -> None:
    numa = topology.find("numa")
    args = pairs(numa.qemu_args())
    assert ("-numa", "node,nodeid=1,memdev=mem1,cpus=2,cpus=3") in args
    assert ("-object", "memory-backend-ram,id=mem1,size=512M") in args
    assert ("-numa", "dist,src=0,dst=1,val=20") in args
    assert numa.node(3) == 1


def test_offline_cpus_are_possible_but_not_booted() -> None:
    offline = topology.find("offline")
    assert (len(offline.possible), offline.online) == (8, (0, 1, 2, 3))
    assert offline.kernel_args() == ["maxcpus=4"]


def test_all_cpus_boot_by_default() -> None:
    smp4 = topology.find("smp4")
    assert smp4.online == smp4.possible == (0, 1, 2, 3)
    assert smp4.kernel_args() == []


def test_topology_by_numbers() -> None:
    shape = topology.find("2x3x4")
    assert (shape.sockets, shape.cores, shape.threads) == (2, 3, 4)


@pytest.mark.parametrize("name", ["", "smp5", "0x1x1", "2x2", "2x2x2x2"])
def test_error_of_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(topology.TopologyError, match="use one of 1cpu, smp4, smt, numa, offline"):
        topology.find(name)


def test_topology_can_be_copied_with_changes() -> None:
    bigger = dataclasses.replace(topology.find("smp4"), memory_mib=2048)
    assert ("-m", "2048M") in pairs(bigger.qemu_args())
