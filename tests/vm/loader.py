# SPDX-License-Identifier: GPL-2.0-only
"""scx_loader in a guest, called by busctl, dbus-send and scxctl."""

from __future__ import annotations

import signal
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sched_ext import TIMEOUT_S, read, wait_for
from schedulers import C_SCHEDULERS, ROOT, RUST_SCHEDULERS
from system_bus import ACTIONS, POLICIES, USER, Peer, SystemBus
from vm.guest import CommandError, Guest, Process, Result
from vm.initramfs import File

LOADER = Peer("org.scx.Loader", "/org/scx/Loader", "org.scx.Loader")
SERVICES = ROOT / "services"

#: Paths in the guest: the directory of the manifests, the directory of the programs (links to the
#: schedulers, and the fake schedulers below), and the loader's configuration file.
SCHEDULERS = "/usr/share/scx/schedulers"
PROGRAMS = "/srv/programs"
CONFIG = "/srv/config.toml"

#: Fake schedulers, as shell scripts by name: one exits with an error, the other neither loads a
#: scheduler nor ends on SIGINT or SIGTERM.
FAULTY = {
    "scx_exits": "echo 'nothing works' >&2; exit 1",
    "scx_hangs": "trap '' INT TERM; echo hanging >&2; while :; do sleep 1; done",
}

SUPERVISION = """
[supervision]
max_failures = 3
backoff_s = 0.5
stop_timeout_s = 2
"""


#: The services that scx_fake_power (testbed/power) imitates on the system bus: two versions of
#: power-profiles-daemon, and systemd-logind.
NEW_PROFILES = Peer(
    "org.freedesktop.UPower.PowerProfiles",
    "/org/freedesktop/UPower/PowerProfiles",
    "org.freedesktop.UPower.PowerProfiles",
)
OLD_PROFILES = Peer(
    "net.hadess.PowerProfiles", "/net/hadess/PowerProfiles", "net.hadess.PowerProfiles"
)
LOGIN = Peer("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
FAKES = {"new": NEW_PROFILES, "old": OLD_PROFILES, "login": LOGIN}
FAKE_POLICY = "".join(
    f'<allow own="{peer.service}"/><allow send_destination="{peer.service}"/>'
    for peer in FAKES.values()
)


#: With this configuration, the mode auto follows the power profile. The arguments of scx_simple in
#: two modes are set here, because its manifest has none.
FOLLOWING = """
[auto]
follow_power_profile = true
performance = 'Server'
[scheds.scx_simple]
powersave_mode = ['-f']
server_mode = ['-v']
"""


def write(guest: Guest, path: str, text: str) -> None:
    """Writes a file in the guest. The text must not contain double quotes."""
    guest.run(f'echo "{text}" >{path}').check()


def _manifest(name: str) -> str:
    none = '"auto": [], "gaming": [], "powersave": [], "lowlatency": [], "server": []'
    return f'{{"name": "{name}", "options": [], "modes": {{{none}}}, "kfuncs": []}}'


def descriptions(build: Path, folder: str) -> dict[str, File]:
    """The manifests of all schedulers, for the directory `folder` of the guest."""
    paths = [build / "scheds/c" / f"{name}.json" for name in C_SCHEDULERS]
    paths += [build / "rust" / f"{name}.json" for name in RUST_SCHEDULERS]
    return {f"{folder}/{path.name}": File(path) for path in paths}


def files(build: Path, folder: str = SCHEDULERS) -> dict[str, File]:
    """Files of the guest that the loader needs: the manifests in the directory `folder`, the fake
    schedulers, the configuration, and the policies of the bus and of polkit."""
    found = descriptions(build, folder)
    for name in [*FAULTY, "scx_missing"]:
        found[f"{folder}/{name}.json"] = File(_manifest(name))
    for name, text in FAULTY.items():
        found[f"{PROGRAMS}/{name}"] = File(f"#!/bin/sh\n{text}\n", 0o755)
    return found | {
        CONFIG: File(SUPERVISION),
        f"{POLICIES}/org.scx.Loader.conf": File(SERVICES / "dbus/org.scx.Loader.conf"),
        f"{POLICIES}/fakes.conf": File(
            f'<busconfig><policy context="default">{FAKE_POLICY}</policy></busconfig>'
        ),
        f"{ACTIONS}/org.scx.Loader.policy": File(SERVICES / "polkit/org.scx.Loader.policy"),
    }


class Loader:
    """The loader of a guest. It does not run before start()."""

    def __init__(self, bus: SystemBus) -> None:
        self.bus = bus
        self.guest = bus.guest
        for name in (*C_SCHEDULERS, *RUST_SCHEDULERS):
            self.guest.run(["ln", "-sf", f"/usr/bin/{name}", f"{PROGRAMS}/{name}"]).check()
        self.process: Process | None = None

    def start(self, *args: str, bus_socket: str = "") -> Loader:
        """Starts the loader, and waits until it answers. Fails the test if the loader ends instead.
        If `bus_socket` is given, the loader connects to this socket, not to that of the bus."""
        places = ["--schedulers", SCHEDULERS, "--programs", PROGRAMS]
        config = [] if "--config" in args else ["--config", CONFIG]
        bus = ["env", f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={bus_socket}"] if bus_socket else []
        command = [*bus, "scx_loader", *places, *config, *args]
        self.process = self.guest.spawn("scx_loader", command)
        process = self.process
        wait_for("the loader answers", lambda: not process.running() or self.answers())
        assert process.running(), process.stderr()
        return self

    def answers(self) -> bool:
        """Whether the loader owns its name on the bus."""
        return self.bus.busctl("status", LOADER.service).ok

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends the loader by a signal. Returns the exit status."""
        assert self.process
        self.process.signal(number)
        return self.process.wait(TIMEOUT_S)

    def log(self) -> str:
        """The standard error of the loader, which includes that of its schedulers."""
        assert self.process
        return self.process.stderr()

    def call(self, method: str, signature: str = "", *args: str, user: str = "root") -> None:
        """Calls a method, and waits for its completion. Raises CommandError if it fails."""
        words = [*LOADER, method, *([signature, *args] if signature else [])]
        self.bus.busctl("call", "--", *words, user=user).check()

    def error(self, method: str, *words: str, user: str = "root") -> str:
        """The error of a call that must fail: its name and message. `words` are the method's
        arguments, in the format of dbus-send."""
        call = ["dbus-send", "--system", "--print-reply", f"--dest={LOADER.service}", LOADER.path]
        done = self.guest.run([*call, f"{LOADER.interface}.{method}", *words], user=user)
        assert done.status != 0, done
        return done.stderr

    def refusal(self, method: str, signature: str = "", *args: str, user: str = "root") -> str:
        """The error message of a call that must fail."""
        try:
            self.call(method, signature, *args, user=user)
        except CommandError as error:
            return str(error)
        raise AssertionError(f"{method} {args} was not refused")

    def get(self, name: str, user: str = "root") -> Any:
        """The value of a property."""
        return self.bus.get(LOADER, name, user=user)

    def arguments(self) -> list[str]:
        """The command line arguments of the running scheduler."""
        line = read(self.guest, f"/proc/{self.get('SchedulerPid')}/cmdline")
        return line.removesuffix("\0").split("\0")[1:]

    def set_profile(self, service: Peer, profile: str) -> None:
        """Sets the power profile of a service of scx_fake_power."""
        self.bus.busctl("set-property", *service, "ActiveProfile", "s", profile).check()

    def run_operation(self, operation: str, *options: str, user: str = "root") -> int:
        """Begins an operation, and returns its id. Options are in the format of busctl: name, type
        and value."""
        words = [operation, str(len(options)), *" ".join(options).split()]
        (number,) = self.bus.call(LOADER, "RunOperation", "sa{sv}", *words, user=user)
        return number

    def operation(self, number: int) -> list[str]:
        """State and message of an operation."""
        return self.bus.call(LOADER, "OperationState", "u", str(number), user=USER)

    def wait_state(self, state: str) -> None:
        """Waits until the loader is in this state."""
        wait_for(f"the state is {state}", lambda: self.get("State") == state)

    def ctl(self, *args: str, user: str = "root") -> Result:
        """Runs scxctl, and returns its result."""
        return self.guest.run(["scxctl", *args], 2 * TIMEOUT_S, user=user)


def strings(values: Sequence[str]) -> list[str]:
    """An array of strings, in the format of busctl."""
    return [str(len(values)), *values]


def changes(element: ET.Element, otherwise: str) -> str:
    """The annotation EmitsChangedSignal of an interface or property, or `otherwise` without it."""
    name = "org.freedesktop.DBus.Property.EmitsChangedSignal"
    found = element.find(f"annotation[@name='{name}']")
    return otherwise if found is None else found.attrib["value"]


def signatures(xml: str) -> dict[str, str]:
    """The methods, signals and properties of org.scx.Loader by name, with their D-Bus types. For
    a property, the text also has the access, and how changes are signalled."""
    (interface,) = ET.fromstring(xml).findall("interface[@name='org.scx.Loader']")
    members = {}
    for method in interface.findall("method"):
        types = [arg.attrib["type"] for arg in method.findall("arg")]
        members[method.attrib["name"]] = "method " + "".join(types)
    for one in interface.findall("signal"):
        types = [arg.attrib["type"] for arg in one.findall("arg")]
        members[one.attrib["name"]] = "signal " + "".join(types)
    for one in interface.findall("property"):
        how = changes(one, changes(interface, "true"))
        members[one.attrib["name"]] = f"{one.attrib['access']} {one.attrib['type']} {how}"
    return members
