# SPDX-License-Identifier: GPL-2.0-only
"""The connection to a guest, with a fake guest: heartbeats, requests of signal handlers, and QEMU's
exit."""

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from vm import protocol
from vm.link import GuestError, Link
from vm.qemu import Launched, Ports


class FakeGuest:
    """The guest's ends of the ports, and a program in place of QEMU."""

    def __init__(self, log: Path, qemu: str, max_silence_s: float) -> None:
        pairs = [socket.socketpair() for _ in range(3)]
        self.control, self.data, self.stream = (pair[1] for pair in pairs)
        self.control.setblocking(False)
        self.process = subprocess.Popen(["sh", "-c", qemu], stderr=subprocess.PIPE)
        ports = Ports(*(pair[0] for pair in pairs), terminal=None)
        launched = Launched(self.process, ports, monitor=None, inbox=None)
        self.link = Link(launched, log, lifetime_s=60, max_silence_s=max_silence_s)
        self.control.send(b"ready\n")

    def asked(self) -> bytes:
        try:
            return self.control.recv(1000)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.link.close(0)
        for port in (self.control, self.data, self.stream):
            port.close()


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[FakeGuest]:
    fake = FakeGuest(tmp_path / "log", "exec sleep 60", max_silence_s=0.4)
    yield fake
    fake.close()


def test_guest_that_answers_pings_is_not_killed(guest: FakeGuest) -> None:
    pings: list[bytes] = []

    def answer() -> bool:
        if guest.asked() == protocol.ping():
            pings.append(b"ping")
            guest.control.send(b"pong\n")
        return len(pings) == 4

    assert guest.link.wait_until(answer, timeout_s=20)


def test_output_is_a_heartbeat(guest: FakeGuest) -> None:
    ends_s = time.monotonic() + 1.2

    def write() -> bool:
        guest.stream.send(b"x")
        return time.monotonic() > ends_s

    assert guest.link.wait_until(write, timeout_s=20)
    assert guest.asked() == b""


def test_silent_guest_is_killed_and_its_log_named(guest: FakeGuest, tmp_path: Path) -> None:
    with pytest.raises(GuestError) as lost:
        guest.link.wait_until(lambda: False, timeout_s=20)
    reason = "the guest hangs: no heartbeat for 0.4 s"
    assert str(lost.value) == f"{reason}; console log: {tmp_path / 'log'}"
    assert guest.asked() == protocol.ping()
    assert guest.process.wait(5) < 0


def test_kernel_message_of_a_silent_guest_is_reported(guest: FakeGuest, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[ 1.0] booted\n[ 9.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n")
    with pytest.raises(GuestError, match=r" s \(rcu: INFO: .* stalls .*\); console log: "):
        guest.link.wait_until(lambda: False, timeout_s=20)


def test_only_waiting_counts_as_silence(guest: FakeGuest) -> None:
    guest.link.poll()
    time.sleep(0.6)
    assert not guest.link.wait_until(lambda: False, timeout_s=0.1)


class Interrupted:
    """A control port. After each part that is sent, a signal handler runs, and sends another
    request."""

    def __init__(self, port: socket.socket, link: Link, requests: list[bytes]) -> None:
        self.port, self.link, self.requests = port, link, requests

    def send(self, data: bytes) -> int:
        # Send only a part, as if the port were nearly full.
        sent = self.port.send(data[:3])
        if self.requests:
            self.link.send(self.requests.pop(0))
        return sent

    def close(self) -> None:
        self.port.close()


def test_requests_of_a_signal_handler_are_sent_once_and_in_order(guest: FakeGuest) -> None:
    ports = guest.link._ports
    control = Interrupted(ports.control, guest.link, [b"second\n", b"third\n"])
    ports.control = control  # type: ignore[assignment]
    guest.link.send(b"first\n")
    assert guest.asked() == b"first\nsecond\nthird\n"
    assert not guest.link._outgoing


@pytest.mark.parametrize(
    ("qemu", "is_clean"), [("exit 0", True), ("exit 1", False), ("sleep 9", False)]
)
def test_exit_of_qemu(tmp_path: Path, qemu: str, is_clean: bool) -> None:
    fake = FakeGuest(tmp_path / "log", f"exec {qemu}" if "sleep" in qemu else qemu, 60)
    assert fake.link.close(0.5) is is_clean
    assert fake.process.returncode is not None
