# SPDX-License-Identifier: GPL-2.0-only
"""The command line of every C scheduler, without sched_ext."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from schedulers import C_SCHEDULERS, ROOT, project_version


@pytest.fixture(params=C_SCHEDULERS)
def program(request: pytest.FixtureRequest, build_dir: Path) -> Path:
    return build_dir / "scheds" / "c" / request.param


def run(program: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=60)


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(program: Path, option: str) -> None:
    done = run(program, option)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: {program.name}")
    assert not done.stderr


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version_is_the_projects(program: Path, option: str) -> None:
    done = run(program, option)
    assert (done.returncode, done.stdout) == (0, f"{program.name} {project_version()}\n")


@pytest.mark.parametrize(
    "args",
    [
        ["--interval", "nan"],
        ["--interval", "-1"],
        ["--interval", "inf"],
        ["--interval", "1e9"],
        ["--interval", "0.01"],
        ["--interval", "2s"],
        ["--interval", ""],
        ["--exit-dump-len", "-1"],
        ["--exit-dump-len", "1.5"],
        ["--exit-dump-len", "99999999999999999999"],
        ["stray"],
    ],
)
def test_bad_value_is_refused_in_one_line(program: Path, args: list[str]) -> None:
    done = run(program, *args)
    assert done.returncode == 1
    assert one_line(done.stderr), done.stderr
    assert args[0] in done.stderr


@pytest.mark.parametrize(
    "code", ["seven", "", "7x", "-1", " 1", "0x", "0x-1", "18446744073709551616"]
)
def test_bad_exit_code_of_the_failing_scheduler_is_refused(build_dir: Path, code: str) -> None:
    program = build_dir / "scheds/c/scx_fail"
    done = run(program, "--exit-code", code)
    assert done.returncode == 1
    assert one_line(done.stderr), done.stderr
    assert "--exit-code" in done.stderr


@pytest.mark.parametrize("code", ["7", "0x1000000000000", "0xffffffffffffffff"])
def test_exit_code_of_the_failing_scheduler_has_64_bits(build_dir: Path, code: str) -> None:
    done = run(build_dir / "scheds/c/scx_fail", "--exit-code", code, "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_unknown_option_is_a_usage_error(program: Path) -> None:
    done = run(program, "--no-such-option")
    assert done.returncode == 1
    assert "--no-such-option" in done.stderr
    assert "--help" in done.stderr


@pytest.mark.skipif(
    Path("/sys/kernel/sched_ext").exists(),
    reason="this kernel has sched_ext, a guest test covers it",
)
def test_kernel_without_sched_ext_is_named_in_one_line(program: Path) -> None:
    done = run(program)
    assert done.returncode == 1
    assert one_line(done.stderr), done.stderr
    assert "no sched_ext" in done.stderr


def test_man_page_and_help_name_the_same_options(program: Path) -> None:
    page = (ROOT / "scheds/c" / f"{program.name}.8.in").read_text().replace("\\-", "-")
    section = page.partition(".SH OPTIONS")[2].partition("\n.SH ")[0]
    in_page = set(re.findall(r"--[a-z][a-z-]+", section))
    in_help = set(re.findall(r"--[a-z][a-z-]+", run(program, "--help").stdout))
    assert in_page == in_help


def test_links_no_libbpf_at_run_time(program: Path) -> None:
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libelf" in libraries
    assert "libbpf" not in libraries


def test_missing_sysfs_is_reported_in_one_line(program: Path) -> None:
    own_mounts = ["unshare", "--mount"]
    if subprocess.run([*own_mounts, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs its own mount namespace, which requires root")
    script = 'mount -t tmpfs none /sys && exec "$0"'
    done = subprocess.run(
        [*own_mounts, "sh", "-c", script, program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert one_line(done.stderr), done.stderr
    assert "no sched_ext" in done.stderr
