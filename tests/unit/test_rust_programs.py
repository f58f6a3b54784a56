# SPDX-License-Identifier: GPL-2.0-only
"""The command line of every Rust scheduler, without sched_ext, and common properties of all
installed Rust programs.

The output of `--help` is compared with golden/NAME.help. After an intended change, renew it:

    SCX_RENEW_GOLDEN=1 PYTHONPATH=testbed /usr/bin/python3 -m pytest \\
        tests/unit/test_rust_programs.py
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from schedulers import COMMANDS, ROOT, RUST_SCHEDULERS, SERVICES, project_version

GOLDEN = Path(__file__).parent / "golden"
CPUS = Path("/sys/devices/system/cpu")
#: An unprivileged user.
NOBODY = 65534

#: Options that only print something.
PRINTING = [
    ["-h"],
    ["--help"],
    ["--version"],
    ["--help-stats"],
    ["--print-topology"],
    ["--print-topology=json"],
    ["--generate", "man"],
    ["--generate", "bash"],
]


#: Parametrizes tests of all installed programs.
installed = pytest.mark.parametrize("program", RUST_SCHEDULERS + SERVICES + COMMANDS, indirect=True)


@pytest.fixture(params=RUST_SCHEDULERS)
def program(request: pytest.FixtureRequest, rust_programs: Path) -> Path:
    return rust_programs / request.param


def run(program: Path, *args: str, **options) -> subprocess.CompletedProcess[str]:
    # The width of help texts must not depend on the environment.
    env = os.environ | {"COLUMNS": "100"}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(
        [program, *args], stdin=subprocess.DEVNULL, text=True, timeout=60, env=env, **options
    )


def printed(program: Path, *args: str, **options) -> str:
    """The output of a successful call."""
    done = run(program, *args, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


def assert_refused(program: Path, *args: str) -> str:
    """Asserts that the program fails with status 1 and a message of one line. Returns the
    message."""
    done = run(program, *args)
    assert done.returncode == 1
    assert done.stdout == ""
    assert one_line(done.stderr), done.stderr
    assert done.stderr.startswith(f"{program.name}: ")
    return done.stderr


@installed
def test_it_has_no_path_of_this_tree(program: Path) -> None:
    """If it had such a path, builds of a commit in different folders would differ."""
    assert str(ROOT).encode() not in program.read_bytes()


@installed
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(program: Path, option: str) -> None:
    usage = rf"^Usage: {program.name} \[OPTIONS\]( \[COMMAND\])?$"
    assert re.search(usage, printed(program, option), re.MULTILINE)


@installed
def test_help_matches_golden_file(program: Path) -> None:
    golden = GOLDEN / f"{program.name}.help"
    text = printed(program, "--help").replace(project_version(), "VERSION")
    # clap indents empty lines.
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    if os.environ.get("SCX_RENEW_GOLDEN") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert golden.exists(), "see the top of this file"
    assert text == golden.read_text()


@installed
def test_letters_of_options_are_unique(program: Path) -> None:
    """clap checks this only in debug builds."""
    letters = re.findall(r"^ +(-\w)\b", printed(program, "--help"), re.MULTILINE)
    assert "-h" in letters
    assert len(letters) == len(set(letters)), letters


@installed
@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version_is_the_projects(program: Path, option: str, build_options: dict[str, str]) -> None:
    debug = "/debug" if build_options["buildtype"] == "debug" else ""
    commit = r"(-g[0-9a-f]{7,}(-dirty)?)?"
    version = re.escape(f"{program.name} {project_version()}") + commit + r" [a-z0-9_]+" + debug
    assert re.fullmatch(version + "\n", printed(program, option))


@pytest.mark.parametrize("option", ["--stats", "--monitor"])
@pytest.mark.parametrize("value", ["nan", "-1", "inf", "1e9", "0", "0.01", "2s", "1,5", ""])
def test_interval_is_refused_in_one_line(program: Path, option: str, value: str) -> None:
    assert option in assert_refused(program, option, value)
    assert option in assert_refused(program, f"{option}={value}")


@pytest.mark.parametrize(
    "args",
    [
        ["--exit-dump-len", "-1"],
        ["--exit-dump-len", "99999999999999999999"],
        ["--exit-dump-len", "4294967296"],
        ["--exit-dump-len"],
        ["--stats"],
        ["--print-topology=xml"],
        ["stray"],
        ["--", "stray"],
        ["--no-such-option"],
    ],
)
def test_bad_value_is_refused_in_one_line(program: Path, args: list[str]) -> None:
    assert args[-1].split("=")[0] in assert_refused(program, *args)


def test_stats_and_monitor_exclude_each_other(program: Path) -> None:
    message = assert_refused(program, "--stats", "1", "--monitor", "1")
    assert "--stats" in message
    assert "--monitor" in message


@pytest.mark.parametrize(
    "args", [["--stats", "0.1"], ["--stats", "86400"], ["--exit-dump-len", "16777216"]]
)
def test_extreme_value_is_accepted(program: Path, args: list[str]) -> None:
    assert printed(program, *args, "--help-stats")


@pytest.mark.skipif(
    Path("/sys/kernel/sched_ext").exists(),
    reason="this kernel has sched_ext, a guest test covers it",
)
def test_kernel_without_sched_ext_is_named_in_one_line(program: Path) -> None:
    assert "no sched_ext" in assert_refused(program)


def test_missing_sysfs_is_reported_in_one_line(program: Path) -> None:
    own_mounts = ["unshare", "--mount"]
    if subprocess.run([*own_mounts, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs its own mount namespace, which requires root")
    script = 'mount -t tmpfs none /sys && exec "$0"'
    command = [*own_mounts, "sh", "-c", script, program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert one_line(done.stderr), done.stderr
    assert "no sched_ext" in done.stderr


@installed
def test_man_page_and_help_name_the_same_options(program: Path) -> None:
    page = printed(program, "--generate", "man").replace("\\-", "-")
    section = re.split(r'\n\.SH (?!"?OPTIONS)', page.partition(".SH OPTIONS")[2])[0]
    in_page = set(re.findall(r"^\\fB.*?(--[a-z][a-z-]+)", section, re.MULTILINE))
    in_help = set(
        re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]+)", printed(program, "-h"), re.MULTILINE)
    )
    assert in_page == in_help
    assert "--version" in in_page


def test_all_statistics_are_described(program: Path) -> None:
    """Each struct has a block, with its name and a line for each field."""
    for block in printed(program, "--help-stats").split("\n\n"):
        first, *fields = block.splitlines()
        assert re.fullmatch(r"\[\w+\] .+", first)
        assert fields
        for field in fields:
            assert re.fullmatch(r"  \w+ +\(.+?\) +: .+", field), field


def online_cpus() -> int:
    """The number of CPUs that the kernel lists as online. The affinity of this process has no
    effect."""
    ranges = (CPUS / "online").read_text().strip().split(",")
    ends = [[int(end) for end in part.split("-")] for part in ranges]
    return sum(end[-1] - end[0] + 1 for end in ends)


def test_topology_names_the_cpus(program: Path) -> None:
    first, *lines = printed(program, "--print-topology").splitlines()
    assert f" {online_cpus()} online" in first
    named = dict(line.split(maxsplit=1) for line in lines)
    assert named["online"] == (CPUS / "online").read_text().strip()
    assert named["possible"] == (CPUS / "possible").read_text().strip()


def test_topology_is_json(program: Path) -> None:
    topology = json.loads(printed(program, "--print-topology=json"))
    assert topology["online"] == (CPUS / "online").read_text().strip()
    assert len(topology["cpus"]) == online_cpus() == os.cpu_count()
    for kind in ("cores", "llcs", "nodes"):
        assert topology[kind]


def test_links_no_libbpf_at_run_time(program: Path) -> None:
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libelf" in libraries
    assert "libbpf" not in libraries


@pytest.fixture
def for_nobody(program: Path) -> Iterator[Path]:
    """A copy of the program that every user can access. A build below /root is accessible only to
    root."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copy(program, folder))


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_printing_needs_no_privileges(for_nobody: Path, args: list[str]) -> None:
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    assert printed(for_nobody, *args, **user)


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_closed_pipe_is_not_an_error(program: Path, args: list[str]) -> None:
    """The reading end is closed from the start, as in `PROGRAM | true`."""
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    try:
        done = run(program, *args, stdout=writing_end)
    finally:
        os.close(writing_end)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("args", [["--no-such-option"], ["--stats-group", "no such group"]])
def test_status_without_standard_error(program: Path, args: list[str]) -> None:
    """The status is the same if the message cannot be written."""
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    try:
        done = subprocess.run([program, *args], stderr=writing_end, timeout=60)
    finally:
        os.close(writing_end)
    assert done.returncode == 1


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_full_disk_is_reported_in_one_line(program: Path, args: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(program, *args, stdout=full)
    assert done.returncode == 1
    assert one_line(done.stderr), done.stderr


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal, or has blocked it for sigwait()."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = re.findall(r"^Sig(?:Cgt|Blk):\s+([0-9a-f]+)$", status, re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_monitor_waits_for_a_scheduler(for_nobody: Path, number: signal.Signals) -> None:
    """The monitor runs without privileges, and there is no scheduler."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    command = [for_nobody, "--monitor", "0.1", "--stats-socket", for_nobody.parent / "none"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **user) as monitor:
        try:
            deadline = time.monotonic() + 30
            while not catches(monitor.pid, number) and monitor.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            # Wait for several intervals.
            time.sleep(0.5)
            assert monitor.poll() is None
            monitor.send_signal(number)
            out, _ = monitor.communicate(timeout=30)
        finally:
            monitor.kill()
    assert (monitor.returncode, out) == (0, "")
