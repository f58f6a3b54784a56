# SPDX-License-Identifier: GPL-2.0-only
"""`scxctl check`: its findings are compared with what the guest is known to have."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import NamedTuple

import loader
import pytest
from sched_ext import TIMEOUT_S, Start, read
from schedulers import C_SCHEDULERS, RUST_SCHEDULERS
from vm.guest import Guest
from vm.initramfs import File
from vm.kernels import Kernel
from vm.topology import Topology

#: Directories of the guest: one with the manifests of all schedulers, one with the manifest of a
#: scheduler that requires a kfunc of newer kernels and a kfunc that does not exist.
INSTALLED = "/usr/share/scx/schedulers"
FUTURE = "/usr/share/scx/future"
ALWAYS, NEWER, NEVER = "scx_bpf_create_dsq", "scx_bpf_dsq_peek", "scx_bpf_no_such_thing"
#: The second kfunc has a local suffix, as libbpf allows.
MANIFEST = {
    "name": "scx_future",
    "options": [],
    "modes": {},
    "kfuncs": [ALWAYS, f"{NEWER}___ours", NEVER],
}

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Report(NamedTuple):
    """The findings by name."""

    verdicts: dict[str, str]
    texts: dict[str, str]


def parse(output: str, status: int) -> Report:
    """Parses the findings, and checks the format: unique names, a cure for each warning and each
    problem, and the exit status."""
    findings = json.loads(output)
    verdicts = {one["name"]: one["verdict"] for one in findings}
    assert len(verdicts) == len(findings)
    assert set(verdicts.values()) <= {OK, WARNING, PROBLEM}
    assert all(one["text"] and (one["verdict"] == OK or one["cure"]) for one in findings)
    assert status == int(PROBLEM in verdicts.values()), findings
    return Report(verdicts, {one["name"]: one["text"] for one in findings})


def check(guest: Guest, folder: str = INSTALLED, user: str = "root", before: str = "") -> Report:
    """Runs `scxctl check` in the guest. With `before`, this command runs first, and both run in a
    mount namespace of their own."""
    command = f"scxctl check --json --schedulers {folder}"
    if before:
        command = f"unshare -m sh -c '{before} && exec {command}'"
    done = guest.run(command, user=user)
    assert not done.stderr
    return parse(done.stdout, done.status)


def unmodified(guest: Guest, user: str = "root") -> dict[str, str]:
    """The expected verdicts for an unmodified guest."""
    names = ["kernel", "sched_ext", "btf", "rights", "scheduler", "isolation", "cgroups", "boot"]
    names += C_SCHEDULERS + RUST_SCHEDULERS
    # Some kernels allow only root to read this setting.
    if guest.run("cat /proc/sys/net/core/bpf_jit_enable", user=user).ok:
        names.append("jit")
    # Few kernels have /proc/config.gz, and a guest has no configuration file.
    if guest.run("zcat /proc/config.gz | grep -q CONFIG_SCHED_CLASS_EXT=y", user=user).ok:
        names.append("config")
    ext_server_found = guest.run("[ -d /sys/kernel/debug/sched/ext_server ]").ok
    return {name: OK for name in names} | {"ext_server": OK if ext_server_found else WARNING}


@pytest.fixture(scope="session")
def files(build_dir: Path) -> dict[str, File]:
    return loader.descriptions(build_dir, INSTALLED) | {
        f"{FUTURE}/scx_future.json": File(json.dumps(MANIFEST))
    }


# This test is the first of this file, so that its guest does not run beside the guest that the
# other tests share.
def test_kernel_command_line(
    kernel: Kernel, shape: Topology, programs: list[Path], files: dict[str, File]
) -> None:
    args = ["isolcpus=1", "scx=off"]
    with Guest(kernel, shape, programs=programs, files=files, kernel_args=args) as guest:
        found = check(guest)
        expected = unmodified(guest) | {"isolation": PROBLEM, "boot": WARNING}
        assert found.verdicts == expected, found
        assert "CPUs 1 are isolated" in found.texts["isolation"]
        assert guest.run(["scx_simple"], TIMEOUT_S).status == 1
        lockdown = "/sys/kernel/security/lockdown"
        guest.run("mount -t securityfs none /sys/kernel/security")
        # The lockdown level can only be raised, so "integrity" comes first.
        for mode, verdict in (("integrity", OK), ("confidentiality", PROBLEM)):
            if guest.run(f"echo {mode} >{lockdown}").ok:
                assert check(guest).verdicts == expected | {"lockdown": verdict}


def test_unmodified_guest(guest: Guest) -> None:
    found = check(guest)
    assert found.verdicts == unmodified(guest)
    assert found.texts["kernel"] == f"Linux {guest.kernel.release}"


def test_unprivileged_user(guest: Guest) -> None:
    found = check(guest, user="nobody")
    assert found.verdicts == unmodified(guest, "nobody") | {"rights": WARNING}
    assert "root" in found.texts["rights"]


def test_root_of_a_container_is_unprivileged(guest: Guest) -> None:
    done = guest.run(f"unshare -Ur scxctl check --json --schedulers {INSTALLED}", user="nobody")
    if "unshare" in done.stderr:
        pytest.skip(f"no user namespaces: {done.stderr}")
    found = parse(done.stdout, done.status)
    assert found.verdicts["rights"] == WARNING
    assert "container" in found.texts["rights"]


def test_running_scheduler_is_reported(guest: Guest, start: Start) -> None:
    scheduler = start("scx_simple").wait_enabled()
    ours, foreign = check(guest), check(guest, FUTURE)
    assert ours.verdicts == unmodified(guest)
    assert ours.texts["scheduler"] == "scx_simple runs"
    assert foreign.verdicts["scheduler"] == PROBLEM
    assert "'simple'" in foreign.texts["scheduler"]
    assert scheduler.end(signal.SIGINT) == 0


def test_missing_kfuncs_are_reported(guest: Guest) -> None:
    symbols = read(guest, "/proc/kallsyms").split()
    found = check(guest, FUTURE)
    assert found.verdicts["scx_future"] == PROBLEM
    missing = [name for name in (NEWER, NEVER) if name not in symbols]
    assert found.texts["scx_future"].endswith(f": {', '.join(missing)}")


#: A cgroup with a lower weight than the default, if the kernel has cpu.weight.
CGROUP = "/sys/fs/cgroup/scx_test"
MAKE_CGROUP = f"""
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control &&
mkdir {CGROUP} &&
echo 50 >{CGROUP}/cpu.weight
"""


def test_ignored_cgroup_control_is_reported(guest: Guest) -> None:
    try:
        if not guest.run(MAKE_CGROUP).ok:
            pytest.skip("the kernel has no weights for cgroups")
        found = check(guest)
    finally:
        guest.run(f"rmdir {CGROUP}")
    assert found.verdicts == unmodified(guest) | {"cgroups": WARNING}
    assert found.texts["cgroups"].endswith(f"1 set them, e.g. cpu.weight of {CGROUP}")
    assert check(guest).verdicts["cgroups"] == OK


def test_disabled_jit_is_a_problem(guest: Guest) -> None:
    switch = "echo {} >/proc/sys/net/core/bpf_jit_enable"
    try:
        if not guest.run(switch.format(0)).ok:
            pytest.skip("the kernel compiles all BPF programs")
        assert check(guest).verdicts == unmodified(guest) | {"jit": PROBLEM}
        assert guest.run(["scx_simple"], TIMEOUT_S).status == 1
    finally:
        guest.run(switch.format(1)).check()


def test_without_btf_kfuncs_are_not_checked(guest: Guest) -> None:
    found = check(guest, before="mount -t tmpfs none /sys/kernel/btf")
    unknown = {"ext_server", *C_SCHEDULERS, *RUST_SCHEDULERS}
    known = {name: ok for name, ok in unmodified(guest).items() if name not in unknown}
    assert found.verdicts == known | {"btf": PROBLEM}


def test_without_sched_ext_nothing_else_is_checked(guest: Guest) -> None:
    found = check(guest, before="mount -t tmpfs none /sys/kernel/sched_ext")
    assert found.verdicts == {"kernel": OK, "sched_ext": PROBLEM}
