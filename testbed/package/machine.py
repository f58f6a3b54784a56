# SPDX-License-Identifier: GPL-2.0-only
"""Boots a system with the packages installed, which runs session.sh.

The root file system that image.sh packs is the initramfs of a guest, so that every boot begins with
the same files.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vm import accelerator, initramfs, kernels, qemu, topology

#: The name of each boot, and the kernel parameters that are specific to this boot.
BOOTS = {"first": (), "default": (), "off": ("scx=off",)}
#: The configuration of scx_loader after an administrator has set a default scheduler.
CONFIG = 'default_sched = "scx_flash"\n'
#: Enough for the unpacked system in addition to its archive.
MEMORY_MIB = 2048
LIFETIME_S = 1800.0
_POLL_S = 0.2


def boot(image: Path, name: str, console_log: Path) -> Iterator[str]:
    """Boot the image; yields the lines on the console. Raises qemu.QemuError, kernels.KernelError,
    and the errors of accelerator.choose()."""
    kernel = kernels.resolve(None)
    shape = replace(topology.find("smp4"), memory_mib=MEMORY_MIB)
    with tempfile.TemporaryDirectory(prefix="scx-package-") as scratch:
        archive = Path(scratch) / "initramfs"
        archive.write_bytes(_padded(image.read_bytes()) + _further_files(name))
        # Disable systemd's messages, which would be printed in the middle of other lines.
        quiet = "systemd.show_status=false"
        args = ("rdinit=/sbin/init", quiet, f"scx.session={name}", *BOOTS[name])
        machine = qemu.Machine(
            kernel,
            archive,
            shape,
            accelerator.choose(kernel),
            console_log,
            kernel_args=args,
        )
        console_log.touch()
        launched = qemu.launch(machine)
        try:
            yield from _lines(launched, console_log)
        finally:
            launched.close()


def _padded(archive: bytes) -> bytes:
    """The archive, padded to the alignment of the archive that is appended."""
    return archive + b"\0" * (-len(archive) % 4)


def _further_files(name: str) -> bytes:
    """The files by which an administrator sets a default scheduler. The first boot has none."""
    tree = initramfs.Tree()
    if name != "first":
        tree.file("etc/scx_loader/config.toml", CONFIG.encode())
        unit = "scx_loader.service"
        tree.link(
            f"etc/systemd/system/multi-user.target.wants/{unit}", f"/usr/lib/systemd/system/{unit}"
        )
    return tree.archive()


def _lines(launched: qemu.Launched, console_log: Path) -> Iterator[str]:
    """Lines on the console until the machine is off. Raises qemu.QemuError if it takes too long."""
    deadline_s = time.monotonic() + LIFETIME_S
    seen = 0
    while True:
        is_over = launched.process.poll() is not None
        *lines, _rest = console_log.read_text(errors="replace").split("\n")
        yield from (line.rstrip("\r") for line in lines[seen:])
        seen = len(lines)
        if is_over:
            return
        if time.monotonic() > deadline_s:
            raise qemu.QemuError(f"the machine is not off after {LIFETIME_S:g} s")
        time.sleep(_POLL_S)
