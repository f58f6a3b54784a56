# SPDX-License-Identifier: GPL-2.0-only
"""Debian packages of other suites, fetched into a cache without touching the system.

Each suite has its own apt configuration in the cache: package lists, a sources line derived from
the machine's mirror, and an empty dpkg status. Packages are verified with the machine's archive
keyring, unpacked, and never installed. Root is not needed.

    python3 -m debs fetch trixie-backports bpftool      prints the directory of the unpacked package

The cache is $SCX_CACHE, or scx in $XDG_CACHE_HOME or ~/.cache. SCX_OFFLINE=1 forbids the network.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

#: Package lists older than this are refreshed before a download, and for callers that ask for fresh
#: lists.
LISTS_MAX_AGE_S = 24 * 3600.0
#: Suites that apt's sources may name instead of a release's code name.
_ALIASES = {"stable", "oldstable", "testing", "unstable", "sid"}
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_OS_RELEASE = Path("/etc/os-release")

_APT_CONF = """\
// The system's lists, sources, pins, status and hooks are not used.
#clear APT::Update;
#clear APT::Default-Release;
Dir::State "{directory}/state";
Dir::State::status "/dev/null";
Dir::Cache "{directory}/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Etc::sourcelist "{directory}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
APT::Update::Error-Mode "any";
// An outdated mirror is acceptable: packages are signed, and never installed.
Acquire::Check-Valid-Until "false";
APT::Sandbox::User "{user}";
"""

#: A function that returns a context manager for a long step, given the step's description.
Step = Callable[[str], AbstractContextManager[None]]


class DebsError(Exception):
    """A package or the cache is not available; the text is one line for the user."""


def cache_dir() -> Path:
    """The project's cache directory; it may not exist yet."""
    if own := os.environ.get("SCX_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "scx"


def offline() -> bool:
    """Whether SCX_OFFLINE forbids fetching."""
    return os.environ.get("SCX_OFFLINE") == "1"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock against other processes. The lock file `path` is created if necessary. Raises
    DebsError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        cure = "set SCX_CACHE to a directory that you may write"
        raise DebsError(f"cannot use the cache {path.parent}: {error.strerror}: {cure}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def archive_uri(codename: str, apt_options: Sequence[str] = ()) -> str:
    """The mirror of Debian `codename` in this machine's apt sources.

    Raises DebsError if there is none.
    """
    uris = [
        uri for suite, uri in _apt_sources(apt_options) if suite == codename or suite in _ALIASES
    ]
    if not uris:
        raise DebsError(f"apt has no source for Debian {codename}")
    # Prefer /debian, because repositories of other vendors use Debian's code names, too.
    return next((uri for uri in uris if uri.endswith("/debian")), uris[0])


def sources(codename: str, apt_options: Sequence[str] = ()) -> list[str]:
    """Lines of sources.list for Debian `codename`, its updates, and its security updates if this
    machine uses them. Raises DebsError.
    """
    uri = archive_uri(debian_codename(), apt_options)
    security = [u for suite, u in _apt_sources(apt_options) if suite.endswith("-security")]
    lines = [f"deb {uri} {codename} main", f"deb {uri} {codename}-updates main"]
    return lines + [f"deb {uri} {codename}-security main" for uri in security[:1]]


def _apt_sources(apt_options: Sequence[str]) -> list[tuple[str, str]]:
    """The suites from which apt uses the component main, with their addresses."""
    fields = "$(CREATED_BY) $(COMPONENT) $(RELEASE) $(REPO_URI)"
    command = ["apt-get", *apt_options, "indextargets", "--no-release-info", "--format", fields]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = [line.split() for line in listing.splitlines()]
    return [(row[2], row[3].rstrip("/")) for row in rows if row[:2] == ["Packages", "main"]]


def debian_codename(os_release: Path = _OS_RELEASE) -> str:
    """The code name of this machine's Debian release. Raises DebsError on other systems."""
    try:
        fields = dict(re.findall(r'^(\w+)="?([^"\n]*)', os_release.read_text(), re.MULTILINE))
    except OSError:
        fields = {}
    if fields.get("ID") != "debian" or shutil.which("apt-get") is None:
        name = fields.get("PRETTY_NAME", "this system")
        raise DebsError(f"cannot fetch Debian packages on {name}")
    return fields.get("VERSION_CODENAME", "sid")


class Suite:
    """A suite of the Debian archive, such as trixie-backports or sid, with its cache."""

    def __init__(self, name: str, *, step: Step = lambda _: nullcontext()) -> None:
        self.name = name
        self._step = step
        self._directory = cache_dir() / "debs" / name
        self._config = self._directory / "apt.conf"
        self._stamp = self._directory / "refreshed"
        self._lock = self._directory / "lock"

    def packages(self, prefix: str, *, fresh: bool = False) -> list[str]:
        """Names of the suite's packages that begin with `prefix`.

        The package lists may be outdated unless `fresh`. Raises DebsError if lists are needed that
        cannot be fetched.
        """
        with locked(self._lock):
            if not (self._fresh() if fresh else self._stamp.exists()):
                self._refresh()
            return self._apt("apt-cache", "pkgnames", prefix).split()

    def fetch(self, package: str, version: str | None = None) -> Path:
        """The directory of the unpacked `package`, from the cache if the package is there.

        Without `version`, the newest cached version, else the suite's newest version. Raises
        DebsError.
        """
        if cached := self._cached(package, version):
            return cached
        with locked(self._lock):
            if cached := self._cached(package, version):
                return cached
            with self._unpacked(package, version) as (tree, deb_version):
                target = self._directory / "unpacked" / _stem(package, deb_version)
                target.parent.mkdir(exist_ok=True)
                tree.rename(target)
            return target

    @contextmanager
    def unpacked(self, package: str, version: str | None = None) -> Iterator[Path]:
        """A directory with the unpacked `package`. It is removed after the block. Raises
        DebsError."""
        with locked(self._lock), self._unpacked(package, version) as (tree, _):
            yield tree

    def _cached(self, package: str, version: str | None) -> Path | None:
        found = sorted(
            (self._directory / "unpacked").glob(_stem(package, version or "*")),
            key=functools.cmp_to_key(_compare_versions),
        )
        return found[-1] if found else None

    @contextmanager
    def _unpacked(self, package: str, version: str | None) -> Iterator[tuple[Path, str]]:
        """A temporary directory with the unpacked `package`, and the package's version. The caller
        holds the lock."""
        wanted = f"{package}={version}" if version else package
        with tempfile.TemporaryDirectory(dir=self._prepared(), prefix="new-") as scratch:
            with self._step(f"fetching {wanted} from Debian {self.name}"):
                deb = self._download(wanted, Path(scratch))
                tree = Path(scratch) / "tree"
                _run(["dpkg-deb", "-x", str(deb), str(tree)])
            yield tree, _run(["dpkg-deb", "-f", str(deb), "Version"]).strip()

    def _download(self, wanted: str, scratch: Path) -> Path:
        """Download into `scratch`. Outdated package lists are refreshed before. If the download
        fails with recent lists, the lists are refreshed, and the download is repeated."""
        fresh = self._fresh()
        if not fresh:
            self._refresh()
        try:
            self._apt("apt-get", "-q", "download", wanted, cwd=scratch)
        except DebsError:
            if not fresh:
                raise
            self._refresh()
            self._apt("apt-get", "-q", "download", wanted, cwd=scratch)
        return next(scratch.glob("*.deb"))

    def _fresh(self) -> bool:
        """Whether the suite's package lists are not older than LISTS_MAX_AGE_S."""
        if not self._stamp.exists():
            return False
        return time.time() - self._stamp.stat().st_mtime < LISTS_MAX_AGE_S

    def _refresh(self) -> None:
        """Fetch the suite's package lists. The caller holds the lock."""
        self._prepared()
        with self._step(f"fetching the package lists of Debian {self.name}"):
            self._apt("apt-get", "-q", "update")
        self._stamp.touch()

    def _prepared(self) -> Path:
        """The suite's directory with a current apt configuration. Raises DebsError."""
        if offline():
            raise DebsError(f"SCX_OFFLINE=1 forbids fetching from Debian {self.name}")
        uri = archive_uri(debian_codename())
        if not _KEYRING.exists():
            raise DebsError(f"{_KEYRING} is missing: install the package debian-archive-keyring")
        for needed in ("state/lists/partial", "cache/archives/partial"):
            (self._directory / needed).mkdir(parents=True, exist_ok=True)
        options = f"signed-by={_KEYRING} target=Packages"
        sources = f"deb [{options}] {uri} {self.name} main\n"
        (self._directory / "sources.list").write_text(sources)
        user = "root" if os.geteuid() == 0 else ""
        self._config.write_text(_APT_CONF.format(directory=self._directory, user=user))
        return self._directory

    def _apt(self, *command: str, cwd: Path | None = None) -> str:
        try:
            return _run([command[0], "-c", str(self._config), *command[1:]], cwd=cwd)
        except DebsError as error:
            raise DebsError(f"Debian {self.name}: {error}") from error


def _stem(package: str, version: str) -> str:
    """The name of a package's directory, or a pattern for such names if `version` is `*`. The name
    has no colons, because a directory in PATH cannot contain them."""
    return f"{package}_{version.replace(':', '%3a')}"


def _compare_versions(left: Path, right: Path) -> int:
    """Compares the versions of two unpacked packages, for functools.cmp_to_key."""
    versions = [path.name.partition("_")[2].replace("%3a", ":") for path in (left, right)]
    older = subprocess.run(["dpkg", "--compare-versions", versions[0], "lt", versions[1]])
    return -1 if older.returncode == 0 else 1


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    """The command's output. Raises DebsError with apt's first error message, or else the last line
    of the command's standard error."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        reason = next((line for line in lines if line.startswith("E: ")), lines[-1])
        raise DebsError(f"{command[0]}: {reason.removeprefix('E: ')}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status: 1 for a package that cannot be fetched."""
    parser = argparse.ArgumentParser(
        prog="debs", description="Debian packages of other suites, without installing them."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    fetch = verbs.add_parser("fetch", help="unpack a package in the cache, print the directory")
    fetch.add_argument("suite", metavar="SUITE", help="such as bookworm-backports or sid")
    fetch.add_argument("package", metavar="PACKAGE[=VERSION]")
    options = parser.parse_args(arguments)
    package, _, version = options.package.partition("=")
    try:
        print(Suite(options.suite).fetch(package, version or None))
    except (DebsError, OSError) as error:
        print(f"debs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
