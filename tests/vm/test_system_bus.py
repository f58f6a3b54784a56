# SPDX-License-Identifier: GPL-2.0-only
"""The system bus and polkit that tests of services use. The decisions of both depend on the user
that a caller runs as."""

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
    """A function that asks polkit, as the user `asker`, whether a process of `user` is authorized
    for an action."""
    sleepers = {name: guest.spawn(name, ["sleep", "3600"], user=name) for name in ("root", USER)}

    def ask(user: str, action: str, asker: str = "root") -> bool:
        pid, uid = sleepers[user].pid, guest.run(["id", "-u", user]).stdout.strip()
        # A start time of 0 makes polkit look it up. The call has no details, no flags and no
        # cancellation id.
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
    """The user of a daemon's process, in this format of stat: %u for the id, %U for the name."""
    return guest.run(["stat", "-c", form, f"/proc/{daemon.process.pid}"]).check().stdout.strip()


@pytest.mark.parametrize("user", ["root", USER, "nobody"])
def test_all_users_are_answered(bus: SystemBus, user: str) -> None:
    (names,) = bus.call(BUS, "ListNames", user=user)
    assert {BUS.service, POLKIT.service} <= set(names)
    assert bus.get(POLKIT, "BackendVersion", user=user)


def test_bus_knows_the_user_of_a_connection(bus: SystemBus, guest: Guest) -> None:
    (uid,) = bus.call(BUS, "GetConnectionUnixUser", "s", POLKIT.service)
    assert str(uid) == owner(guest, bus.polkit, "%u")


def test_bus_does_not_run_as_root(bus: SystemBus, guest: Guest) -> None:
    assert owner(guest, bus.daemon, "%U") not in {"root", "UNKNOWN"}


def test_policy_restricts_the_owners_of_names(bus: SystemBus) -> None:
    assert request_name(bus, "org.scx.test.Roots", "root") == [PRIMARY_OWNER]
    for user in (USER, "nobody"):
        assert request_name(bus, "org.scx.test.Everybodys", user) == [PRIMARY_OWNER]
        with pytest.raises(CommandError, match=DENIED):
            request_name(bus, "org.scx.test.Roots", user)
    # No policy allows this name, not even for root.
    with pytest.raises(CommandError, match=DENIED):
        request_name(bus, "org.scx.test.Nobodys", "root")


def test_polkit_authorizes_by_user(authorised: Ask) -> None:
    assert authorised("root", "permitted")
    assert authorised("root", "forbidden")
    assert authorised(USER, "permitted")
    assert not authorised(USER, "forbidden")


def test_unknown_action_is_an_error(authorised: Ask) -> None:
    with pytest.raises(CommandError, match="not registered"):
        authorised("root", "unknown")


def test_only_root_may_ask_about_others(authorised: Ask) -> None:
    assert authorised(USER, "permitted", asker=USER)
    with pytest.raises(CommandError, match="Only trusted callers"):
        authorised("root", "permitted", asker=USER)


@pytest.mark.parametrize("client", ["gdbus", "dbus-send"])
def test_other_clients(bus: SystemBus, guest: Guest, client: str) -> None:
    """The error messages of these clients contain the error's name; those of busctl do not."""
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
