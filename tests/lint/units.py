# SPDX-License-Identifier: GPL-2.0-only
"""systemd's own opinion of the units that the build configured."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

#: The programs that a unit may start: those that are installed with it. Others may be missing.
OWN_PROGRAMS = {"scx_loader", "scxctl", "scx-launch"}
_EXEC = re.compile(r"(?m)^(Exec\w+)=(\S+)")

#: What systemd adds to every unit, or to every one on the bus.
COMMON = ["basic.target", "dbus.socket", "multi-user.target", "shutdown.target", "sysinit.target"]
#: The highest exposure, of 100, that `systemd-analyze security` may find. What is left is due to
#: root, to four capabilities, and to system calls and files that schedulers use.
EXPOSURE_MAX = 25


def _analyze(program: str, folder: Path, *args: str | Path) -> str:
    """What it has to say; nothing if all is well."""
    # Of the units of this machine it need not know any.
    env = {**os.environ, "SYSTEMD_UNIT_PATH": str(folder), "SYSTEMD_LOG_COLOR": "0"}
    command = [program, "--no-pager", *map(str, args)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    return done.stderr + (done.stdout if done.returncode else "")


def _lay_out(unit: Path, folder: Path) -> Path:
    """A copy of the unit in the folder, whose programs exist."""
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
    """What the unit starts that is not installed with it."""
    programs = [path for _, path in _EXEC.findall(unit.read_text())]
    return "".join(
        f"{unit.name}: {path} is not one of our programs\n"
        for path in programs
        if Path(path).name not in OWN_PROGRAMS
    )


def check(program: str, units: list[Path]) -> int:
    """Print all findings; 0 if there are none, else 1."""
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
