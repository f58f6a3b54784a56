# SPDX-License-Identifier: GPL-2.0-only
"""Guests that are resumed from a saved state.

For each combination of kernel, topology, base image and accelerator, one guest boots and stops
(guest/scx_resume.c). The state of this guest is saved below the cache. All guests of that kind load
the state, and unpack their programs and other files from their inboxes: an inbox is memory of a PCI
device, which the host fills before the guest continues. Resuming takes a second; a boot takes 5 to
20 s. Deterministic guests start from the same state, so they are as reproducible as if they had
booted.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import debs

from . import progress, qemu
from .link import GuestError
from .qmp import Monitor, MonitorError

#: Timeout for booting, and for saving or loading the state.
_BOOT_TIMEOUT_S = 300.0
_STATE_TIMEOUT_S = 120.0
#: States that were not used for this long are deleted when another state is saved.
_KEPT_S = 7 * 24 * 3600.0
#: Seed of the emulator while a deterministic guest boots.
_SEED = 1
#: Size of the seed, which precedes the archive in the inbox.
_SEED_BYTES = 8
_POLL_S = 0.01


def resume(machine: qemu.Machine, archive: bytes, seed: int) -> qemu.Launched:
    """Resume a guest that unpacks `archive`. Unless `seed` is 0, it determines the guest's random
    numbers, a delay before the guest continues, and the CPU on which the guest continues.

    If no guest of this kind is saved, a guest is booted and saved first. Raises GuestError,
    QemuError, debs.DebsError.
    """
    if _SEED_BYTES + len(archive) > qemu.INBOX_BYTES:
        raise qemu.QemuError(f"the guest's inbox is limited to {qemu.INBOX_BYTES} bytes")
    state = _state_of(machine)
    launched = qemu.launch(machine, "-incoming", "defer")
    try:
        assert launched.monitor and launched.inbox is not None
        # Fill the inbox now, because loading the state has overwritten it with the empty inbox of
        # the saved guest.
        _load(launched.monitor, state)
        os.pwrite(launched.inbox, seed.to_bytes(_SEED_BYTES, "little") + archive, 0)
        # This is the last command: a later one would wake QEMU's main thread while the guest runs,
        # at a time that depends on the host (qemu_deterministic.c).
        launched.monitor.execute("cont")
    except MonitorError as error:
        raise GuestError(f"cannot resume a guest: {error}: {launched.close()}") from error
    except BaseException:
        launched.close()
        raise
    return launched


def _state_of(machine: qemu.Machine) -> Path:
    """The saved state, created if necessary."""
    folder = debs.cache_dir() / "guests"
    state = folder / f"{machine.kernel.release}-{machine.topology.name}-{_key(machine)}"
    with debs.locked(folder / "lock" / state.name):
        if not state.exists():
            _prune(folder)
            _save(machine, state)
        os.utime(state)
    return state


def _key(machine: qemu.Machine) -> str:
    """A digest of everything that a saved state depends on."""
    digest = hashlib.sha256()
    inputs = {str(path): path for path in (machine.kernel.path, machine.initramfs)}
    outputs = {f"file:{path}" for path in (machine.console_log, *machine.serial_files)}
    # The key does not depend on the emulator's path, nor on the seed of resumed guests.
    unseeded = replace(machine, seed=machine.seed and _SEED)
    args = qemu.machine_args(unseeded)[len(machine.emulator.command) :]
    for word in [machine.emulator.about(), str(machine.terminal), *args]:
        if word in inputs:
            digest.update(inputs[word].read_bytes())
        elif word not in outputs:
            digest.update(word.encode() + b"\0")
    for library in machine.emulator.preloaded:
        digest.update(library.read_bytes())
    return digest.hexdigest()[:16]


def _save(machine: qemu.Machine, state: Path) -> None:
    """Boot a guest until it stops, and save its state."""
    what = f"booting Linux {machine.kernel.release} ({machine.topology.name}) to save it"
    with progress.step(what), tempfile.TemporaryDirectory(dir=state.parent) as scratch:
        launched = qemu.launch(replace(machine, seed=machine.seed and _SEED), "-S")
        try:
            assert launched.monitor
            # QEMU reports events only after the QMP handshake, which running CPUs would delay. So
            # the CPUs are stopped at first (-S), and this command, which begins with the handshake,
            # starts them. Its reply may come only when all CPUs are idle (qemu_deterministic.c).
            launched.monitor.execute("cont", _BOOT_TIMEOUT_S)
            if not launched.monitor.await_event("STOP", _BOOT_TIMEOUT_S):
                raise MonitorError(f"it did not stop within {_BOOT_TIMEOUT_S:g} s")
            written = Path(scratch) / "state"
            _write(launched.monitor, written)
        except MonitorError as error:
            raise GuestError(f"cannot save a guest: {error}: {launched.close()}") from error
        except BaseException:
            launched.close()
            raise
        launched.close()
        written.rename(state)


def _write(monitor: Monitor, state: Path) -> None:
    monitor.execute("migrate-set-parameters", max_bandwidth=1 << 40)
    monitor.execute("migrate", uri=f"exec:cat >{shlex.quote(str(state))}")
    _await(monitor, "query-migrate", {"completed"}, {"failed", "cancelled"})


def _load(monitor: Monitor, state: Path) -> None:
    # Disable QEMU's gratuitous ARP after a migration. Its timers run in host time, and would
    # shorten the turns of CPUs in a deterministic guest.
    monitor.execute("migrate-set-parameters", announce_rounds=0)
    monitor.execute("migrate-incoming", uri=f"exec:cat <{shlex.quote(str(state))}")
    _await(monitor, "query-status", {"guest-panicked"}, {"internal-error", "shutdown"})


def _await(monitor: Monitor, query: str, wanted: set[str], bad: set[str]) -> None:
    deadline_s = time.monotonic() + _STATE_TIMEOUT_S
    while (status := monitor.execute(query).get("status")) not in wanted:
        if status in bad or time.monotonic() > deadline_s:
            raise MonitorError(f"QEMU says '{status}'")
        time.sleep(_POLL_S)


def _prune(folder: Path) -> None:
    """Delete unused states, and leftovers of killed processes."""
    for path in folder.glob("*"):
        if time.time() - path.stat().st_mtime < _KEPT_S or path.name == "lock":
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        (folder / "lock" / path.name).unlink(missing_ok=True)
