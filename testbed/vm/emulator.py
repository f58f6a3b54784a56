# SPDX-License-Identifier: GPL-2.0-only
"""QEMU for guests whose time is the number of executed instructions (QEMU's icount)."""

from __future__ import annotations

import functools

import debs

from . import progress, qemu
from .kernels import version_of
from .programs import built

#: The oldest usable version of QEMU. Older versions divide time between CPUs too coarsely, and
#: repeated runs of a deterministic guest differ from each other.
OLDEST_QEMU = (10,)
#: The library that makes QEMU independent of the host's time, and limits the length of a CPU's
#: turn: see qemu_deterministic.c.
PRELOADED_LIBRARY = "libscx_qemu_deterministic.so"
#: Packages of QEMU's firmware, and the directory of the firmware in each package.
_FIRMWARE = (("qemu-system-data", "usr/share/qemu"), ("seabios", "usr/share/seabios"))


@functools.cache
def find() -> qemu.Emulator:
    """A suitable QEMU: the machine's own, or else the distribution's backport, which is fetched
    into the cache.

    Raises qemu.QemuError, debs.DebsError.
    """
    own = qemu.Emulator()
    if version_of(own.version()) >= OLDEST_QEMU:
        return own
    suite = debs.Suite(f"{debs.debian_codename()}-backports", step=progress.step)
    program = suite.fetch("qemu-system-x86") / "usr/bin" / qemu.PROGRAM
    firmware = [
        word for package, path in _FIRMWARE for word in ("-L", str(suite.fetch(package) / path))
    ]
    found = qemu.Emulator((str(program), *firmware))
    if version_of(found.version()) < OLDEST_QEMU:
        wanted = ".".join(map(str, OLDEST_QEMU))
        raise qemu.QemuError(f"guests that count instructions need QEMU {wanted}: install it")
    return found


def find_deterministic() -> qemu.Emulator:
    """The QEMU of find(), with the same addresses and the same timing of its threads in each run.

    Raises qemu.QemuError, debs.DebsError.
    """
    library = built(PRELOADED_LIBRARY)
    isolated = ("env", f"LD_PRELOAD={library}", "setarch", "--addr-no-randomize", *find().command)
    return qemu.Emulator(isolated, preloaded=(library,))
