# SPDX-License-Identifier: GPL-2.0-only
"""The guest's root file system: a small, reproducible initramfs.

It contains busybox, two of the scripts in `guest/` (`init` and a main script), and the programs
under test with their shared libraries. It is an uncompressed `newc` cpio archive, because
decompression would be slow under emulation. Device nodes can be put into an archive without root
privileges.
"""

from __future__ import annotations

import functools
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import elf

_SCRIPTS = Path(__file__).parent / "guest"
_DIRECTORIES = (
    *("bin", "dev", "etc", "guest", "home", "proc", "root", "run", "sys", "tmp"),
    *("usr/bin", "var"),
)
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"
_LDD_LINE = re.compile(r"\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)")


class InitramfsError(Exception):
    """The initramfs cannot be created; the text is one line for the user."""


@dataclass(frozen=True)
class Entry:
    """A file of the archive: its mode with the type bits, its contents, its device number."""

    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class File:
    """A file of a guest that is not a program. `contents` is a text, or the path of a file on the
    host."""

    contents: str | Path
    mode: int = 0o644

    def data(self) -> bytes:
        """The contents. Raises InitramfsError."""
        return self.contents.encode() if isinstance(self.contents, str) else _read(self.contents)


class Tree:
    """The files of an initramfs, by path without a leading slash."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def directory(self, path: str) -> None:
        """Add a directory and its parent directories."""
        path = path.strip("/")
        if path and path not in self.entries:
            self.directory(str(Path(path).parent) if "/" in path else "")
            self.entries[path] = Entry(stat.S_IFDIR | 0o755)

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Add a regular file and its parent directories."""
        self._add(path, Entry(stat.S_IFREG | mode, data))

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(path, Entry(stat.S_IFLNK | 0o777, target.encode()))

    def device(self, path: str, major: int, minor: int) -> None:
        """Add a character device."""
        self._add(path, Entry(stat.S_IFCHR | 0o600, device=(major, minor)))

    def copy(self, source: Path, path: str) -> None:
        """Add a copy of the host's file `source`, executable if the source is."""
        data = _read(source)
        self.file(path, data, 0o755 if source.stat().st_mode & 0o111 else 0o644)

    def program(self, source: Path, path: str) -> None:
        """Add the host's program `source` and the shared libraries that it loads.

        Libraries, and the dynamic loader, get the paths at which `ldd` found them.
        """
        self.copy(source, path)
        for library in shared_libraries(source):
            if str(library).strip("/") not in self.entries:
                self.copy(library, str(library))

    def _add(self, path: str, entry: Entry) -> None:
        self.directory(str(Path(path).parent).strip("."))
        self.entries[path.strip("/")] = entry

    def archive(self) -> bytes:
        """The cpio archive of the tree, reproducible: sorted, without times, inodes from 1."""
        records = [
            _record(path, number, entry)
            for number, (path, entry) in enumerate(sorted(self.entries.items()), start=1)
        ]
        return b"".join([*records, _record("TRAILER!!!", 0, Entry(0))])


def build(
    programs: Iterable[Path] = (), main: str = "agent", files: Mapping[str, File] | None = None
) -> bytes:
    """The archive with busybox, `programs`, and `main`, the script in `guest/` that init runs.

    Programs are added to the guest's PATH by their file names. `files` are further files, by their
    path in the guest. They may replace standard files, such as /etc/passwd. Raises InitramfsError
    when something is missing on the host.
    """
    tree = base()
    for script in ("init", main):
        tree.copy(_SCRIPTS / script, f"guest/{script}")
    _add(tree, programs, files)
    tree.link("init", "guest/init")
    # init runs /guest/main.
    tree.link("guest/main", main)
    return tree.archive()


def parcel(programs: Iterable[Path] = (), files: Mapping[str, File] | None = None) -> bytes:
    """An archive with only `programs` and `files`, for a resumed guest.

    Raises InitramfsError when something is missing on the host.
    """
    tree = Tree()
    _add(tree, programs, files)
    return tree.archive()


def _add(tree: Tree, programs: Iterable[Path], files: Mapping[str, File] | None) -> None:
    for program in programs:
        tree.program(program, f"usr/bin/{program.name}")
    for path, file in (files or {}).items():
        tree.file(path, file.data(), file.mode)


def base() -> Tree:
    """A tree with busybox, its applets, and the usual directories and files, but without /init."""
    tree = Tree()
    for path in _DIRECTORIES:
        tree.directory(path)
    # /var/run is a link to /run, as in distributions.
    tree.link("var/run", "/run")
    tree.device("dev/console", 5, 1)
    tree.device("dev/null", 1, 3)
    tree.file("etc/passwd", _PASSWD.encode())
    tree.file("etc/group", _GROUP.encode())
    busybox = _busybox()
    tree.program(busybox, "bin/busybox")
    for applet in _applets(busybox):
        if applet != "busybox":
            tree.link(f"bin/{applet}", "busybox")
    return tree


@functools.cache
def shared_libraries(program: Path) -> list[Path]:
    """The libraries that `program` loads at start; empty for scripts and static programs. Cached,
    because most guests of a test run have the same programs, and `ldd` starts processes for each.

    Raises InitramfsError when the program cannot be read, or a library is missing on the host.
    """
    try:
        with program.open("rb") as file:
            if file.read(4) != elf.MAGIC:
                return []
    except OSError as error:
        raise InitramfsError(f"{program}: cannot read it: {error.strerror}") from error
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    missing = re.search(r"(\S+) => not found", listing)
    if missing:
        raise InitramfsError(f"{program}: its library {missing[1]} is not installed")
    return [Path(match[1]) for line in listing.splitlines() if (match := _LDD_LINE.match(line))]


def _read(source: Path) -> bytes:
    try:
        return source.read_bytes()
    except OSError as error:
        raise InitramfsError(f"{source}: cannot read it: {error.strerror}") from error


def _busybox() -> Path:
    found = shutil.which("busybox")
    if found is None:
        raise InitramfsError("busybox is missing: install the package busybox-static")
    return Path(found)


def _applets(busybox: Path) -> list[str]:
    listing = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    return listing.stdout.split()


def _record(path: str, number: int, entry: Entry) -> bytes:
    """One member of a newc archive; see cpio(5) for the fields."""
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    major, minor = entry.device
    fields = (
        *(number, entry.mode, 0, 0, links, 0, len(entry.data)),
        *(0, 0, major, minor, len(name), 0),
    )
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    return _padded(header + name) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
