# SPDX-License-Identifier: GPL-2.0-only
"""The system bus and polkit that tests of services use: both authorize by the caller's user."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import system_bus
from sched_ext import TIMEOUT_S
from system_bus import ACTIONS, BUS, POLICIES, POLKIT, USER, Daemon, SystemBus
from vm.guest import CommandError, Guest
from vm.initramfs import File

Ask = Callable[..., bool]

DENIED = "Access denied"
PRIMARY_OWNER = 1

POLICY = """\
<busconfig>
  <policy user="root"><allow own="org.scx.test.Roots"/></policy>
  <policy context="default"><allow own="org.scx.test.Everybodys"/></policy>
</busconfig>
"""
ACTION = """\
  <action id="org.scx.test.{name}">
    <description>For a test</description>
    <message>For a test</message>
    <defaults>
      <allow_any>{any}</allow_any>
      <allow_inactive>yes</allow_inactive>
      <allow_active>yes</allow_active>
    </defaults>
  </action>
"""
ACTION_FILE = "<policyconfig>\n{}{}</policyconfig>\n".format(
    ACTION.format(name="forbidden", any="no"), ACTION.format(name="permitted", any="yes")
)


@pytest.fixture(scope="session")
def programs() -> list[Path]:
    return system_bus.programs()


@pytest.fixture(scope="session")
def files() -> dict[str, File]:
    return system_bus.files() | {
        f"{POLICIES}/org.scx.test.conf": File(POLICY),
        f"{ACTIONS}/org.scx.test.policy": File(ACTION_FILE),
    }


@pytest.fixture
def authorised(bus: SystemBus, guest: Guest) -> Iterator[Ask]:
    """Whether polkit lets a process of a user do something; a service, or `asker`, asks it."""
    sleepers = {name: guest.spawn(name, ["sleep", "3600"], user=name) for name in ("root", USER)}

    def ask(user: str, action: str, asker: str = "root") -> bool:
        pid, uid = sleepers[user].pid, guest.run(["id", "-u", user]).stdout.strip()
        # No start time: polkit looks it up. No details, no flags, no name to cancel it by.
        details = ["pid", "u", str(pid), "start-time", "t", "0", "uid", "i", uid]
        words = ["unix-process", "3", *details, f"org.scx.test.{action}", "0", "0", ""]
        signature = "(sa{sv})sa{ss}us"
        answer = bus.call(POLKIT, "CheckAuthorization", signature, *words, user=asker)
        return answer[0][0]

    yield ask
    for process in sleepers.values():
        process.signal(signal.SIGKILL)
        process.wait(TIMEOUT_S)


def request_name(bus: SystemBus, name: str, user: str) -> list[int]:
    return bus.call(BUS, "RequestName", "su", name, "0", user=user)


def owner(guest: Guest, daemon: Daemon, form: str) -> str:
    """Whose process it is, as stat writes it."""
    return guest.run(["stat", "-c", form, f"/proc/{daemon.process.pid}"]).check().stdout.strip()


@pytest.mark.parametrize("user", ["root", USER, "nobody"])
def test_everybody_is_answered(bus: SystemBus, user: str) -> None:
    (names,) = bus.call(BUS, "ListNames", user=user)
    assert {BUS.service, POLKIT.service} <= set(names)
    assert bus.get(POLKIT, "BackendVersion", user=user)


def test_the_bus_knows_who_calls(bus: SystemBus, guest: Guest) -> None:
    (uid,) = bus.call(BUS, "GetConnectionUnixUser", "s", POLKIT.service)
    assert str(uid) == owner(guest, bus.polkit, "%u")


def test_the_bus_is_not_root(bus: SystemBus, guest: Guest) -> None:
    assert owner(guest, bus.daemon, "%U") not in {"root", "UNKNOWN"}


def test_a_name_is_owned_by_whom_the_policy_names(bus: SystemBus) -> None:
    assert request_name(bus, "org.scx.test.Roots", "root") == [PRIMARY_OWNER]
    for user in (USER, "nobody"):
        assert request_name(bus, "org.scx.test.Everybodys", user) == [PRIMARY_OWNER]
        with pytest.raises(CommandError, match=DENIED):
            request_name(bus, "org.scx.test.Roots", user)
    # What no policy names.
    with pytest.raises(CommandError, match=DENIED):
        request_name(bus, "org.scx.test.Nobodys", "root")


def test_polkit_judges_by_the_user(authorised: Ask) -> None:
    assert authorised("root", "permitted")
    assert authorised("root", "forbidden")
    assert authorised(USER, "permitted")
    assert not authorised(USER, "forbidden")


def test_polkit_knows_no_other_action(authorised: Ask) -> None:
    with pytest.raises(CommandError, match="not registered"):
        authorised("root", "unknown")


def test_only_root_may_ask_about_others(authorised: Ask) -> None:
    assert authorised(USER, "permitted", asker=USER)
    with pytest.raises(CommandError, match="Only trusted callers"):
        authorised("root", "permitted", asker=USER)


@pytest.mark.parametrize("client", ["gdbus", "dbus-send"])
def test_other_clients(bus: SystemBus, guest: Guest, client: str) -> None:
    """They name errors."""
    if not guest.run(["which", client]).ok:
        pytest.skip(f"{client} is not installed")
    command = {
        "gdbus": "gdbus call --system -d {0} -o {1} -m {2}.RequestName org.scx.test.Roots 0",
        "dbus-send": "dbus-send --system --print-reply --dest={0} {1} {2}.RequestName "
        "string:org.scx.test.Roots uint32:0",
    }[client].format(*BUS)
    assert "uint32 1" in guest.run(command, TIMEOUT_S).check().stdout
    refused = guest.run(command, TIMEOUT_S, user=USER)
    assert refused.status == 1
    assert "org.freedesktop.DBus.Error.AccessDenied" in refused.stderr


def test_both_can_be_restarted(bus: SystemBus) -> None:
    before = bus.call(BUS, "GetId")
    bus.polkit.stop()
    assert POLKIT.service not in bus.call(BUS, "ListNames")[0]
    bus.stop()
    assert not bus.busctl("list").ok
    bus.start()
    assert bus.call(BUS, "GetId") != before
