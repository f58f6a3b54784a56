# SPDX-License-Identifier: GPL-2.0-only
"""Builds kernels that the Debian archive ships only without sched_ext, from Debian's source.

`configs/SERIES.config` lists what a guest needs. All else is disabled, so that a build takes
minutes. Source and objects are in a temporary directory below the cache. Only the image is kept, or
the log of a build that failed.

    python3 -m vm.kernel_build VERSION…     status 0 if `vm kernel` would build one of them
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import debs

from . import kernels, progress
from .kernels import Kernel, KernelError

#: Series → the Debian release that has its source.
SUITES = {"6.12": "trixie"}

_OPTION = re.compile(r"(?:# )?(CONFIG_\w+)(?:=(.*)| is not set)")
#: The value of an option that a configuration lists as "is not set", or does not list.
_UNSET = "n"
#: The kernel image contains the names of a user and a machine. Without these variables, they would
#: be those of this user and machine.
_ENVIRONMENT = {"LC_ALL": "C", "KBUILD_BUILD_USER": "scx", "KBUILD_BUILD_HOST": "scx"}


def obtain(wanted: str) -> Kernel:
    """The kernel of a path, version or release.

    If it is not local, a series of kernels.buildable() is built, and any other kernel is fetched.
    Raises KernelError, debs.DebsError.
    """
    if wanted not in kernels.buildable():
        return kernels.resolve(wanted)
    with debs.locked(_workshop() / "lock"):
        # Another process may have built the kernel before this process took the lock.
        return kernels.find(wanted) or _build(wanted)


def needed(wanted: str) -> bool:
    """Whether obtain() would build. Raises KernelError."""
    return wanted in kernels.buildable() and kernels.find(wanted) is None


def options(config: str) -> dict[str, str]:
    """The options of a kernel configuration or fragment, and their values."""
    lines = map(_OPTION.fullmatch, config.splitlines())
    return {match[1]: match[2] or _UNSET for match in lines if match}


def not_taken(wanted: str, config: str) -> list[str]:
    """The options of `wanted` that have another value in `config`.

    Kconfig silently drops unknown options, and options whose dependencies are disabled.
    """
    taken = options(config)
    return [
        f"{name}={value}"
        for name, value in options(wanted).items()
        if taken.get(name, _UNSET) != value
    ]


def _workshop() -> Path:
    return debs.cache_dir() / "kernel-build"


def _build(series: str) -> Kernel:
    """Build the newest kernel of a series; the caller holds the lock."""
    make = _Make(_workshop() / f"{series}.log")
    with _scratch(_workshop() / series) as scratch:
        source = _unpack(series, scratch)
        _configure(make, source, kernels.CONFIGS / f"{series}.config")
        with progress.step(f"building Linux {series}, which takes minutes"):
            make.run(source, f"-j{len(os.sched_getaffinity(0))}", "bzImage")
        kernel = kernels.keep(source / "arch/x86/boot/bzImage")
    make.log.unlink()
    return kernel


@contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    """An empty directory, removed after the block. Before the block, removes leftovers of killed
    builds."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir()
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def _unpack(series: str, scratch: Path) -> Path:
    """The source of a series, unpacked into `scratch`. Raises debs.DebsError, KernelError."""
    package = f"linux-source-{series}"
    suite = debs.Suite(SUITES[series], step=progress.step)
    with suite.unpacked(package) as tree:
        tarballs = list(tree.glob("usr/src/*.tar.xz"))
        if not tarballs:
            raise KernelError(f"the package {package} contains no source")
        with progress.step(f"unpacking {package}"):
            command = ["tar", "-C", str(scratch), "-xJf", str(tarballs[0])]
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:]
        raise KernelError(f"cannot unpack {package}: {''.join(reason)}")
    return next(scratch.iterdir())


def _configure(make: _Make, source: Path, config: Path) -> None:
    """Create the source's .config. Raises KernelError if the result lacks an option of `config`."""
    make.run(source, "allnoconfig", f"KCONFIG_ALLCONFIG={config}")
    lost = not_taken(config.read_text(), (source / ".config").read_text())
    if lost:
        raise KernelError(f"{config}: this kernel does not accept {', '.join(lost)}")


class _Make:
    """Runs make, and writes its output to a log."""

    def __init__(self, log: Path) -> None:
        self.log = log
        log.unlink(missing_ok=True)

    def run(self, source: Path, *arguments: str) -> None:
        """Run make in `source`, without the user's make settings. Raises KernelError."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        alive, held = os.pipe()
        with self.log.open("a") as log, os.fdopen(alive) as alive_end, _interrupts_held() as let_go:
            process = subprocess.Popen(
                ["make", "-C", str(source), *arguments],
                env=kept | _ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[held],
                start_new_session=True,
            )
            os.close(held)
            try:
                let_go()
                status = process.wait()
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                # Wait for the end of all compilers, which write into the directory that is removed
                # next. They have inherited the write end of the pipe, so the read returns when the
                # last of them has ended.
                alive_end.read()
                raise
        if status != 0:
            raise KernelError(f"make {arguments[-1]} failed with status {status}: see {self.log}")


@contextmanager
def _interrupts_held() -> Iterator[Callable[[], None]]:
    """Within the block, defers Ctrl-C until the yielded function is called. After an interrupt
    during Popen(), the child process might never be killed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])

    def let_go() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield let_go
    finally:
        let_go()


def main(arguments: Sequence[str]) -> int:
    """Prints nothing. The exit status is 0 if one of these versions would be built, else 1."""
    try:
        return 0 if any(map(needed, arguments)) else 1
    except KernelError:
        # A later request for the kernel reports the error.
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
