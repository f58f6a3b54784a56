# SPDX-License-Identifier: GPL-2.0-only
"""The installed units under a real systemd: each scheduler and the loader run in the sandbox, and
scx.service handles failures."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import loader as loaders
import pytest
import system_bus
from loader import Loader
from sched_ext import COMPACTION, TIMEOUT_S, Scheduler, ops, read, state, wait_disabled, wait_for
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS
from system_bus import SystemBus
from vm.guest import Guest, Result
from vm.initramfs import File

SYSTEMD = Path("/lib/systemd/systemd")
#: Since version 255, systemd starts units by a separate program, which it expects at this path.
EXECUTOR = Path("/usr/lib/systemd/systemd-executor")
UNIT = "scx.service"
LOADER_UNIT = "scx_loader.service"
LOG = "/run/scx.log"

#: The bits of CAP_CHOWN, CAP_SYS_NICE, CAP_PERFMON and CAP_BPF.
CAPABILITIES = 1 << 0 | 1 << 23 | 1 << 38 | 1 << 39


@pytest.fixture(scope="session")
def programs(programs: list[Path]) -> list[Path]:
    """The programs of other guests, and those of systemd and the system bus."""
    systemctl = shutil.which("systemctl")
    if not SYSTEMD.exists() or not systemctl:
        pytest.skip("needs systemd")
    own = [SYSTEMD, Path(systemctl), *filter(Path.exists, [EXECUTOR])]
    return [*programs, *own, *system_bus.programs()]


@pytest.fixture(scope="session")
def files(build_dir: Path, build_options: dict[str, str]) -> dict[str, File]:
    datadir = Path(build_options["prefix"]) / build_options["datadir"]
    return system_bus.files() | loaders.files(build_dir, f"{datadir}/scx/schedulers")


class Systemd:
    """A systemd system manager in a guest, PID 1 of its own PID namespace."""

    def __init__(self, guest: Guest, configuration: Path) -> None:
        self.guest = guest
        self._configuration = configuration
        unshare = "exec unshare --pid --fork --mount --mount-proc"
        self.process = guest.spawn(
            "systemd", f"container=lxc {unshare} systemd --unit=multi-user.target"
        )
        self._pid = ""
        wait_for("systemd starts", self._has_started)
        wait_for("systemd runs", lambda: self.ctl("is-active", "multi-user.target").ok)

    def _has_started(self) -> bool:
        """Stores the pid of systemd, and returns whether there is exactly one. While systemd forks,
        pidof briefly finds two."""
        self._pid = self.guest.run(["pidof", "systemd"]).stdout.strip()
        return self._pid.isdecimal()

    def run(self, command: str) -> Result:
        """Runs a command in the namespaces of systemd."""
        return self.guest.run(f"nsenter -t {self._pid} --pid --mount -- {command}")

    def kill(self) -> None:
        """Ends the PID namespace, by killing its PID 1."""
        self.guest.run(["kill", "-9", self._pid]).check()
        self.process.wait(TIMEOUT_S)

    def ctl(self, *args: str) -> Result:
        return self.run(f"systemctl --quiet {' '.join(args)}")

    def show(self, name: str) -> str:
        return self.ctl("show", UNIT, "--value", "-p", name).check().stdout.strip()

    def has_failed(self) -> bool:
        return self.show("ActiveState") == "failed"

    def start(self, scheduler: str, flags: str = "") -> None:
        """Starts scx.service with this configuration and an empty log."""
        text = f"SCX_SCHEDULER={scheduler}\nSCX_FLAGS={flags}\n"
        self.guest.run(f": >{LOG}; printf '{text}' >{self._configuration}").check()
        self.ctl("start", UNIT).check()

    def stop(self) -> None:
        """Stops scx.service and resets its state."""
        self.ctl("stop", UNIT).check()
        self.ctl("reset-failed", UNIT)
        wait_disabled(self.guest)

    def log(self) -> str:
        return read(self.guest, LOG)


def lay_out(guest: Guest, build_dir: Path, options: dict[str, str]) -> Path:
    """Puts the units and the launcher where they are installed. Returns the path of the launcher's
    configuration."""
    names = ("bindir", "libexecdir", "sysconfdir")
    bindir, libexecdir, sysconfdir = (Path(options["prefix"]) / options[name] for name in names)
    units = "/etc/systemd/system"
    # Write to a log file, because there is no journal.
    log = f"[Service]\nStandardOutput=append:{LOG}\nStandardError=append:{LOG}\n"
    files = {
        f"{units}/{UNIT}": (build_dir / "services" / UNIT).read_text(),
        f"{units}/{UNIT}.d/log.conf": log,
        f"{units}/{LOADER_UNIT}": (build_dir / "services" / LOADER_UNIT).read_text(),
        # Not Type=dbus, because the bus is not a unit of this systemd.
        f"{units}/{LOADER_UNIT}.d/log.conf": f"{log}Type=simple\n",
        f"{libexecdir}/scx-launch": (build_dir / "services/scx-launch").read_text(),
        f"{sysconfdir}/default/scx": "",
        # Without this file, systemd assumes a first boot and enables all units.
        "/etc/machine-id": "0123456789abcdef0123456789abcdef",
    }
    for target in ("sysinit", "basic", "multi-user", "shutdown"):
        files[f"{units}/{target}.target"] = "[Unit]\nDefaultDependencies=no\n"
    for name, text in files.items():
        guest.run(f"mkdir -p {Path(name).parent}; cat >{name} <<'END'\n{text}\nEND").check()
    guest.run(["chmod", "755", f"{libexecdir}/scx-launch"]).check()
    links = {bindir: "/usr/bin", EXECUTOR: f"/usr/bin/{EXECUTOR.name}", Path("/var/run"): "/run"}
    for link, target in links.items():
        guest.run(f"mkdir -p {link.parent}; [ -e {link} ] || ln -s {target} {link}").check()
    return sysconfdir / "default/scx"


@pytest.fixture(scope="module")
def manager(guest: Guest, build_dir: Path, build_options: dict[str, str]) -> Iterator[Systemd]:
    systemd = Systemd(guest, lay_out(guest, build_dir, build_options))
    yield systemd
    systemd.kill()


@pytest.fixture
def systemd(manager: Systemd) -> Iterator[Systemd]:
    yield manager
    manager.stop()


def wait_running(systemd: Systemd, scheduler: str) -> None:
    name = scheduler.removeprefix("scx_")
    wait_for(f"{scheduler} runs or fails", lambda: ops(systemd.guest) or systemd.has_failed())
    assert ops(systemd.guest).startswith(name), systemd.log()


def process(systemd: Systemd, scheduler: str) -> str:
    """The scheduler's pid in the guest's namespace."""
    return systemd.guest.run(["pidof", scheduler]).check().stdout.strip()


@pytest.mark.parametrize("scheduler", C_SCHEDULERS + RUST_SCHEDULERS)
def test_scheduler_works_in_the_sandbox(systemd: Systemd, scheduler: str) -> None:
    before = read(systemd.guest, COMPACTION)
    systemd.start(scheduler, "-v")
    wait_running(systemd, scheduler)
    status = read(systemd.guest, f"/proc/{process(systemd, scheduler)}/status")
    assert int(re.findall(r"^CapEff:\s(\w+)", status, re.MULTILINE)[0], 16) == CAPABILITIES
    assert re.findall(r"^(?:NoNewPrivs|Seccomp):\s(\d)", status, re.MULTILINE) == ["1", "2"]
    systemd.ctl("stop", UNIT).check()
    assert (systemd.show("Result"), systemd.show("ExecMainStatus")) == ("success", "0")
    assert not re.search(
        r"warn|cannot|denied|not permitted|not served", systemd.log(), re.IGNORECASE
    )
    assert read(systemd.guest, COMPACTION) == before


def test_sandbox_is_read_only(systemd: Systemd) -> None:
    """In the sandbox, only /run/scx and the settings that schedulers change are writable. The
    kernel log and terminals are missing."""
    systemd.start("scx_rustland")
    wait_running(systemd, "scx_rustland")
    enter = f"nsenter -t {process(systemd, 'scx_rustland')} --mount --"
    for path in ("/etc/probe", "/usr/probe", "/proc/sys/kernel/sysrq"):
        done = systemd.guest.run(f"{enter} sh -c 'echo 1 >{path}'")
        assert "Read-only file system" in done.stderr, path
    for path in (COMPACTION, "/run/scx/probe"):
        systemd.guest.run(f"{enter} sh -c 'echo 0 >{path}'").check()
    assert systemd.guest.run(f"{enter} ls /dev/kmsg /dev/ttyS0").stdout == ""


def test_group_may_read_statistics(systemd: Systemd) -> None:
    systemd.start("scx_rusty", "--stats-group nobody")
    wait_running(systemd, "scx_rusty")
    socket = "/run/scx/root/stats"
    wait_for("the socket", lambda: systemd.guest.run(["test", "-S", socket]).ok)
    assert systemd.guest.run(["stat", "-c", "%a %U %G", socket]).stdout == "660 root nobody\n"


def test_override_replaces_scheduler_and_flags(systemd: Systemd) -> None:
    names = {"SCX_SCHEDULER_OVERRIDE": "scx_simple", "SCX_FLAGS_OVERRIDE": ""}
    systemd.ctl("set-environment", *(f"{name}={value}" for name, value in names.items())).check()
    systemd.start("scx_rustland", "--low-power")
    systemd.ctl("unset-environment", *names).check()
    wait_running(systemd, "scx_simple")


def test_second_scheduler_fails(systemd: Systemd, start: Callable[..., Scheduler]) -> None:
    """The second scheduler is not restarted, and the first one continues."""
    first = start("scx_fifo").wait_enabled()
    systemd.start("scx_simple")
    wait_for("the unit fails", systemd.has_failed)
    assert (systemd.show("ExecMainStatus"), systemd.show("NRestarts")) == ("1", "0")
    assert "'fifo' is running" in systemd.log()
    assert first.process.running()
    assert ops(systemd.guest).startswith("fifo")


def test_killed_scheduler_is_restarted(systemd: Systemd) -> None:
    systemd.start("scx_simple")
    wait_running(systemd, "scx_simple")
    systemd.guest.run(["kill", "-9", process(systemd, "scx_simple")]).check()
    wait_for("a restart", lambda: systemd.show("NRestarts") == "1")
    wait_running(systemd, "scx_simple")


def test_kernel_command_line_prevents_start(systemd: Systemd) -> None:
    # In a container, systemd reads the command line of PID 1 instead of the kernel's.
    systemd.run("sh -c 'printf \"systemd\\0scx=off\\0\" >/run/cmdline'").check()
    systemd.run("mount --bind /run/cmdline /proc/1/cmdline").check()
    systemd.start("scx_simple")
    assert (systemd.show("ActiveState"), systemd.show("ConditionResult")) == ("inactive", "no")
    assert systemd.log() == ""
    systemd.run("umount /proc/1/cmdline").check()
    systemd.start("scx_simple")
    wait_running(systemd, "scx_simple")


def test_loader_works_in_the_sandbox(
    manager: Systemd, bus: SystemBus, guest: Guest, build_options: dict[str, str]
) -> None:
    guest.run(f": >{LOG}").check()
    manager.ctl("start", LOADER_UNIT).check()
    loader = Loader(bus)
    wait_for("the loader answers", loader.answers)
    for name in C_SCHEDULERS + RUST_SCHEDULERS:
        loader.call("SwitchScheduler", "su", name, "0")
        assert ops(guest).startswith(name.removeprefix("scx_"))
    # A reload fails if the configuration is invalid.
    config = Path(build_options["prefix"]) / build_options["sysconfdir"] / "scx_loader/config.toml"
    guest.run(f"mkdir -p {config.parent}; echo 'default_sched = 1' >{config}").check()
    assert not manager.ctl("reload", LOADER_UNIT).ok
    guest.run(f"echo 'default_sched = \"scx_fifo\"' >{config}").check()
    manager.ctl("reload", LOADER_UNIT).check()
    assert loader.get("DefaultScheduler") == "scx_fifo"
    # The loader kills a scheduler that does not exit. The scheduler's pid in the guest differs from
    # its pid in the namespace of the loader.
    guest.run(["kill", "-STOP", process(manager, name)]).check()
    loader.call("StopScheduler")
    loader.call("StartScheduler", "su", "scx_simple", "0")
    manager.ctl("stop", LOADER_UNIT).check()
    assert state(guest) == "disabled"
    assert manager.ctl("show", LOADER_UNIT, "-p", "Result", "--value").stdout == "success\n"
    log = manager.log()
    assert not re.search(r"denied|not permitted|not served|cannot", log, re.IGNORECASE), log
