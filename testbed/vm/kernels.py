# SPDX-License-Identifier: GPL-2.0-only
"""Selects a guest's kernel: an image given by path, a cached image, or an image of a distribution.

Kernels are given by path (`./bzImage`), by a version prefix (`7.2`, `6.17.13`), or by
full release. A version or release is looked up in the directories of SCX_VM_KERNELS, then in the
cache, then in the Debian archive, whose cloud kernels have all drivers for a guest built in. A
series that the archive ships only without sched_ext can be built here (see the module
kernel_build). This takes minutes and is done on request only.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import debs

from . import btf as btf_format
from . import bzimage, elf, progress

#: The newest series that the project is tested with. The default kernel is newer only if it is in
#: SCX_VM_KERNELS.
NEWEST_KNOWN = (7, 2)
#: The first version in which Debian enabled sched_ext. Older kernels of the archive cannot be used.
OLDEST_IN_ARCHIVE = (6, 16)
#: The suites to search, in this order. The backports have many versions, but 7.1 and 7.2 were built
#: with a pahole that is too old (see the module btf).
SUITES = ("sid", "trixie-backports")

_CURE = "give an image with --kernel PATH or SCX_VM_KERNELS=DIR"
#: Directory of SERIES.config, the configurations of kernels that can be built here.
CONFIGS = Path(__file__).parent / "configs"
_IMAGE_NAMES = ("bzImage*", "vmlinuz*")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
#: Packages of kernel images. From 6.19 on, the image is in linux-binary-RELEASE, on which
#: linux-image-RELEASE depends.
_PACKAGE = re.compile(r"linux-(binary|image)-(\d+\.\d+\S*-cloud-amd64)")


class KernelError(Exception):
    """There is no such kernel, or it cannot be used; the text is one line for the user."""


@dataclass(frozen=True)
class Kernel:
    """A kernel image on this machine."""

    path: Path
    #: `uname -r` in the guest.
    release: str
    #: Where the image is from: a directory, "cache", or a suite.
    origin: str

    @property
    def version(self) -> tuple[int, ...]:
        """The numbers at the start of the release."""
        return version_of(self.release)

    @property
    def wanted(self) -> str:
        """The argument of resolve() that selects this kernel again: its path if it is in a
        directory of the user, else its release."""
        return str(self.path) if self.origin == str(self.path.parent) else self.release


@dataclass(frozen=True)
class Packaged:
    """A kernel in the Debian archive."""

    release: str
    suite: str
    package: str

    @property
    def version(self) -> tuple[int, ...]:
        """The numbers at the start of the release."""
        return version_of(self.release)


_AnyKernel = TypeVar("_AnyKernel", Kernel, Packaged)


def version_of(text: str) -> tuple[int, ...]:
    """The dotted numbers at the start of a version or release; () if there are none."""
    match = _VERSION.match(text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def matches(release: str, wanted: str) -> bool:
    """Whether `release` is `wanted`, or matches it as a version prefix."""
    if release == wanted:
        return True
    prefix = version_of(wanted)
    return _VERSION.fullmatch(wanted) is not None and version_of(release)[: len(prefix)] == prefix


def from_path(path: Path) -> Kernel:
    """The kernel image at `path`. Raises KernelError."""
    path = path.absolute()
    try:
        return Kernel(path, bzimage.release(path), str(path.parent))
    except bzimage.ImageError as error:
        raise KernelError(str(error)) from error


def resolve(wanted: str | None = None) -> Kernel:
    """The kernel of a path, version or release; by default, the newest usable kernel up to
    NEWEST_KNOWN, or a newer kernel of SCX_VM_KERNELS.

    Fetches the kernel if necessary. Raises KernelError.
    """
    if wanted is None:
        return _newest()
    if "/" in wanted or Path(wanted).is_file():
        return from_path(Path(wanted))
    if kernel := find(wanted):
        return kernel
    if wanted in buildable():
        raise KernelError(f"kernel {wanted} is not built: build it with ./dev vm kernel {wanted}")
    return _fetch_matching(wanted)


def find(wanted: str) -> Kernel | None:
    """The first local kernel whose version or release is `wanted`, and on which schedulers can be
    loaded."""
    serving = (kernel for kernel in local() if matches(kernel.release, wanted) and _sound(kernel))
    return next(serving, None)


def buildable() -> list[str]:
    """The series that can be built here, newest first."""
    return sorted((path.stem for path in CONFIGS.glob("*.config")), key=version_of, reverse=True)


def local() -> list[Kernel]:
    """Local kernels: first those of SCX_VM_KERNELS, then those of the cache, both newest first."""
    return [*_given(), *_cached()]


def archived(*, fresh: bool = False) -> Iterator[Packaged]:
    """The kernels with sched_ext in the Debian archive, suite by suite, those of a suite newest
    first.

    Uses cached package lists, unless `fresh`. A suite that cannot be read is omitted with a note.
    Raises debs.DebsError if no suite can be read.
    """
    failures: list[debs.DebsError] = []
    for name in SUITES:
        suite = debs.Suite(name, step=progress.step)
        try:
            packages = suite.packages("linux-", fresh=fresh)
        except debs.DebsError as error:
            failures.append(error)
            continue
        yield from _newest_first(packaged(name, packages))
    if len(failures) == len(SUITES):
        raise failures[0]
    for failure in failures:
        progress.note(str(failure))


def packaged(suite: str, packages: Iterable[str]) -> list[Packaged]:
    """The kernels with sched_ext among the package names of a suite."""
    found: dict[str, Packaged] = {}
    for package in sorted(packages, reverse=True):
        match = _PACKAGE.fullmatch(package)
        if match and version_of(match[2]) >= OLDEST_IN_ARCHIVE:
            found[match[2]] = Packaged(match[2], suite, package)
    # In reverse order, linux-binary comes after linux-image, so it replaces linux-image.
    return list(found.values())


def fetch(kernel: Packaged) -> Kernel:
    """The kernel's image, from the cache or the archive. Raises debs.DebsError, KernelError."""
    image = _cached_images() / f"vmlinuz-{kernel.release}"
    if not image.exists():
        suite = debs.Suite(kernel.suite, step=progress.step)
        with suite.unpacked(kernel.package) as tree:
            found = [
                *tree.glob(f"boot/vmlinuz-{kernel.release}"),
                *tree.glob(f"usr/lib/modules/{kernel.release}/vmlinuz"),
            ]
            if not found:
                raise KernelError(f"the package {kernel.package} contains no kernel image")
            _write_atomically(image, found[0].read_bytes())
    return replace(from_path(image), origin=kernel.suite)


def keep(image: Path) -> Kernel:
    """Adds a kernel image built here to the cache.

    Raises KernelError if the file is no image, or schedulers cannot be loaded on the kernel.
    """
    made = from_path(image)
    if flaw := _flaw(made):
        raise KernelError(f"Linux {made.release} was built, but {flaw}")
    target = _cached_images() / f"bzImage-{made.release}"
    _write_atomically(target, image.read_bytes())
    return replace(made, path=target, origin="cache")


def btf(kernel: Kernel) -> Path:
    """The kernel's BTF, as a file extracted from its image and cached.

    Raises KernelError if the kernel has no BTF, or its image cannot be unpacked.
    """
    digest = hashlib.sha256(kernel.path.read_bytes()).hexdigest()[:16]
    target = debs.cache_dir() / "btf" / f"{kernel.release}-{digest}.btf"
    if not target.exists():
        try:
            with progress.step(f"extracting the BTF of Linux {kernel.release}"):
                contents = elf.section(bzimage.vmlinux(kernel.path), ".BTF")
        except (bzimage.ImageError, ValueError) as error:
            raise KernelError(str(error)) from error
        if contents is None:
            raise KernelError(f"{kernel.path}: the kernel was built without CONFIG_DEBUG_INFO_BTF")
        _write_atomically(target, contents)
    return target


def _newest() -> Kernel:
    """The kernel that resolve() returns by default. Raises KernelError."""
    at_hand = _newest_first([*_given(), *filter(_known, _cached())])
    at_hand = [kernel for kernel in at_hand if _sound(kernel)]
    try:
        found = None if debs.offline() else _from_archive(_known, at_hand)
    except debs.DebsError as error:
        if not at_hand:
            raise KernelError(f"{error}; {_CURE}") from error
        progress.note(f"{error}; using the newest local kernel")
        found = None
    if found or at_hand:
        return found or at_hand[0]
    raise KernelError(f"no local kernel: {_CURE}")


def _fetch_matching(wanted: str) -> Kernel:
    if not version_of(wanted):
        raise KernelError(f"no kernel '{wanted}': give a path, or a version such as 7.2")
    try:
        found = _from_archive(lambda kernel: matches(kernel.release, wanted))
    except debs.DebsError as error:
        raise KernelError(f"no local kernel {wanted}: {error}; {_CURE}") from error
    if found:
        return found
    suites = " or ".join(SUITES)
    raise KernelError(f"no kernel {wanted} with sched_ext in Debian {suites}: {_CURE}")


def _from_archive(
    serves: Callable[[Packaged], bool], at_hand: Sequence[Kernel] = ()
) -> Kernel | None:
    """The first kernel of archived() that `serves` accepts, and on which schedulers can be loaded.
    Returns the first of `at_hand` instead once the next candidate is not newer than this kernel.
    Returns None if there are no more candidates, even if `at_hand` is not empty.

    Outdated package lists are refreshed only if the search in them ends without a kernel. Raises
    debs.DebsError, KernelError.
    """
    for fresh in (False, True):
        try:
            for best in filter(serves, archived(fresh=fresh)):
                if at_hand and at_hand[0].version >= best.version:
                    return at_hand[0]
                kernel = fetch(best)
                if _sound(kernel):
                    return kernel
        except debs.DebsError:
            if fresh:
                raise
    return None


def _sound(kernel: Kernel) -> bool:
    """Whether schedulers can be loaded on a kernel; prints a note if not."""
    flaw = _flaw(kernel)
    if flaw:
        progress.note(f"not using Linux {kernel.release}: {flaw}")
    return not flaw


def _flaw(kernel: Kernel) -> str:
    """Why no scheduler can be loaded on a kernel; "" if schedulers can be loaded."""
    try:
        sound = btf_format.is_sound(btf(kernel).read_bytes())
    except (KernelError, ValueError) as error:
        return str(error)
    return "" if sound else "its BTF is damaged (old pahole)"


def _known(kernel: Kernel | Packaged) -> bool:
    return kernel.version[:2] <= NEWEST_KNOWN


def _given() -> list[Kernel]:
    """The images of SCX_VM_KERNELS, newest first."""
    directories = [Path(part) for part in os.environ.get("SCX_VM_KERNELS", "").split(":") if part]
    for directory in directories:
        if not directory.is_dir():
            raise KernelError(f"SCX_VM_KERNELS: {directory} is not a directory")
    return _newest_first(from_path(path) for d in directories for path in _images(d))


def _cached() -> list[Kernel]:
    """Cached images, newest first."""
    images = _images(_cached_images())
    return _newest_first(replace(from_path(path), origin="cache") for path in images)


def _cached_images() -> Path:
    return debs.cache_dir() / "kernels"


def _images(directory: Path) -> list[Path]:
    return sorted(path for name in _IMAGE_NAMES for path in directory.glob(name))


def _newest_first(kernels: Iterable[_AnyKernel]) -> list[_AnyKernel]:
    return sorted(kernels, key=lambda kernel: (kernel.version, kernel.release), reverse=True)


def _write_atomically(target: Path, contents: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as scratch:
        scratch.write(contents)
    Path(scratch.name).chmod(0o644)
    Path(scratch.name).rename(target)
