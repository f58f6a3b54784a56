# SPDX-License-Identifier: GPL-2.0-only
"""`scxctl check`: each line is compared with independent information."""

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

#: The guest's directory with the manifests of all schedulers, that of a scheduler which requires
#: a kfunc of newer kernels, and that of one which requires an unknown one.
INSTALLED = "/usr/share/scx/schedulers"
FUTURE = "/usr/share/scx/future"
ALWAYS, NEWER, NEVER = "scx_bpf_create_dsq", "scx_bpf_dsq_peek", "scx_bpf_no_such_thing"
#: The second one under the program's own name, as libbpf allows.
MANIFEST = {
    "name": "scx_future",
    "options": [],
    "modes": {},
    "kfuncs": [ALWAYS, f"{NEWER}___ours", NEVER],
}

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Told(NamedTuple):
    """Its findings, by name."""

    verdicts: dict[str, str]
    texts: dict[str, str]


def told(output: str, status: int) -> Told:
    """Its findings, after checks of the format: unique names, a remedy for each problem, and the
    exit status."""
    findings = json.loads(output)
    verdicts = {one["name"]: one["verdict"] for one in findings}
    assert len(verdicts) == len(findings)
    assert set(verdicts.values()) <= {OK, WARNING, PROBLEM}
    assert all(one["text"] and (one["verdict"] == OK or one["cure"]) for one in findings)
    assert status == int(PROBLEM in verdicts.values()), findings
    return Told(verdicts, {one["name"]: one["text"] for one in findings})


def check(guest: Guest, folder: str = INSTALLED, user: str = "root", before: str = "") -> Told:
    """Runs it in the guest, after a command whose effects are visible only to it."""
    command = f"scxctl check --json --schedulers {folder}"
    if before:
        command = f"unshare -m sh -c '{before} && exec {command}'"
    done = guest.run(command, user=user)
    assert not done.stderr
    return told(done.stdout, done.status)


def all_well(guest: Guest, user: str = "root") -> dict[str, str]:
    """The verdicts of an unmodified guest."""
    names = ["kernel", "sched_ext", "btf", "rights", "scheduler", "isolation", "cgroups", "boot"]
    names += C_SCHEDULERS + RUST_SCHEDULERS
    # Some kernels restrict it to root.
    if guest.run("cat /proc/sys/net/core/bpf_jit_enable", user=user).ok:
        names.append("jit")
    # Few kernels contain it, and in a guest there is no file of it.
    if guest.run("zcat /proc/config.gz | grep -q CONFIG_SCHED_CLASS_EXT=y", user=user).ok:
        names.append("config")
    aside = guest.run("[ -d /sys/kernel/debug/sched/ext_server ]").ok
    return {name: OK for name in names} | {"ext_server": OK if aside else WARNING}


@pytest.fixture(scope="session")
def files(build_dir: Path) -> dict[str, File]:
    return loader.descriptions(build_dir, INSTALLED) | {
        f"{FUTURE}/scx_future.json": File(json.dumps(MANIFEST))
    }


# The first of its file: no other guest runs by then.
def test_what_the_machine_was_booted_with(
    kernel: Kernel, shape: Topology, programs: list[Path], files: dict[str, File]
) -> None:
    args = ["isolcpus=1", "scx=off"]
    with Guest(kernel, shape, programs=programs, files=files, kernel_args=args) as guest:
        found = check(guest)
        expected = all_well(guest) | {"isolation": PROBLEM, "boot": WARNING}
        assert found.verdicts == expected, found
        assert "CPUs 1 are isolated" in found.texts["isolation"]
        assert guest.run(["scx_simple"], TIMEOUT_S).status == 1
        lockdown = "/sys/kernel/security/lockdown"
        guest.run("mount -t securityfs none /sys/kernel/security")
        # There is no way back.
        for mode, verdict in (("integrity", OK), ("confidentiality", PROBLEM)):
            if guest.run(f"echo {mode} >{lockdown}").ok:
                assert check(guest).verdicts == expected | {"lockdown": verdict}


def test_guest_that_is_well(guest: Guest) -> None:
    found = check(guest)
    assert found.verdicts == all_well(guest)
    assert found.texts["kernel"] == f"Linux {guest.kernel.release}"


def test_nobody_has_no_rights(guest: Guest) -> None:
    found = check(guest, user="nobody")
    assert found.verdicts == all_well(guest, "nobody") | {"rights": WARNING}
    assert "root" in found.texts["rights"]


def test_root_of_a_container_has_no_rights(guest: Guest) -> None:
    done = guest.run(f"unshare -Ur scxctl check --json --schedulers {INSTALLED}", user="nobody")
    if "unshare" in done.stderr:
        pytest.skip(f"no user namespaces: {done.stderr}")
    found = told(done.stdout, done.status)
    assert found.verdicts["rights"] == WARNING
    assert "container" in found.texts["rights"]


def test_what_runs_is_named(guest: Guest, start: Start) -> None:
    scheduler = start("scx_simple").wait_enabled()
    ours, stranger = check(guest), check(guest, FUTURE)
    assert ours.verdicts == all_well(guest)
    assert ours.texts["scheduler"] == "scx_simple runs"
    assert stranger.verdicts["scheduler"] == PROBLEM
    assert "'simple'" in stranger.texts["scheduler"]
    assert scheduler.end(signal.SIGINT) == 0


def test_functions_that_the_kernel_lacks_are_named(guest: Guest) -> None:
    symbols = read(guest, "/proc/kallsyms").split()
    found = check(guest, FUTURE)
    assert found.verdicts["scx_future"] == PROBLEM
    missing = [name for name in (NEWER, NEVER) if name not in symbols]
    assert found.texts["scx_future"].endswith(f": {', '.join(missing)}")


#: A cgroup that has less than others, where the kernel has such a control.
CGROUP = "/sys/fs/cgroup/scx_test"
MAKE_CGROUP = f"""
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control &&
mkdir {CGROUP} &&
echo 50 >{CGROUP}/cpu.weight
"""


def test_cgroup_control_that_does_not_count_is_named(guest: Guest) -> None:
    try:
        if not guest.run(MAKE_CGROUP).ok:
            pytest.skip("the kernel has no weights for cgroups")
        found = check(guest)
    finally:
        guest.run(f"rmdir {CGROUP}")
    assert found.verdicts == all_well(guest) | {"cgroups": WARNING}
    assert found.texts["cgroups"].endswith(f"1 set them, such as cpu.weight of {CGROUP}")
    assert check(guest).verdicts["cgroups"] == OK


def test_compiler_that_is_off_is_a_problem(guest: Guest) -> None:
    switch = "echo {} >/proc/sys/net/core/bpf_jit_enable"
    try:
        if not guest.run(switch.format(0)).ok:
            pytest.skip("the kernel compiles all BPF programs")
        assert check(guest).verdicts == all_well(guest) | {"jit": PROBLEM}
        assert guest.run(["scx_simple"], TIMEOUT_S).status == 1
    finally:
        guest.run(switch.format(1)).check()


def test_without_type_information_nothing_is_said_of_functions(guest: Guest) -> None:
    found = check(guest, before="mount -t tmpfs none /sys/kernel/btf")
    unknown = {"ext_server", *C_SCHEDULERS, *RUST_SCHEDULERS}
    known = {name: is_ for name, is_ in all_well(guest).items() if name not in unknown}
    assert found.verdicts == known | {"btf": PROBLEM}


def test_without_sched_ext_nothing_else_is_said(guest: Guest) -> None:
    found = check(guest, before="mount -t tmpfs none /sys/kernel/sched_ext")
    assert found.verdicts == {"kernel": OK, "sched_ext": PROBLEM}
