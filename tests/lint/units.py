# SPDX-License-Identifier: GPL-2.0-only
"""systemd-analyze on the configured units."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

#: Programs that a unit may start, because they are installed with the unit. Any other program could
#: be missing, and is a finding.
OWN_PROGRAMS = {"scx_loader", "scxctl", "scx-launch"}
_EXEC = re.compile(r"(?m)^(Exec\w+)=(\S+)")

#: Units that the checked units name, or on which systemd makes every service or every D-Bus service
#: depend.
COMMON = ["basic.target", "dbus.socket", "multi-user.target", "shutdown.target", "sysinit.target"]
#: The maximum exposure that `systemd-analyze security` may report, on a scale of 0 to 100. The
#: exposure is not 0, because schedulers need root, four capabilities, and some system calls and
#: files.
EXPOSURE_MAX = 25


def _analyze(program: str, folder: Path, *args: str | Path) -> str:
    """The findings of systemd-analyze."""
    # The result must not depend on other units of this machine.
    env = {**os.environ, "SYSTEMD_UNIT_PATH": str(folder), "SYSTEMD_LOG_COLOR": "0"}
    command = [program, "--no-pager", *map(str, args)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    return done.stderr + (done.stdout if done.returncode else "")


def _lay_out(unit: Path, folder: Path) -> Path:
    """A copy of the unit in which each program is replaced by a program that exists. Stubs of the
    units in COMMON are beside the copy."""
    program = folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = folder / unit.name
    copy.write_text(_EXEC.sub(rf"\1={program}", unit.read_text()))
    for name in COMMON:
        socket = "[Socket]\nListenStream=/dev/null\n" if name.endswith(".socket") else ""
        (folder / name).write_text(f"[Unit]\nDefaultDependencies=no\n{socket}")
    return copy


def _foreign_programs(unit: Path) -> str:
    """Programs that the unit starts but that are not installed with it."""
    programs = [path for _, path in _EXEC.findall(unit.read_text())]
    return "".join(
        f"{unit.name}: {path} is not a program of this project\n"
        for path in programs
        if Path(path).name not in OWN_PROGRAMS
    )


def check(program: str, units: list[Path]) -> int:
    """Prints all findings. Returns 0 if there are none, else 1."""
    findings = ""
    for unit in units:
        findings += _foreign_programs(unit)
        with tempfile.TemporaryDirectory() as name:
            copy = _lay_out(unit, Path(name))
            findings += _analyze(program, copy.parent, "verify", "--man=no", copy)
            security = ["security", "--offline=true", f"--threshold={EXPOSURE_MAX}", copy]
            findings += _analyze(program, copy.parent, *security)
    print(findings, end="")
    return 1 if findings else 0
