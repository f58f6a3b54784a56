# SPDX-License-Identifier: GPL-2.0-only
"""Guests for the tests of this directory: one guest per test file, with all schedulers in it, and
one deterministic guest per script, with only the programs that the script names.

For example: pytest tests/vm --kernel 6.17 --topology numa
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import signal
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import debs
import pytest
import seeds
from sched_ext import (
    TIMEOUT_S,
    KernelWatch,
    Load,
    SetCpu,
    Start,
    read,
    schedulers_of,
    wait_for,
)
from schedulers import C_SCHEDULERS, ROOT, RUST_SCHEDULERS
from system_bus import SystemBus
from vm import emulator, health, initramfs, kernels, qemu, replay, topology
from vm.guest import Guest, Process
from vm.programs import COUNTERS, built, lacking

#: The first kernel that does not need workers_stay_online().
MAPS_FREED_ANYWHERE_SINCE = (7, 0)
#: The default seed of each test in a deterministic guest.
FIXED_SEED = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("guest")
    group.addoption("--kernel", help="path or version (default: the newest tested one)")
    group.addoption("--topology", default=topology.DEFAULT, help="default: %(default)s")
    group.addoption(
        "--seeds",
        type=seeds_of,
        metavar="N|A-B",
        help="only the tests in deterministic guests, each with the seeds 1 to N, or A to B",
    )
    group.addoption(
        "--own-seed",
        type=int,
        metavar="N",
        help="run one in N tests in deterministic guests with a second seed, too; commit and name "
        "of the test determine which tests, and the seed",
    )
    group.addoption(
        "--programs",
        type=lambda text: text.split(","),
        metavar="NAME,…",
        help="of the tests that are parametrized by schedulers, only those of these schedulers",
    )
    group.addoption(
        "--another-kernel",
        action="store_true",
        help="skip tests that do not depend on the kernel",
    )


def seeds_of(text: str) -> list[int]:
    """Parses the argument of --seeds: `N` means 1 to N, `A-B` means A to B."""
    first, _, last = text.rpartition("-")
    found = list(range(int(first or 1), int(last) + 1))
    if not found or found[0] < 1:
        raise argparse.ArgumentTypeError(f"'{text}': give N, or A-B with A not above B")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Seeds for each test in a deterministic guest: the requested seeds, else the default seed.
    With --own-seed, each test runs with the default seed, and some also with a seed that depends on
    the commit, so that no test is tuned to one run."""
    if "seed" not in metafunc.fixturenames:
        return
    wanted = metafunc.config.getoption("--seeds")
    if one_in := metafunc.config.getoption("--own-seed"):
        wanted = [FIXED_SEED, *own_seed(metafunc.definition.nodeid, one_in)]
    if wanted:
        metafunc.parametrize("seed", wanted, ids=[f"seed{seed}" for seed in wanted])


@functools.cache
def commit() -> str | None:
    """The commit under test; `None` without git."""
    git = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def digest(test: str) -> int | None:
    """A number that depends on commit and test; `None` without git."""
    return zlib.crc32(f"{commit()}{test}".encode()) if commit() else None


def own_seed(test: str, one_in: int) -> list[int]:
    """A second seed, which depends on commit and test, for one in `one_in` tests; [] for the
    others, and without git."""
    number = digest(test)
    if number is None or number % one_in:
        return []
    return [2 + number // one_in % 1_000_000]


def is_in_sample(item: pytest.Item) -> bool:
    """Whether a test is in the sample: one in $SCX_SAMPLE tests, selected by commit and topology.
    Without $SCX_SAMPLE or git, all tests are in the sample. The caller applies the sample to runs
    on older kernels or on other topologies than the default, where not all tests are needed, and to
    tests that are marked as sampled."""
    number = digest(item.nodeid + item.config.getoption("--topology"))
    return number is None or number % int(os.environ.get("SCX_SAMPLE", "1")) == 0


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every_topology: depends on the CPUs, runs on each topology")
    if config.getoption("--seeds"):
        config.pluginmanager.register(seeds.Report(config))
    config.addinivalue_line("markers", "once: does not depend on the kernel")
    config.addinivalue_line("markers", "sampled: with $SCX_SAMPLE, only some of its parameters")
    config.addinivalue_line(
        "markers",
        "kernel_complains(pattern, series=None): kernel messages that this test causes, "
        "on every kernel or on those of a series",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that do not run on this topology or this kernel, that are not in the
    sample, or that --seeds or --programs excludes. Without QEMU, the remaining tests are skipped,
    with the reason."""
    if on_another_topology := config.getoption("--topology") != topology.DEFAULT:
        items[:] = [item for item in items if item.get_closest_marker("every_topology")]
    if on_another_kernel := config.getoption("--another-kernel"):
        items[:] = [item for item in items if not runs_once(item)]
    is_elsewhere = on_another_topology or on_another_kernel
    items[:] = [
        item
        for item in items
        if is_in_sample(item) or not (is_elsewhere or item.get_closest_marker("sampled"))
    ]
    if config.getoption("--seeds"):
        items[:] = [item for item in items if "seed" in getattr(item, "fixturenames", ())]
    if wanted := config.getoption("--programs"):
        items[:] = [item for item in items if is_about(item, wanted)]
    if qemu.available():
        return
    skip = pytest.mark.skip(reason=f"{qemu.PROGRAM} is missing: install qemu-system-x86")
    for item in items:
        item.add_marker(skip)


def is_about(item: pytest.Item, wanted: list[str]) -> bool:
    """Whether a test is parametrized by one of these schedulers, or by no scheduler."""
    callspec = getattr(item, "callspec", None)
    schedulers = C_SCHEDULERS + RUST_SCHEDULERS
    given = [value for value in callspec.params.values() if value in schedulers] if callspec else []
    return not given or any(value in wanted for value in given)


def runs_once(item: pytest.Item) -> bool:
    """Whether a test runs on the newest kernel only: if it is marked `once`, or if its guest is
    deterministic."""
    return bool(item.get_closest_marker("once")) or "seed" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def kernel(pytestconfig: pytest.Config) -> kernels.Kernel:
    """The kernel under test. If it cannot be obtained, for example without a network, the tests are
    skipped."""
    try:
        return kernels.resolve(pytestconfig.getoption("--kernel"))
    except kernels.KernelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shape(pytestconfig: pytest.Config) -> topology.Topology:
    """The topology under test."""
    try:
        return topology.find(pytestconfig.getoption("--topology"))
    except topology.TopologyError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="session")
def programs(build_dir: Path) -> list[Path]:
    """Programs of the guest: all programs of this tree, and programs of the host that busybox
    lacks."""
    folders = [build_dir / folder for folder in ("scheds/c", "rust", "tests/clients")]
    ours = [p for d in folders for p in d.glob("scx*") if p.is_file() and not p.suffix]
    return [*ours, built(COUNTERS), *lacking()]


@pytest.fixture(scope="session")
def files() -> dict[str, initramfs.File]:
    """Further files of the guest; overridden by test files."""
    return {}


@pytest.fixture(scope="session")
def icount() -> bool:
    """Whether the time of a guest is the number of executed instructions, where possible: see
    Guest. Overridden by test files whose timeouts are in the host's time."""
    return True


@pytest.fixture(scope="module")
def guest(
    kernel: kernels.Kernel,
    shape: topology.Topology,
    programs: list[Path],
    files: dict[str, initramfs.File],
    icount: bool,
) -> Iterator[Guest]:
    """The guest of a test file, booted. Each file has its own guest, so that the death of a guest
    affects only the tests of one file."""
    try:
        machine = Guest(kernel, shape, programs=programs, files=files, icount=icount)
    except initramfs.InitramfsError as error:
        pytest.skip(str(error))
    with machine:
        yield machine


@pytest.fixture(scope="module")
def bus(guest: Guest) -> Iterator[SystemBus]:
    """A system bus with polkit. The guest needs the programs and the files of `system_bus`."""
    system = SystemBus(guest)
    system.start()
    yield system
    system.stop()


@pytest.fixture(scope="session")
def fit_emulator() -> None:
    """Skips if no QEMU for deterministic guests is available."""
    try:
        emulator.find()
    except (qemu.QemuError, debs.DebsError) as error:
        pytest.skip(str(error))


@pytest.fixture
def seed() -> int:
    """The seed of deterministic guests: the default seed or a requested seed."""
    return FIXED_SEED


Replay = Callable[..., replay.Outcome]


@pytest.fixture
def replays(fit_emulator: None, kernel: kernels.Kernel, programs: list[Path], seed: int) -> Replay:
    """Runs a script in a deterministic guest, with the programs that the script names. Further
    arguments are passed to replay.run(), whose result is returned. The default of its argument
    `seed` is the seed of the test."""

    def run(shape: topology.Topology, script: str, **options: Any) -> replay.Outcome:
        named = set(re.findall(r"[\w-]+", script))
        wanted = [program for program in programs if program.name in named]
        return replay.run(kernel, shape, script, programs=wanted, **{"seed": seed, **options})

    return run


@pytest.fixture
def replayed_on(replays: Replay) -> Callable[[topology.Topology, str], str]:
    """Runs a script in a deterministic guest with the given topology. The script must succeed.
    Returns the output of the script."""

    def run(shape: topology.Topology, script: str) -> str:
        outcome = replays(shape, script)
        assert outcome.status == 0, outcome.output
        return outcome.output.decode()

    return run


@pytest.fixture
def replayed(
    replayed_on: Callable[[topology.Topology, str], str], shape: topology.Topology
) -> Callable[[str], str]:
    """Runs a script in a deterministic guest with the topology under test. The script must succeed.
    Returns the output of the script."""
    return lambda script: replayed_on(shape, script)


def expected_complaints(item: pytest.Item, kernel: kernels.Kernel) -> list[str]:
    """Patterns of kernel messages that a test causes on this kernel."""
    return [
        marker.args[0]
        for marker in item.iter_markers("kernel_complains")
        if kernels.matches(kernel.release, marker.kwargs.get("series", kernel.release))
    ]


@pytest.fixture(autouse=True)
def content_kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test that uses the guest, checks that the kernel has logged no unexpected error
    during the test."""
    if "guest" not in request.fixturenames:
        yield
        return
    watch = KernelWatch(request.getfixturevalue("guest"))
    yield
    log = watch.log()
    found = health.complaints(log, expected_complaints(request.node, watch.guest.kernel))
    # Fail with the whole log, because an error message alone does not show its cause.
    assert not found, "kernel errors:\n" + "\n".join(found) + "\n\nlog:\n" + log


@pytest.fixture
def load(guest: Guest) -> Iterator[Load]:
    """Starts scx_load with the given arguments. At the end of the test, the loads that still
    run are stopped. `through` is a prefix of the command, such as "nice -n 5"."""
    started: list[Process] = []

    def launch(*args: str, through: str = "") -> Process:
        name = f"load{len(started)}"
        limit = [] if "--seconds" in args else ["--seconds", "86400"]
        started.append(guest.spawn(name, [*through.split(), "scx_load", *limit, *args]))
        return started[-1]

    yield launch
    ended = [process for process in started if process.running()]
    # Signal all loads before waiting for the first: beside a load of high weight that still runs, a
    # load of low weight would end late.
    for process in ended:
        process.signal(signal.SIGINT)
    for process in ended:
        # A load that has no handler yet dies of the signal.
        assert process.wait(TIMEOUT_S) in {0, 128 + signal.SIGINT}, process.stderr()


@pytest.fixture
def start(guest: Guest) -> Iterator[Start]:
    """Starts schedulers for one test: `start("scx_simple", "-f")`; see schedulers_of()."""
    with schedulers_of(guest) as launch:
        yield launch


#: The CPUs of unbound kernel workers.
WORKER_CPUS = "/sys/devices/virtual/workqueue/cpumask"


@pytest.fixture
def workers_stay_online(guest: Guest, kernel: kernels.Kernel) -> Iterator[None]:
    """Keeps unbound kernel workers on CPU 0, which never goes offline, on kernels before 7.0.

    Of the tested kernels, 6.17 needs this: it disables the migration of a worker that frees a BPF
    map. To free task storage, the worker waits for rcu_tasks_trace, which waits for the CPU hotplug
    lock. The task that takes a CPU offline holds this lock until all tasks have left the CPU, but
    the worker cannot leave it. So taking a CPU offline may deadlock while the kernel frees the maps
    of the scheduler that the previous hotplug event has ended.
    """
    if kernel.version >= MAPS_FREED_ANYWHERE_SINCE:
        yield
        return
    before = read(guest, WORKER_CPUS)
    guest.run(f"echo 1 >{WORKER_CPUS}").check()
    freeing = "cat /proc/[0-9]*/stack 2>/dev/null | grep -q bpf_map_free"
    wait_for("no map is being freed", lambda: guest.run(freeing).status != 0)
    yield
    guest.run(f"echo {before} >{WORKER_CPUS}").check()


@pytest.fixture
def set_cpu(guest: Guest, workers_stay_online: None) -> Iterator[SetCpu]:
    """Takes a CPU offline, or brings it online. Returns how long this took, in s of the guest.
    After the test, the topology's initial CPUs are online again."""

    def switch(cpu: int, online: bool, *, is_urgent: bool = False) -> float:
        change = f"echo {int(online)} >/sys/devices/system/cpu/cpu{cpu}/online"
        uptime = "read since _ </proc/uptime"
        # Under load, a machine with eight emulated CPUs may need many seconds.
        done = guest.run(
            f"set -e; {uptime}; {change}; echo $since; cat /proc/uptime",
            timeout_s=600,
            is_urgent=is_urgent,
        )
        since, until, *_ = done.check().stdout.split()
        return float(until) - float(since)

    yield switch
    for cpu in guest.topology.online[1:]:
        switch(cpu, True)
