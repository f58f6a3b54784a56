# SPDX-License-Identifier: GPL-2.0-only
"""scxctl without a bus."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from schedulers import RUST_SCHEDULERS

SCHED_EXT = Path("/sys/kernel/sched_ext")

#: A scheduler that requires a kfunc which no kernel has.
FUTURE = {"name": "scx_future", "options": [], "modes": {}, "kfuncs": ["scx_bpf_no_such_thing"]}


@pytest.fixture
def scxctl(rust_programs: Path) -> Path:
    return rust_programs / "scxctl"


def run(scxctl: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | env
    return subprocess.run(
        [scxctl, *args], capture_output=True, text=True, timeout=60, env=environment
    )


def test_check_reports_why_schedulers_cannot_run(
    scxctl: Path, rust_programs: Path, tmp_path: Path
) -> None:
    """The check works on any machine, for any user."""
    for name in RUST_SCHEDULERS:
        (tmp_path / f"{name}.json").symlink_to(rust_programs / f"{name}.json")
    (tmp_path / "scx_future.json").write_text(json.dumps(FUTURE))
    done = run(scxctl, "check", "--json", "--schedulers", str(tmp_path))
    findings = json.loads(done.stdout)
    found = {finding["name"]: finding for finding in findings}
    verdicts = {name: finding["verdict"] for name, finding in found.items()}
    assert (done.returncode, done.stderr) == (int("problem" in verdicts.values()), "")
    assert len(found) == len(findings)
    assert set(verdicts.values()) <= {"ok", "warning", "problem"}
    assert all(one["text"] and (one["verdict"] == "ok" or one["cure"]) for one in findings)
    if SCHED_EXT.exists():
        assert verdicts["sched_ext"] == "ok"
        assert set(RUST_SCHEDULERS) <= set(verdicts)
        assert verdicts["scx_future"] == "problem"
    else:
        # After a problem, further requirements cannot be checked.
        assert not set(RUST_SCHEDULERS).intersection(found)
        assert "sched_ext" not in found or "6.12" in found["sched_ext"]["cure"]
        *others, last = verdicts.items()
        assert last in {(name, "problem") for name in ("kernel", "config", "sched_ext")}
        assert all(verdict == "ok" for _, verdict in others)
    text = run(scxctl, "check", "--schedulers", str(tmp_path)).stdout
    assert text.count("\n") >= len(verdicts)
    assert all(verdict in text for verdict in verdicts.values())


def test_check_without_manifests_is_a_finding(scxctl: Path, tmp_path: Path) -> None:
    """The machine is checked nevertheless."""
    done = run(scxctl, "check", "--json", "--schedulers", str(tmp_path))
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 1
    assert findings["install"]["verdict"] == "problem"
    assert "no schedulers found" in findings["install"]["text"]
    assert "kernel" in findings


def test_recommend_answers_any_user(scxctl: Path, rust_programs: Path, tmp_path: Path) -> None:
    """The command works on any machine. A scheduler that no kernel can run is not recommended."""
    for name in RUST_SCHEDULERS:
        (tmp_path / f"{name}.json").symlink_to(rust_programs / f"{name}.json")
    (tmp_path / "scx_future.json").write_text(json.dumps(FUTURE))
    options = ["--seconds", "1", "--schedulers", str(tmp_path)]
    done = run(scxctl, "recommend", "--json", *options)
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert set(found) == {"rule", "scheduler", "mode", "reasons", "command", "facts"}
    assert found["facts"]["machine"]["nr_cpus"] == os.cpu_count()
    assert 1 <= found["facts"]["load"]["seconds"] < 30
    if SCHED_EXT.exists():
        assert found["scheduler"] in {None, *RUST_SCHEDULERS}
    else:
        assert (found["scheduler"], found["mode"], found["rule"]) == (None, None, "kernel")
        assert (found["reasons"], found["command"]) == (
            ["this kernel has no sched_ext"],
            "scxctl check",
        )
    done = run(scxctl, "recommend", *options)
    assert done.returncode == 0
    assert 3 <= done.stdout.count("\n") <= 4


def test_recommend_without_manifests_fails(scxctl: Path, tmp_path: Path) -> None:
    done = run(scxctl, "recommend", "--schedulers", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"scxctl: {tmp_path}: no schedulers found\n"


@pytest.mark.parametrize("command", ["get", "list", "status", "stop", "watch"])
def test_missing_bus_is_reported_in_one_line(scxctl: Path, tmp_path: Path, command: str) -> None:
    nowhere = f"unix:path={tmp_path}/bus"
    done = run(scxctl, command, DBUS_SYSTEM_BUS_ADDRESS=nowhere)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("scxctl: the system bus: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["begin"],
        ["start"],
        ["start", "-s", "x", "-m", "turbo"],
        ["start", "-s", "x", "-m", "auto", "-a", "-f"],
        ["get", "stray"],
        ["recommend", "--seconds", "0"],
        ["recommend", "--seconds", "long"],
    ],
)
def test_wrong_usage_has_its_own_status(scxctl: Path, args: list[str]) -> None:
    done = run(scxctl, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
