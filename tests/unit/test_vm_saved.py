# SPDX-License-Identifier: GPL-2.0-only
"""Saved states of guests: what their key depends on, and when they are deleted. The limit of a
resumed guest's inbox. QEMU's monitor, with a fake QEMU."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from vm import qemu, saved, topology
from vm.kernels import Kernel
from vm.qmp import Monitor, MonitorError


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> qemu.Machine:
    monkeypatch.setattr(qemu.Emulator, "about", lambda _: "QEMU emulator version 10.0.2")
    (tmp_path / "vmlinuz").write_text("kernel")
    (tmp_path / "initramfs").write_text("image")
    return qemu.Machine(
        Kernel(tmp_path / "vmlinuz", "7.2.13", "test"),
        tmp_path / "initramfs",
        topology.find("smp4"),
        "replay",
        tmp_path / "console",
        serial_files=(tmp_path / "output",),
        seed=7,
        has_inbox=True,
    )


def test_saved_state_is_independent_of_seed_and_paths(
    machine: qemu.Machine, tmp_path: Path
) -> None:
    key = saved._key(machine)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("image")
    same = replace(
        machine,
        seed=8,
        initramfs=elsewhere,
        console_log=tmp_path / "c",
        serial_files=(tmp_path / "o",),
        emulator=qemu.Emulator(("/opt/qemu", "-L", "/opt/firmware")),
    )
    assert saved._key(same) == key


@pytest.mark.parametrize("what", ["kernel", "image", "topology", "arguments", "terminal"])
def test_saved_state_depends_on_everything_else(machine: qemu.Machine, what: str) -> None:
    key = saved._key(machine)
    if what == "kernel":
        machine.kernel.path.write_text("another")
    elif what == "image":
        machine.initramfs.write_text("another")
    changes = {
        "topology": {"topology": topology.find("numa")},
        "arguments": {"kernel_args": ("quiet",)},
        "terminal": {"terminal": True},
    }
    assert saved._key(replace(machine, **changes.get(what, {}))) != key


def test_unused_states_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    for name, age_days in (("old", 8), ("new", 6)):
        (tmp_path / name).write_text("state")
        (tmp_path / "lock" / name).touch()
        then_s = time.time() - age_days * 86400
        os.utime(tmp_path / name, (then_s, then_s))
    saved._prune(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("**/*")) == ["lock", "new", "new"]


def test_inbox_is_limited(machine: qemu.Machine) -> None:
    with pytest.raises(qemu.QemuError, match="is limited to"):
        saved.resume(machine, bytes(qemu.INBOX_BYTES), 1)


class FakeQemu(threading.Thread):
    """Sends a greeting, accepts the first command (qmp_capabilities), and answers each further
    command with the messages of the next list in `answers`."""

    def __init__(self, port: socket.socket, *answers: list[dict[str, object]]) -> None:
        super().__init__(daemon=True)
        self.asked: list[dict[str, object]] = []
        self._port = port
        self._answers = answers
        self.start()

    def run(self) -> None:
        self._tell({"QMP": {"version": {}}})
        lines = self._port.makefile()
        for answer in ([{"return": {}}], *self._answers):
            self.asked.append(json.loads(lines.readline()))
            for message in answer:
                self._tell(message)
        lines.close()
        self._port.close()

    def _tell(self, message: dict[str, object]) -> None:
        # Split the line in two, as a stream may do.
        line = json.dumps(message).encode() + b"\n"
        self._port.sendall(line[:5])
        self._port.sendall(line[5:])


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    pair = socket.socketpair()
    yield pair
    for end in pair:
        end.close()


def test_commands_and_events(ends: tuple[socket.socket, socket.socket]) -> None:
    stop = {"event": "STOP"}
    qemu_end = FakeQemu(ends[1], [stop, {"return": {"status": "paused"}}], [{"return": {}}])
    monitor = Monitor(ends[0])
    assert monitor.execute("query-status") == {"status": "paused"}
    assert monitor.await_event("STOP", timeout_s=10)
    monitor.execute("migrate-set-parameters", announce_rounds=0)
    assert qemu_end.asked[2] == {
        "execute": "migrate-set-parameters",
        "arguments": {"announce-rounds": 0},
    }


def test_error_of_a_command(ends: tuple[socket.socket, socket.socket]) -> None:
    FakeQemu(ends[1], [{"error": {"class": "GenericError", "desc": "no such state"}}])
    with pytest.raises(MonitorError, match="^QEMU: no such state$"):
        Monitor(ends[0]).execute("migrate-incoming", uri="file:x")


def test_qemu_that_exits_or_is_silent(ends: tuple[socket.socket, socket.socket]) -> None:
    FakeQemu(ends[1], [{"return": {}}])
    monitor = Monitor(ends[0])
    with pytest.raises(MonitorError, match="QEMU has exited"):
        monitor.await_event("STOP", timeout_s=10)
    silent, _kept = socket.socketpair()
    with pytest.raises(MonitorError, match="QEMU does not answer"):
        Monitor(silent).execute("query-status", timeout_s=0.1)
