# SPDX-License-Identifier: GPL-2.0-only
"""Building a kernel: its configuration, options that Kconfig drops, and builds with a fake
makefile."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import debs
import pytest
from images import bzimage_of
from vm import kernel_build, kernels
from vm.kernels import KernelError

needs_tools = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("make", "tar", "xz")), reason="needs make, tar, xz"
)
RELEASE = "6.12.99-scx"
#: Rules for the two targets of the kernel's makefile that a build uses.
ALLNOCONFIG = "allnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) .config\n"
BZIMAGE = "bzImage:\n\tmkdir -p arch/x86/boot && cp image arch/x86/boot/bzImage\n"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache. Every image is accepted."""
    monkeypatch.setenv("SCX_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SCX_VM_KERNELS", raising=False)
    monkeypatch.delenv("SCX_OFFLINE", raising=False)
    monkeypatch.setattr(kernels, "_flaw", lambda _: "")
    return tmp_path / "cache"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Replaces Debian's package of the kernel source: it has the given makefile and an image."""

    def make(makefile: str) -> None:
        tarball = tmp_path / "package/usr/src/linux-source-6.12.tar.xz"
        tarball.parent.mkdir(parents=True)
        with tarfile.open(tarball, "w:xz") as archive:
            for name, data in (("Makefile", makefile.encode()), ("image", bzimage_of(RELEASE))):
                member = tarfile.TarInfo(f"linux-source-6.12/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))

    @contextmanager
    def unpacked(suite: debs.Suite, package: str) -> Iterator[Path]:
        assert (suite.name, package) == ("trixie", "linux-source-6.12")
        yield tmp_path / "package"

    monkeypatch.setattr(debs.Suite, "unpacked", unpacked)
    return make


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "kernel-build").iterdir() if path.name != "lock")


def test_options_of_a_configuration() -> None:
    text = '# A comment\n\nCONFIG_A=y\nCONFIG_B="-x"\n# CONFIG_C is not set\nCONFIG_D=64\n'
    expected = {"CONFIG_A": "y", "CONFIG_B": '"-x"', "CONFIG_C": "n", "CONFIG_D": "64"}
    assert kernel_build.options(text) == expected


def test_options_that_were_dropped() -> None:
    wanted = 'CONFIG_A=y\nCONFIG_B=64\nCONFIG_C=y\nCONFIG_D="x"\n# CONFIG_E is not set\n'
    config = 'CONFIG_B=32\n# CONFIG_C is not set\nCONFIG_D="x"\nCONFIG_F=y\n'
    lost = ["CONFIG_A=y", "CONFIG_B=64", "CONFIG_C=y"]
    assert kernel_build.not_taken(wanted, config) == lost
    assert kernel_build.not_taken(wanted, config + "CONFIG_E=y\n")[-1] == "CONFIG_E=n"
    assert kernel_build.not_taken(wanted, wanted) == []


@pytest.mark.parametrize("series", kernels.buildable())
def test_configurations_of_this_tree(series: str) -> None:
    """All lines are valid and unique, and there is a source for the series."""
    lines = (kernels.CONFIGS / f"{series}.config").read_text().splitlines()
    options = [line for line in lines if line and not line.startswith("# ")]
    assert len(kernel_build.options("\n".join(options))) == len(options)
    assert {"CONFIG_SCHED_CLASS_EXT=y", "CONFIG_DEBUG_INFO_BTF=y"} <= set(options)
    assert series in kernel_build.SUITES


def has_ended(pid: int) -> bool:
    """Whether the process has exited. A zombie has exited, too."""
    try:
        return "Z (zombie)" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


@needs_tools
def test_built_only_once(cache: Path, source: Callable[[str], None]) -> None:
    source(ALLNOCONFIG + BZIMAGE)
    # A build that was killed has left this directory.
    (cache / "kernel-build/6.12/linux").mkdir(parents=True)
    assert kernel_build.needed("6.12")
    kernel = kernel_build.obtain("6.12")
    assert (kernel.release, kernel.origin) == (RELEASE, "cache")
    assert kernel.path == cache / f"kernels/bzImage-{RELEASE}"
    assert leftovers(cache) == []

    assert not kernel_build.needed("6.12")
    shutil.rmtree(cache / "kernel-build")
    assert kernel_build.obtain("6.12") == kernels.resolve("6.12") == kernel
    assert leftovers(cache) == []


@needs_tools
def test_dropped_option_is_named(cache: Path, source: Callable[[str], None]) -> None:
    source("allnoconfig:\n\tgrep -v _SMP= $(KCONFIG_ALLCONFIG) >.config\n" + BZIMAGE)
    with pytest.raises(KernelError, match=r"this kernel does not accept CONFIG_SMP=y"):
        kernel_build.obtain("6.12")
    assert kernel_build.needed("6.12")


@needs_tools
def test_failed_build_keeps_its_log(cache: Path, source: Callable[[str], None]) -> None:
    source(ALLNOCONFIG + "bzImage:\n\t@echo no such file; false\n")
    log = cache / "kernel-build/6.12.log"
    with pytest.raises(KernelError, match=f"make bzImage failed with status 2: see {log}$"):
        kernel_build.obtain("6.12")
    assert "no such file" in log.read_text()
    assert leftovers(cache) == ["6.12.log"]


@needs_tools
def test_interrupted_build_leaves_no_processes(
    cache: Path, tmp_path: Path, source: Callable[[str], None]
) -> None:
    pid = tmp_path / "pid"
    recipe = f"echo $$$$ >{pid}; kill -INT {os.getpid()}; sleep 60"
    source(ALLNOCONFIG + f"bzImage:\n\t{recipe}\n")
    with pytest.raises(KeyboardInterrupt):
        kernel_build.obtain("6.12")
    assert leftovers(cache) == ["6.12.log"]
    # The process has closed its files, but may take a moment to exit.
    deadline_s = time.monotonic() + 20
    while not has_ended(int(pid.read_text())):
        assert time.monotonic() < deadline_s


@needs_tools
def test_interrupt_during_the_start_of_make(
    monkeypatch: pytest.MonkeyPatch, cache: Path, source: Callable[[str], None]
) -> None:
    source("allnoconfig:\n\tsleep 60\n")
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def interrupted(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        started.append(start(*args, **kwargs))
        if args[0][0] == "make":
            os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel_build.obtain("6.12")
    assert started[-1].args[0] == "make"
    assert started[-1].returncode == -signal.SIGKILL
    assert leftovers(cache) == ["6.12.log"]


@needs_tools
def test_unusable_kernel_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, cache: Path, source: Callable[[str], None]
) -> None:
    monkeypatch.setattr(kernels, "_flaw", lambda _: "its BTF is damaged")
    source(ALLNOCONFIG + BZIMAGE)
    with pytest.raises(KernelError, match=f"Linux {RELEASE} was built, but its BTF is damaged$"):
        kernel_build.obtain("6.12")
    assert kernels.local() == []


def test_offline_nothing_is_built(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("SCX_OFFLINE", "1")
    with pytest.raises(debs.DebsError, match="SCX_OFFLINE=1 forbids fetching from Debian trixie"):
        kernel_build.obtain("6.12")
    assert leftovers(cache) == []


def test_kernels_are_built_on_request_only() -> None:
    with pytest.raises(KernelError, match=r"is not built: build it with \./dev vm kernel 6\.12$"):
        kernels.resolve("6.12")


def test_other_kernels_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCX_OFFLINE", "1")
    assert not kernel_build.needed("7.2")
    with pytest.raises(KernelError, match="no local kernel 7.2: SCX_OFFLINE=1"):
        kernel_build.obtain("7.2")


def test_status_says_whether_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel_build.main(["7.2", "6.12"]) == 0
    assert kernel_build.main(["7.2"]) == 1
    assert kernel_build.main([]) == 1
    monkeypatch.setenv("SCX_VM_KERNELS", "/nonexistent")
    assert kernel_build.main(["6.12"]) == 1
