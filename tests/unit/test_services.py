# SPDX-License-Identifier: GPL-2.0-only
"""services/: the launcher, the systemd units, the OpenRC service, the D-Bus interface and its
policy, polkit, and the sample configuration of scx_loader."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from schedulers import C_SCHEDULERS, ROOT, RUST_SCHEDULERS

SERVICES = ROOT / "services"
NAME = "org.scx.Loader"
NOBODY = 65534


def run(*command: str | Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def configured(build_dir: Path, build_options: dict[str, str], name: str, root: Path) -> str:
    """The contents of a configured file of services/, with the paths below bindir, libexecdir and
    sysconfdir moved below `root`."""
    text = (build_dir / "services" / name).read_text()
    for option in ("bindir", "libexecdir", "sysconfdir"):
        folder = Path(build_options["prefix"]) / build_options[option]
        text = text.replace(f"{folder}/", f"{root}/{option}/")
    return text


# The launcher.


@pytest.fixture
def launcher(build_dir: Path, build_options: dict[str, str], tmp_path: Path) -> Path:
    """The launcher. The programs scx_echo and sh in bindir print their arguments, one per line."""
    (tmp_path / "bindir").mkdir()
    script = configured(build_dir, build_options, "scx-launch", tmp_path)
    echo = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"
    for name, text in {"scx-launch": script, "bindir/scx_echo": echo, "bindir/sh": echo}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path / "scx-launch"


def launch(launcher: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    # The launcher runs in a directory with files, which a glob would match.
    env = {"PATH": os.environ["PATH"], **environment}
    return run(launcher, env=env, cwd=launcher.parent)


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        ({}, [""]),
        ({"SCX_FLAGS": "-s  5000\t--low-power "}, ["-s", "5000", "--low-power"]),
        # Characters that are special for a shell.
        ({"SCX_FLAGS": "$(id) * 'a b' `id` ; |"}, ["$(id)", "*", "'a", "b'", "`id`", ";", "|"]),
        ({"SCX_FLAGS": "a-b", "IFS": "-"}, ["a-b"]),
        ({"SCX_FLAGS": "-a", "SCX_FLAGS_OVERRIDE": "-b -c"}, ["-b", "-c"]),
        ({"SCX_FLAGS": "-a", "SCX_FLAGS_OVERRIDE": ""}, [""]),
        ({"SCX_SCHEDULER": "scx_nope", "SCX_SCHEDULER_OVERRIDE": "scx_echo"}, [""]),
        ({"SCX_SCHEDULER_OVERRIDE": ""}, [""]),
    ],
)
def test_launcher_execs_the_scheduler(
    launcher: Path, environment: dict[str, str], arguments: list[str]
) -> None:
    done = launch(launcher, **{"SCX_SCHEDULER": "scx_echo", **environment})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.removesuffix("\n").split("\n") == arguments


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("", "SCX_SCHEDULER"),
        ("scx_nope", "there is no scx_nope"),
        ("sh", "'sh'"),
        ("scx_loader", "'scx_loader'"),
        ("/bin/sh", "'/bin/sh'"),
        ("../bindir/scx_echo", "'../bindir/scx_echo'"),
        ("scx_/../sh", "'scx_/../sh'"),
        ("scx_echo -a", "'scx_echo -a'"),
        ("scx_*", "'scx_*'"),
        ("-h", "'-h'"),
    ],
)
def test_launcher_rejects_other_programs(launcher: Path, name: str, named: str) -> None:
    done = launch(launcher, SCX_SCHEDULER=name)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"scx: .+\n", done.stderr)
    assert named in done.stderr


def test_launcher_without_a_configuration_names_the_file(launcher: Path) -> None:
    done = launch(launcher)
    assert done.returncode == 1
    assert "/default/scx" in done.stderr


def variables(text: str) -> dict[str, str]:
    """The SCX_* variables that a file sets, or would set if they were not commented out, with their
    values without quotes."""
    return dict(re.findall(r'^#?(SCX_\w+)="?([^"\n]*?)"?$', text, re.MULTILINE))


def known_options(scheduler: str) -> str:
    return (ROOT / "tests/unit/golden" / f"{scheduler}.help").read_text()


def test_default_names_a_scheduler_and_its_options(build_dir: Path) -> None:
    found = variables((build_dir / "services/scx").read_text())
    assert set(found) == {"SCX_SCHEDULER", "SCX_FLAGS"}
    for option in re.findall(r"--[\w-]+", found["SCX_FLAGS"]):
        assert f" {option} " in known_options(found["SCX_SCHEDULER"]).replace("\n", " \n")


# The units.


def assignments(file: Path) -> list[tuple[str, str]]:
    return re.findall(r"^(\w+)=(.*)$", file.read_text(), re.MULTILINE)


def settings(build_dir: Path, unit: str) -> list[tuple[str, str]]:
    return assignments(build_dir / "services" / unit)


def test_plain_unit_has_start_conditions(build_dir: Path) -> None:
    unit = settings(build_dir, "scx.service")
    assert ("ConditionKernelCommandLine", "!scx=off") in unit
    assert ("ConditionPathIsDirectory", "/sys/kernel/sched_ext") in unit


def test_dbus_request_activates_the_loader_and_stops_no_scheduler(build_dir: Path) -> None:
    """The loader's unit has no condition, which would leave the request unanswered. Neither unit
    has a conflict, which would stop the other unit."""
    both = settings(build_dir, "scx.service") + settings(build_dir, "scx_loader.service")
    assert "Conflicts" not in dict(both)
    assert not [key for key, _ in settings(build_dir, "scx_loader.service") if "Condition" in key]


def test_unit_is_what_the_bus_activates(build_dir: Path) -> None:
    activation = dict(settings(build_dir, f"{NAME}.service"))
    unit = dict(settings(build_dir, activation["SystemdService"]))
    assert (unit["Type"], unit["BusName"]) == ("dbus", NAME) == ("dbus", activation["Name"])
    assert unit["ExecStart"] == activation["Exec"]


def test_both_units_have_the_same_sandbox(build_dir: Path) -> None:
    sandbox = set(assignments(SERVICES / "systemd/sandbox.conf"))
    for unit in ("scx.service", "scx_loader.service"):
        assert sandbox <= set(settings(build_dir, unit))


# OpenRC.


@pytest.fixture
def openrc(build_dir: Path, build_options: dict[str, str], tmp_path: Path) -> Path:
    """A directory with the OpenRC service as a shell script, and the kernel's files that it reads.
    The script defines eerror(), which openrc-run would provide."""
    text = configured(build_dir, build_options, "scx.initd", tmp_path)
    for path in ("/proc/cmdline", "/sys/kernel/sched_ext"):
        assert path in text
        text = text.replace(path, f"{tmp_path}{path}")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cmdline").write_text("quiet noscx=off scx=offline\n")
    (tmp_path / "sys/kernel/sched_ext").mkdir(parents=True)
    (tmp_path / "service").write_text(f'eerror() {{ echo "$*" >&2; }}\n{text}\n"$@"\n')
    return tmp_path


def test_openrc_starts_the_launcher_with_the_configuration(openrc: Path) -> None:
    (openrc / "conf").write_text('SCX_SCHEDULER=scx_echo\nSCX_FLAGS="-a b"\n')
    script = f'. "{openrc}/conf"; . "{openrc}/service" start_pre; echo "$command"; exec env'
    done = run("sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    command, *environment = done.stdout.splitlines()
    assert command == f"{openrc}/libexecdir/scx-launch"
    assert {"SCX_SCHEDULER=scx_echo", "SCX_FLAGS=-a b"} <= set(environment)


@pytest.mark.parametrize("line", ["scx=off", "quiet scx=off ro", "quiet scx=off\n"])
def test_openrc_honours_the_kernel_command_line(openrc: Path, line: str) -> None:
    (openrc / "proc/cmdline").write_text(line)
    done = run("sh", openrc / "service", "start_pre")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "scx=off" in done.stderr


def test_openrc_reports_a_kernel_without_sched_ext(openrc: Path) -> None:
    (openrc / "sys/kernel/sched_ext").rmdir()
    done = run("sh", openrc / "service", "start_pre")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no sched_ext" in done.stderr


# The bus and polkit.


def interface() -> ET.Element:
    found = ET.parse(SERVICES / f"dbus/{NAME}.xml").find(f"interface[@name='{NAME}']")
    assert found is not None
    return found


def types(method: ET.Element, direction: str) -> str:
    args = [arg.attrib for arg in method.iter("arg")]
    return "".join(arg["type"] for arg in args if arg["direction"] == direction)


METHODS = {
    method.attrib["name"]: (types(method, "in"), types(method, "out"))
    for method in interface().iter("method")
}


def test_interface_is_compatible_with_clients() -> None:
    assert METHODS == {
        "StartScheduler": ("su", ""),
        "StartSchedulerWithArgs": ("sas", ""),
        "SwitchScheduler": ("su", ""),
        "SwitchSchedulerWithArgs": ("sas", ""),
        "StopScheduler": ("", ""),
        "RestartScheduler": ("", ""),
        "RestoreDefault": ("", ""),
        "ReloadConfiguration": ("", ""),
        "SchedulerModes": ("s", "au"),
        "SchedulerModeArgs": ("su", "as"),
        "RunOperation": ("sa{sv}", "u"),
        "OperationState": ("u", "ss"),
    }
    properties = {p.attrib["name"]: p.attrib["type"] for p in interface().iter("property")}
    assert properties == {
        "CurrentScheduler": "s",
        "SchedulerMode": "u",
        "SupportedSchedulers": "as",
        "CurrentSchedulerArgs": "as",
        "DefaultScheduler": "s",
        "DefaultMode": "u",
        "State": "s",
        "StateReason": "s",
        "StderrTail": "as",
        "SchedulerPid": "u",
        "PowerProfile": "s",
        "PowerProfileFollower": "s",
        "EffectiveMode": "u",
        "SinceUsec": "t",
    }
    assert {p.attrib["access"] for p in interface().iter("property")} == {"read"}


def rules(context: str) -> list[dict[str, str]]:
    """The attributes of each rule of the bus policy for a context or user. All rules permit."""
    (policy,) = (
        policy
        for policy in ET.parse(SERVICES / f"dbus/{NAME}.conf").iter("policy")
        if context in policy.attrib.values()
    )
    assert {rule.tag for rule in policy} == {"allow"}
    return [rule.attrib for rule in policy]


def test_bus_policy_lists_exactly_the_methods() -> None:
    named = [r["send_member"] for r in rules("default") if r.get("send_interface") == NAME]
    assert sorted(named) == sorted(METHODS)


def test_only_root_may_own_the_name() -> None:
    assert rules("root") == [{"own": NAME}]
    assert not [rule for rule in rules("default") if "own" in rule]


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a bus whose policy starts like that of the system bus. The bus starts /bin/false
    as the loader, so permitted calls fail with Spawn.ChildExited."""
    for program in ("dbus-daemon", "gdbus", "setpriv"):
        if not shutil.which(program):
            pytest.skip(f"needs {program}")
    if os.geteuid():
        pytest.skip("needs root, to change the user")
    folder = tmp_path_factory.mktemp("bus")
    (folder / f"{NAME}.service").write_text(f"[D-BUS Service]\nName={NAME}\nExec=/bin/false\n")
    (folder / "bus.conf").write_text(f"""
        <busconfig>
          <type>system</type>
          <listen>unix:tmpdir=/tmp</listen>
          <auth>EXTERNAL</auth>
          <servicedir>{folder}</servicedir>
          <policy context="default">
            <allow user="*"/>
            <deny own="*"/>
            <deny send_type="method_call"/>
            <allow send_type="error"/>
            <allow receive_type="error"/>
            <allow receive_type="method_return"/>
            <allow send_destination="org.freedesktop.DBus"/>
          </policy>
          <include>{SERVICES}/dbus/{NAME}.conf</include>
        </busconfig>""")
    command = ["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout
        yield daemon.stdout.readline().strip()
        daemon.terminate()


def is_permitted(bus: str, member: str, uid: int = NOBODY, destination: str = NAME) -> bool:
    """Whether the bus permits this user to call a method."""
    user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    path = "/" + destination.replace(".", "/")
    call = ["gdbus", "call", "--address", bus, "--dest", destination, "--object-path", path]
    arguments = [f"'{NAME}'", "uint32 0"] if member.endswith(".RequestName") else []
    done = run(*user, *call, "--method", member, *arguments)
    if "AccessDenied" in done.stderr:
        return False
    assert done.returncode == 0 or "Spawn.ChildExited" in done.stderr, done.stderr
    return True


@pytest.mark.parametrize("member", METHODS)
def test_all_users_may_call_guarded_or_read_only_methods(bus: str, member: str) -> None:
    assert is_permitted(bus, f"{NAME}.{member}")


@pytest.mark.parametrize(
    "member", ["Introspectable.Introspect", "Peer.Ping", "Properties.Get", "Properties.GetAll"]
)
def test_all_users_may_read(bus: str, member: str) -> None:
    assert is_permitted(bus, f"org.freedesktop.DBus.{member}")


@pytest.mark.parametrize(
    "member", [f"{NAME}.Another", "org.freedesktop.DBus.Properties.Set", "org.other.StopScheduler"]
)
def test_other_calls_are_denied(bus: str, member: str) -> None:
    assert not is_permitted(bus, member)


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_bus_gives_the_name_to_root_only(bus: str, uid: int) -> None:
    bus_itself = "org.freedesktop.DBus"
    assert is_permitted(bus, f"{bus_itself}.RequestName", uid, bus_itself) == (uid == 0)


def test_polkit_requires_an_administrator_in_an_active_session() -> None:
    actions = ET.parse(SERVICES / f"polkit/{NAME}.policy").getroot().findall("action")
    defaults = {a.attrib["id"]: {d.tag: d.text for d in a.iterfind("defaults/*")} for a in actions}
    refused = {"allow_any": "no", "allow_inactive": "no"}
    assert defaults == {
        "org.scx.loader.manage-schedulers": refused | {"allow_active": "auth_admin_keep"},
        # The authorization is not kept, because the next call may pass other arguments.
        "org.scx.loader.pass-arguments": refused | {"allow_active": "auth_admin"},
        "org.scx.loader.reload-configuration": refused | {"allow_active": "auth_admin_keep"},
    }
    assert all(action.findtext("description") and action.findtext("message") for action in actions)


def test_rule_for_a_group_covers_modes_only() -> None:
    text = (SERVICES / "polkit/50-scx.rules").read_text()
    code = re.sub(r"//.*", "", text)
    assert re.findall(r'"(org\.scx[^"]*)"', code) == ["org.scx.loader.manage-schedulers"]


# The configuration of the loader.


def test_sample_configuration_is_valid_and_without_effect() -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    text = (SERVICES / "config.toml").read_text()
    assert tomllib.loads(text) == {}
    shown = tomllib.loads(re.sub(r"^#(?=\S)", "", text, flags=re.MULTILINE))
    assert set(shown) == {"default_sched", "default_mode", "scheds", "auto", "supervision"}
    schedulers = C_SCHEDULERS + RUST_SCHEDULERS
    assert shown["default_sched"] in schedulers
    assert shown["supervision"].pop("fallback_sched") in schedulers
    assert shown["supervision"] == {
        "max_failures": 5,
        "backoff_s": 1.0,
        "fallback_mode": "Auto",
        "start_timeout_s": 60,
        "stop_timeout_s": 5,
    }
    for scheduler, modes in shown["scheds"].items():
        help_text = known_options(scheduler).replace("\n", " \n")
        for option in (word for words in modes.values() for word in words if word[:2] == "--"):
            assert f" {option} " in help_text
