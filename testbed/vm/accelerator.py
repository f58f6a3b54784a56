# SPDX-License-Identifier: GPL-2.0-only
"""Selects hardware virtualisation or emulation, depending on what works on this machine.

Access to /dev/kvm is not sufficient: on nested and restricted hosts a stock kernel may hang under
KVM. So the kernel is booted once under KVM, with an initramfs that prints a message and powers off.
The result is cached for this kernel, this QEMU and this host kernel. SCX_VM_ACCEL=tcg|kvm overrides
the probe.
"""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from pathlib import Path

from debs import cache_dir, locked

from . import initramfs, qemu, topology
from .kernels import Kernel
from .progress import step

#: A guest that works under KVM prints its message in much less than this time.
PROBE_TIMEOUT_S = 20.0
_DEVICE = Path("/dev/kvm")
_HELLO = "scx-probe: hello"
_INIT = f"#!/bin/sh\necho '{_HELLO}' >/dev/console\npoweroff -f\n"


def choose(kernel: Kernel) -> str:
    """`kvm` if `kernel` boots under KVM, else `tcg`. SCX_VM_ACCEL overrides this.

    Raises qemu.QemuError, initramfs.InitramfsError, debs.DebsError.
    """
    forced = os.environ.get("SCX_VM_ACCEL")
    if forced:
        if forced not in ("tcg", "kvm"):
            raise qemu.QemuError(f"SCX_VM_ACCEL={forced}: use tcg or kvm")
        return forced
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return "tcg"
    return _remembered(kernel)


def _remembered(kernel: Kernel) -> str:
    """The result of the probe, possibly cached."""
    key = f"{kernel.release}_qemu-{qemu.Emulator().version()}_host-{platform.release()}"
    answer = cache_dir() / "accelerator" / key.replace("/", "-")
    with locked(answer.parent / "lock"):
        if not answer.exists():
            answer.write_text("kvm" if boots_under_kvm(kernel) else "tcg")
        return answer.read_text()


def boots_under_kvm(kernel: Kernel, timeout_s: float = PROBE_TIMEOUT_S) -> bool:
    """Whether `kernel` reaches user space under KVM within `timeout_s`."""
    tree = initramfs.base()
    tree.file("init", _INIT.encode(), 0o755)
    with tempfile.TemporaryDirectory(prefix="scx-probe-") as scratch:
        image = Path(scratch) / "initramfs.cpio"
        image.write_bytes(tree.archive())
        console_log = Path(scratch) / "console.log"
        machine = qemu.Machine(kernel, image, topology.TOPOLOGIES["1cpu"], "kvm", console_log)
        with step(f"probing KVM with Linux {kernel.release}"):
            process = qemu.spawn(qemu.machine_args(machine))
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return console_log.exists() and _HELLO in console_log.read_text(errors="replace")
