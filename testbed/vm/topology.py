# SPDX-License-Identifier: GPL-2.0-only
"""CPU topologies of guests, as data.

Tests compare what a scheduler (or sysfs) reports in the guest with the object that defined the
guest. CPUs have the numbers that Linux gives them in the guest: threads of a core are adjacent,
then cores, then sockets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Distance of a NUMA node to itself, as ACPI's SLIT table defines it.
LOCAL_DISTANCE = 10

_COUNTS = re.compile(r"(\d+)x(\d+)x(\d+)")


class TopologyError(Exception):
    """An unknown or invalid topology; the text is one line for the user."""


@dataclass(frozen=True)
class Topology:
    """The CPUs and memory of a guest.

    `nodes` has the CPUs of each NUMA node. If it is empty, there is one node and no NUMA table.
    `distances` is a square matrix with a row per node. Each socket has its own last-level cache.
    """

    name: str
    description: str
    sockets: int = 1
    #: Number of cores per socket.
    cores: int = 1
    #: Number of hardware threads per core.
    threads: int = 1
    #: Number of CPUs that are online after boot; None means all.
    boot_cpus: int | None = None
    nodes: tuple[tuple[int, ...], ...] = ()
    distances: tuple[tuple[int, ...], ...] = ()
    #: Memory of the whole guest, split evenly between nodes.
    memory_mib: int = 1024

    @property
    def possible(self) -> tuple[int, ...]:
        """All possible CPUs of the guest."""
        return tuple(range(self.sockets * self.cores * self.threads))

    @property
    def online(self) -> tuple[int, ...]:
        """The CPUs that are online after boot."""
        return self.possible[: self.boot_cpus]

    def siblings(self, cpu: int) -> tuple[int, ...]:
        """The hardware threads of `cpu`'s core, including `cpu`."""
        return self._group(cpu, self.threads)

    def llc(self, cpu: int) -> tuple[int, ...]:
        """The CPUs that share `cpu`'s last-level cache, including `cpu`."""
        return self._group(cpu, self.cores * self.threads)

    def node(self, cpu: int) -> int:
        """The NUMA node of `cpu`."""
        return next((i for i, cpus in enumerate(self.nodes) if cpu in cpus), 0)

    def _group(self, cpu: int, size: int) -> tuple[int, ...]:
        first = cpu - cpu % size
        return tuple(range(first, first + size))

    def qemu_args(self) -> list[str]:
        """QEMU's options for CPUs and memory."""
        smp = f"{len(self.possible)},sockets={self.sockets},cores={self.cores}"
        return [
            *("-smp", f"{smp},threads={self.threads}"),
            *("-m", f"{self.memory_mib}M"),
            *self._numa_args(),
        ]

    def _numa_args(self) -> list[str]:
        args: list[str] = []
        for i, cpus in enumerate(self.nodes):
            size = f"{self.memory_mib // len(self.nodes)}M"
            args += ["-object", f"memory-backend-ram,id=mem{i},size={size}"]
            node_cpus = "".join(f",cpus={cpu}" for cpu in cpus)
            args += ["-numa", f"node,nodeid={i},memdev=mem{i}{node_cpus}"]
        for i, row in enumerate(self.distances):
            for j, distance in enumerate(row):
                if i != j:
                    args += ["-numa", f"dist,src={i},dst={j},val={distance}"]
        return args

    def kernel_args(self) -> list[str]:
        """Kernel parameters that the topology needs."""
        return [] if self.boot_cpus is None else [f"maxcpus={self.boot_cpus}"]


#: Named topologies, in the order of their listing.
TOPOLOGIES: dict[str, Topology] = {
    topology.name: topology
    for topology in (
        Topology("1cpu", "one CPU"),
        Topology("smp4", "4 CPUs, one socket, no SMT", cores=4),
        Topology("smt", "2 sockets of 2 cores of 2 threads", sockets=2, cores=2, threads=2),
        Topology(
            "numa",
            "2 nodes of 2 CPUs, distance 20",
            sockets=2,
            cores=2,
            nodes=((0, 1), (2, 3)),
            distances=((LOCAL_DISTANCE, 20), (20, LOCAL_DISTANCE)),
        ),
        Topology("offline", "8 possible CPUs, 4 online at boot", cores=8, boot_cpus=4),
    )
}

#: The default topology.
DEFAULT = "smp4"


def find(name: str) -> Topology:
    """The topology called `name`, or the topology of a `name` of the form SOCKETSxCORESxTHREADS.

    Raises TopologyError if `name` is neither.
    """
    if name in TOPOLOGIES:
        return TOPOLOGIES[name]
    counts = _COUNTS.fullmatch(name)
    if counts and all(int(count) > 0 for count in counts.groups()):
        sockets, cores, threads = (int(count) for count in counts.groups())
        return Topology(name, "given by numbers", sockets=sockets, cores=cores, threads=threads)
    known = ", ".join(TOPOLOGIES)
    raise TopologyError(
        f"no topology '{name}': use one of {known}, or SOCKETSxCORESxTHREADS such as 2x2x2"
    )
