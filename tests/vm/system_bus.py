# SPDX-License-Identifier: GPL-2.0-only
"""A system bus and polkit in a guest, for tests of D-Bus services. The daemons, their configuration
and the clients are those of the host.

    @pytest.fixture(scope="session")
    def programs(programs: list[Path]) -> list[Path]:
        return [*programs, *system_bus.programs()]

    @pytest.fixture(scope="session")
    def files() -> dict[str, File]:
        return system_bus.files() | {f"{system_bus.ACTIONS}/ours.policy": File(POLICY)}

    def test_it(bus: SystemBus) -> None:
        assert bus.get(POLKIT, "BackendName", user="nobody") == "js"

The guest has no D-Bus service files, so messages do not activate services. It has no logind, so
users have no sessions, and polkit uses `allow_any` of an action's defaults.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sched_ext import TIMEOUT_S, wait_for
from vm.guest import Guest, Process, Result
from vm.initramfs import File

#: Directories of bus policies, and of polkit actions.
POLICIES = "/usr/share/dbus-1/system.d"
ACTIONS = "/usr/share/polkit-1/actions"
#: An unprivileged user, in addition to nobody.
USER = "user"

_SYSTEM_CONF = Path("/usr/share/dbus-1/system.conf")
#: Possible paths of polkit's files, which depend on the distribution.
_POLKITD = [Path("/usr/lib/polkit-1/polkitd"), Path("/usr/libexec/polkitd")]
_POLKIT_CONF = [
    Path(folder) / "org.freedesktop.PolicyKit1.conf"
    for folder in (POLICIES, "/etc/dbus-1/system.d")
]
#: The default authentication timeout, 30 s, may be too short for a slow guest.
_LOCAL_CONF = '<busconfig><limit name="auth_timeout">60000</limit></busconfig>\n'
_MACHINE_ID = "0123456789abcdef0123456789abcdef\n"


class Peer(NamedTuple):
    """An interface of an object on the bus."""

    service: str
    path: str
    interface: str


BUS = Peer("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
POLKIT = Peer(
    "org.freedesktop.PolicyKit1",
    "/org/freedesktop/PolicyKit1/Authority",
    "org.freedesktop.PolicyKit1.Authority",
)


def programs() -> list[Path]:
    """The daemons and the clients. Skips the tests if a required program is missing."""
    return [
        _found("dbus-daemon", _in_path("dbus-daemon"), "dbus-daemon"),
        _found("polkitd", _POLKITD, "polkitd"),
        _found("busctl", _in_path("busctl"), "systemd"),
        *_in_path("gdbus"),
        *_in_path("dbus-send"),
    ]


def files() -> dict[str, File]:
    """The daemons' configuration and the users. Skips the tests if a file is missing."""
    conf = _found("the system bus's configuration", [_SYSTEM_CONF], "dbus-system-bus-common")
    polkit_conf = _found("polkit's policy for the bus", _POLKIT_CONF, "polkitd")
    passwd, group = _users(conf)
    return {
        str(conf): File(conf),
        "/etc/dbus-1/system-local.conf": File(_LOCAL_CONF),
        str(polkit_conf): File(polkit_conf),
        "/etc/machine-id": File(_MACHINE_ID),
        "/etc/passwd": File(passwd),
        "/etc/group": File(group),
    }


def _in_path(program: str) -> list[Path]:
    found = shutil.which(program)
    return [Path(found)] if found else []


def _found(what: str, candidates: list[Path], package: str) -> Path:
    for path in filter(Path.exists, candidates):
        return path
    pytest.skip(f"{what} is missing: install the package {package}")


def _users(conf: Path) -> tuple[str, str]:
    """The files passwd and group of a guest, with the users that the daemons run as."""
    bus_user = re.search(r"<user>(\w+)</user>", conf.read_text())
    ids = {"root": 0, bus_user[1] if bus_user else "messagebus": 100, "polkitd": 101}
    ids |= {USER: 1000, "nobody": 65534}
    passwd = [f"{name}:x:{number}:{number}::/:/bin/sh\n" for name, number in ids.items()]
    group = [f"{name}:x:{number}:\n" for name, number in ids.items()]
    return "".join(passwd), "".join(group)


class Daemon:
    """A daemon in the guest that can be stopped and started again."""

    def __init__(self, guest: Guest, command: list[str], answers: Callable[[], bool]) -> None:
        self._guest = guest
        self._command = command
        self._answers = answers
        self.process: Process | None = None

    def start(self) -> None:
        """Starts the daemon, and waits until the daemon answers. Fails the test if the daemon ends
        instead."""
        process = self.process = self._guest.spawn(self._command[0], self._command)
        wait_for(f"{process.name} answers", lambda: not process.running() or self._answers())
        assert process.running(), process.stderr()

    def stop(self) -> None:
        """Stops the daemon, if it was started."""
        if self.process is not None:
            self.process.signal(signal.SIGTERM)
            self.process.wait(TIMEOUT_S)


class SystemBus:
    """The system bus of a guest, and polkit."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        command = ["dbus-daemon", "--system", "--nofork", "--nopidfile", "--nosyslog"]
        self.daemon = Daemon(guest, command, lambda: self._has(BUS, "Features"))
        self.polkit = Daemon(guest, ["polkitd"], lambda: self._has(POLKIT, "BackendVersion"))

    def start(self) -> None:
        """Starts the bus and polkit, and waits until they answer."""
        self.guest.run(["mkdir", "-p", "/run/dbus"]).check()
        self.daemon.start()
        self.polkit.start()

    def stop(self) -> None:
        """Stops the bus and polkit, if they were started."""
        self.polkit.stop()
        self.daemon.stop()

    def busctl(self, *words: str, user: str = "root") -> Result:
        """Runs busctl, and returns its result. busctl prints the messages of errors, but not their
        names."""
        command = ["busctl", "--system", f"--timeout={TIMEOUT_S:g}", *words]
        return self.guest.run(command, 2 * TIMEOUT_S, user=user)

    def call(
        self, peer: Peer, method: str, signature: str = "", *args: str, user: str = "root"
    ) -> list[Any]:
        """Calls a method, and returns its values. Arguments are in the format of busctl. Raises
        CommandError if the call fails."""
        words = [*peer, method, *([signature, *args] if signature else [])]
        return self._value("call", *words, user=user)

    def get(self, peer: Peer, name: str, *, user: str = "root") -> Any:
        """The value of a property. Raises CommandError if the call fails."""
        return self._value("get-property", *peer, name, user=user)

    def _value(self, *words: str, user: str) -> Any:
        return json.loads(self.busctl("--json=short", *words, user=user).check().stdout)["data"]

    def _has(self, peer: Peer, name: str) -> bool:
        return self.busctl("get-property", *peer, name).ok
