# SPDX-License-Identifier: GPL-2.0-only
"""Where the instructions of a context switch go: how many instructions the CPUs of a deterministic
guest execute in each function of the kernel and in each BPF program, per context switch.

A plugin of the emulator (vm/qemu_profile.c) counts the executed blocks of instructions between the
two snapshots of a round. The guest prints the addresses of its functions.
"""

from __future__ import annotations

import os
import re
import struct
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from vm.programs import built

from .measure import Place, RoundError, Subject, in_guest, script, sections, sums
from .workloads import Workload

#: The library with the plugin. Meson builds it from vm/qemu_profile.c.
PLUGIN = "libscx_qemu_profile.so"
#: struct block of qemu_profile.c.
_BLOCK = struct.Struct("<QQQ")

#: Prints the addresses and names of the kernel's functions and of the BPF programs.
_PRINT_SYMBOLS = """\
echo 0 >/proc/sys/kernel/kptr_restrict
section symbols
grep -i ' [tw] ' /proc/kallsyms | cut -d' ' -f1,3
"""

#: Stands for all functions in user space: the guest prints no symbols of programs.
USER = "user space"
_BPF = re.compile(r"bpf_prog_[0-9a-f]{16}_(\w+)")
#: Suffixes that the compiler adds to the names of functions.
_SUFFIX = re.compile(r"(\.(isra|constprop|part|cold|llvm)\b(\.\d+)?)+$")


@dataclass(frozen=True)
class Profile:
    """The instructions of a round."""

    subject: str
    nr_switches: float
    #: For each function, the instructions per context switch.
    functions: dict[str, float]

    def total(self, kind: str = "") -> float:
        """The instructions per context switch of all functions, or of those of one kind."""
        return sum(n for name, n in self.functions.items() if kind in ("", kind_of(name)))


def kind_of(function: str) -> str:
    """Whether a function is one of the kernel, a BPF program, or in user space."""
    if function == USER:
        return "user"
    return "bpf" if function.endswith(" [bpf]") else "kernel"


class Symbols:
    """The functions at the addresses of a guest."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Takes lines with an address and a name each."""
        found = sorted((int(address, 16), name) for address, name, *_ in map(str.split, lines))
        self._addresses = [address for address, _ in found]
        self._names = [_readable(name) for _, name in found]

    def at(self, address: int) -> str:
        """The function at an address."""
        if address < 1 << 63:
            return USER
        index = bisect_right(self._addresses, address) - 1
        return self._names[index] if index >= 0 else f"{address:#x}"


def _readable(name: str) -> str:
    if program := _BPF.fullmatch(name):
        return f"{program[1]} [bpf]"
    return _SUFFIX.sub("", name)


def blocks(table: bytes) -> Iterator[tuple[int, int]]:
    """The executed blocks in the plugin's table: their addresses, and the number of instructions
    executed in them."""
    for address, size, nr_executed in _BLOCK.iter_unpack(table):
        if nr_executed:
            yield address, size * nr_executed


def profile(place: Place, subject: Subject, workload: Workload, seed: int) -> Profile:
    """Runs a round. Raises RoundError, and the errors of replay.run()."""
    counted = replace(workload, counts_instructions=True)
    text = script(subject, counted, place.cpus, "/tmp", _PRINT_SYMBOLS)
    with tempfile.TemporaryDirectory(prefix="scx-functions-") as scratch:
        table = Path(scratch) / "blocks"
        plugin = f"file={built(PLUGIN)},out={table}"
        found = sections(in_guest(place, subject, counted, text, seed, plugin=plugin))
        if "done" not in found:
            raise RoundError(f"{subject.name}: {found.get('failed', 'it printed nothing').strip()}")
        symbols = Symbols(found["symbols"].splitlines())
        instructions: Counter[str] = Counter()
        for address, nr in blocks(table.read_bytes()):
            instructions[symbols.at(address)] += nr
    nr_switches = sums(found["after"])["ctxt"] - sums(found["before"])["ctxt"]
    return Profile(
        subject.name, nr_switches, {name: nr / nr_switches for name, nr in instructions.items()}
    )


def profiles(
    place: Place, subjects: Iterable[Subject], workload: Workload, seed: int, jobs: int | None
) -> list[Profile]:
    """Runs a round of each scheduler, with `jobs` guests in parallel (default: one per CPU)."""
    with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda one: profile(place, one, workload, seed), subjects))


def text(found: list[Profile], nr_functions: int) -> str:
    """A table of the functions with the most instructions, a column for each scheduler."""
    names = {name for one in found for name in one.functions}
    names = sorted(names, key=lambda name: (-max(_of(one, name) for one in found), name))
    rows: list[tuple[str, list[float]]] = [
        ("context switches", [one.nr_switches for one in found]),
        ("instructions per context switch", [one.total() for one in found]),
        ("  of the kernel", [one.total("kernel") for one in found]),
        ("  of BPF programs", [one.total("bpf") for one in found]),
        ("  of user space", [one.total("user") for one in found]),
        *((name, [_of(one, name) for one in found]) for name in names[:nr_functions]),
    ]
    wide = max(len(name) for name, _ in rows)
    columns = [max(len(one.subject), 8) for one in found]
    lines = [
        [" " * wide, *(one.subject.rjust(n) for one, n in zip(found, columns, strict=True))],
        *(
            [name.ljust(wide), *(f"{x:{n}.0f}" for x, n in zip(values, columns, strict=True))]
            for name, values in rows
        ),
    ]
    return "".join("  ".join(line) + "\n" for line in lines)


def _of(one: Profile, function: str) -> float:
    return one.functions.get(function, 0.0)
