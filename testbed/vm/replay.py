# SPDX-License-Identifier: GPL-2.0-only
"""Deterministic guests: the same kernel, programs, topology, command and seed give the same bytes.

    outcome = replay.run(kernel, topology, "scx_load --json", programs=[path], seed=1)

Time in such a guest advances by the instructions that its CPUs execute, in round-robin order. While
all CPUs are idle, time jumps to the next timer. A running guest gets no input: the command is in
its inbox (see the module saved), and the output goes to files. docs/deterministic.md explains uses
and limits.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import emulator, initramfs, progress, qemu, saved
from .emulator import PRELOADED_LIBRARY
from .guest import GuestError, temporary_log
from .initramfs import File
from .kernels import Kernel
from .programs import RESUME, built
from .qmp import MonitorError
from .topology import Topology

#: The maximum that QEMU accepts.
MAX_SEED = 2**32 - 1
#: Kernel parameters that disable the randomization of kernel and user addresses.
KERNEL_ARGS = ("nokaslr", "norandmaps")

_POLL_S = 0.1
#: Timeout for QEMU to exit after it has closed its monitor.
_EXIT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Outcome:
    """The result of a deterministic guest, the same in each run."""

    #: The exit status, as in a shell: 128 + N for death by signal N.
    status: int
    #: Whether the command was signalled at its time limit.
    timed_out: bool
    #: Both output streams of the command.
    output: bytes
    #: The guest's console: the kernel's log.
    console: bytes


@dataclass(frozen=True)
class Limit:
    """The command's time limit, in guest time."""

    #: The limit, counted from the command's start.
    seconds: float
    #: The signal that is sent to the command's process group. 20 s later, the group is killed.
    signal: int


def run(
    kernel: Kernel,
    topology: Topology,
    script: str,
    *,
    programs: Sequence[Path] = (),
    seed: int = 1,
    limit: Limit | None = None,
    lifetime_s: float = 600.0,
    sink: Callable[[bytes], object] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    is_announced: bool = True,
    plugin: str | None = None,
) -> Outcome:
    """Resume a guest that runs `script`, and wait for the guest's end.

    `sink` receives the output as it arrives. After `lifetime_s` of host time, or when `cancelled()`
    is true, the guest is killed. `plugin` is the argument of QEMU's option -plugin. Raises
    GuestError, qemu.QemuError, debs.DebsError, initramfs.InitramfsError.
    """
    fit = emulator.find_deterministic()
    if plugin:
        fit = replace(fit, command=(*fit.command, "-plugin", plugin))
    with tempfile.TemporaryDirectory(prefix="scx-replay-") as scratch:
        # The random path does not affect the guest: only QEMU uses it.
        directory = Path(scratch)
        image = directory / "initramfs.cpio"
        image.write_bytes(_base_image())
        machine = qemu.Machine(
            kernel,
            image,
            topology,
            "replay",
            directory / "console",
            kernel_args=KERNEL_ARGS,
            emulator=fit,
            serial_files=(directory / "output", directory / "status"),
            seed=seed,
            has_inbox=True,
        )
        parcel = _parcel(script, programs, limit)
        if is_announced:
            progress.note(f"resuming Linux {kernel.release} ({topology.name}, seed {seed})")
        error = _execute(machine, parcel, lifetime_s, sink, cancelled)
        return _outcome(directory, error)


def _base_image() -> bytes:
    return initramfs.build([built(RESUME)], "replay")


def base_digest() -> str:
    """A digest of what all deterministic guests share: base image and preloaded library."""
    parts = _base_image(), built(PRELOADED_LIBRARY).read_bytes()
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _parcel(script: str, wanted: Sequence[Path], limit: Limit | None) -> bytes:
    words = f"{limit.seconds:g} {limit.signal:d}\n" if limit else "\n"
    files = {"/guest/command": File(script + "\n"), "/guest/limit": File(words)}
    return initramfs.parcel(wanted, files)


def _execute(
    machine: qemu.Machine,
    parcel: bytes,
    lifetime_s: float,
    sink: Callable[[bytes], object],
    cancelled: Callable[[], bool],
) -> str | None:
    """Run QEMU until the guest is done or dies. If the guest has to be killed before that, or QEMU
    fails, returns the reason, else None."""
    deadline_s = time.monotonic() + lifetime_s
    launched = saved.resume(machine, parcel, machine.seed or 0)
    assert launched.monitor
    seen = 0
    try:
        # A guest that is done stops its machine. If the guest dies, QEMU exits.
        while not launched.monitor.await_event("STOP", _POLL_S):
            if time.monotonic() > deadline_s:
                return f"the guest exceeded its life time of {lifetime_s:g} s"
            if cancelled():
                return "cancelled"
            seen += _forward(machine.serial_files[0], seen, sink)
    except MonitorError:
        return _complaint(launched)
    finally:
        launched.close()
        _forward(machine.serial_files[0], seen, sink)
    return None


def _complaint(launched: qemu.Launched) -> str | None:
    """Why QEMU, which has closed its monitor, failed. None if it exits with status 0, as it does
    when the guest dies."""
    try:
        status = launched.process.wait(_EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"QEMU did not exit within {_EXIT_TIMEOUT_S:g} s"
    return f"QEMU failed: {launched.close() or f'status {status}'}" if status else None


def _forward(file: Path, seen: int, sink: Callable[[bytes], object]) -> int:
    """Copy the data of `file` after `seen` bytes to `sink`; returns the number of bytes copied."""
    if not file.exists():
        return 0
    with file.open("rb") as source:
        source.seek(seen)
        chunk = source.read()
    if chunk:
        sink(chunk)
    return len(chunk)


def _outcome(directory: Path, error: str | None) -> Outcome:
    said = dict(
        (line.split() + [""])[:2] for line in _read(directory / "status").decode().splitlines()
    )
    console = _read(directory / "console")
    if error or "ended" not in said:
        kept = temporary_log()
        kept.write_bytes(console)
        raise GuestError(f"{error or 'the guest died'}; console log: {kept}")
    return Outcome(int(said["ended"]), "timeout" in said, _read(directory / "output"), console)


def _read(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""
