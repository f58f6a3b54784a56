# SPDX-License-Identifier: GPL-2.0-only
"""`./dev package deb`: Debian packages of the last commit, as a distribution would build them.

The tarball of `meson dist` is built by dpkg-buildpackage, with packaging/debian, in a new minimal
root of the suite: first the build dependencies are installed, then the build has no network.
lintian checks the result. The packages, their source and the log are kept.

With --check, a second build has to give the same bytes, the packages are installed, upgraded,
removed and purged in another minimal root, and a system with them is booted in a guest.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import debs
from roots import root, suites
from vm import initramfs, kernels, qemu

from . import machine

#: Prefix of the lines by which the scripts report that a step begins. In reports of a failure,
#: FAILED follows this prefix.
MARK = "package: "
FAILED = "failed: "
#: The last report of each script if it has succeeded.
DONE = ("built", "checked", "packed", "done")
#: Build dependencies that a suite has in the required version only in its backports.
BACKPORTS = {"bookworm": ("bpftool",)}

_TREE = Path(__file__).parents[2]
_HERE = Path(__file__).parent
_BUILD = Path(os.environ.get("SCX_BUILD", _TREE / "build"))

_CHANGELOG = """\
scx ({version}) {suite}; urgency=medium

  * Commit {commit}.

 -- scx maintainers <maintainers@scx.invalid>  {date}
"""


class PackageError(Exception):
    """The packages cannot be built or are wrong; the text is one line for the user."""


_ERRORS = (
    *(PackageError, debs.DebsError, suites.SuiteError),
    *(qemu.QemuError, kernels.KernelError, initramfs.InitramfsError),
)


@dataclass(frozen=True)
class Commit:
    """The commit that is packaged."""

    #: The abbreviated hash, as in the output of --version.
    name: str
    #: The date in the format of a Debian changelog.
    date: str
    #: The version in meson.build if the commit has the tag of this release, or else a version that
    #: is lower.
    version: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0, or 1 if something failed."""
    options = _parser().parse_args(arguments)
    try:
        _deb(options)
    except _ERRORS as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("format", choices=["deb"], metavar="deb", help="the kind of packages")
    parser.add_argument(
        "--suite",
        metavar="SUITE",
        help="code name, such as bookworm or trixie (default: this machine's, or else trixie)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=_BUILD / "packages",
        metavar="DIR",
        help="where the packages and logs are stored (default: %(default)s)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--here",
        action="store_true",
        help="build on this machine, which has to have the build dependencies",
    )
    where.add_argument(
        "--check",
        action="store_true",
        help="also test that the build is reproducible, install, upgrade and purge, and boot a "
        "guest with the packages",
    )
    return parser


def _deb(options: argparse.Namespace) -> None:
    suite = options.suite or _own_suite()
    version = suites.release(suite)
    if options.here:
        _check_dependencies()
    elif reason := root.why_impossible():
        raise PackageError(f"cannot create a root of {suite}: {reason}; see --here")
    commit = last_commit(_TREE)
    output = options.output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scx-package-") as scratch:
        sources = Path(scratch) / "sources"
        _prepare(sources, suite, commit, f"{commit.version}-1~{version}")
        log = output / f"build-{suite}.log"
        built = sources / "out"
        if options.here:
            here = [str(_HERE / "build.sh"), str(sources), commit.version]
            _follow(suite, root.lines(here, log), log)
        else:
            built.mkdir()
            work = _build(sources, suite, commit, again=options.check, results=built)
            _follow(suite, root.run(_suite(suite), work, log), log)
        results = [shutil.copy2(file, output) for file in sorted(built.iterdir())]
    if options.check:
        _check(suite, _debs(results), output)
    for file in results:
        print(file)


def _own_suite() -> str:
    try:
        return debs.debian_codename()
    except debs.DebsError:
        return "trixie"


def _check_dependencies() -> None:
    """Raises PackageError if this machine lacks build dependencies."""
    command = ["dpkg-checkbuilddeps", str(_TREE / "packaging/debian/control")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise PackageError("dpkg-checkbuilddeps is missing: install dpkg-dev") from None
    if done.returncode:
        raise PackageError(done.stderr.strip().rpartition("error: ")[2])


def last_commit(tree: Path) -> Commit:
    """The last commit of the tree. Raises PackageError."""
    if not (tree / ".git").exists():
        raise PackageError(f"{tree} is no clone: packages are made from a commit")
    text = (tree / "meson.build").read_text()
    match = re.search(r"^\s*version: '(.+?)'", text, re.MULTILINE)
    if not match:
        raise PackageError("meson.build names no version")
    date = ["--date=format-local:%Y%m%d%H%M%S", "--format=%cd %h"]
    digits, name = _git(tree, "log", "-1", "--abbrev=10", *date).split()
    released = f"v{match[1]}" in _git(tree, "tag", "--points-at", "HEAD").split()
    version = match[1] if released else f"{match[1]}~git{digits}.{name}"
    rfc = _git(tree, "log", "-1", "--date=format-local:%a, %d %b %Y %H:%M:%S +0000", "--format=%cd")
    return Commit(name, rfc, version)


def _git(tree: Path, *arguments: str) -> str:
    """Output of git, with times in UTC."""
    env = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    command = ["git", "-C", str(tree), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackageError(f"git: {(done.stderr.splitlines() or ['failed'])[-1]}")
    return done.stdout.strip()


def _prepare(folder: Path, suite: str, commit: Commit, version: str) -> None:
    """Create the tarball and the changelog for build.sh, in a new directory."""
    folder.mkdir()
    if _git(_TREE, "status", "--porcelain"):
        print("package: uncommitted changes are left out", file=sys.stderr)
    tarball = folder / f"scx_{commit.version}.orig.tar.xz"
    began = time.monotonic()
    print("making the tarball …", end=" ", flush=True)
    shutil.copy(_dist(), tarball)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    text = _CHANGELOG.format(version=version, suite=suite, commit=commit.name, date=commit.date)
    (folder / "changelog").write_text(text)


def _dist() -> Path:
    """Create the tarball by `meson dist`."""
    command = ["meson", "dist", "-C", str(_BUILD), "--no-tests", "--allow-dirty"]
    done = subprocess.run(
        [*command, "--formats", "xztar"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    found = re.search(r"^Created (.+\.tar\.xz)$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        print(f"\n{done.stdout}", file=sys.stderr)
        raise PackageError("meson dist failed")
    return Path(found[1])


def _suite(name: str) -> suites.Suite:
    """The suite, with its backports if build dependencies come from there."""
    suite = suites.find(name)
    return suites.with_backports(suite) if name in BACKPORTS else suite


def _build(sources: Path, suite: str, commit: Commit, *, again: bool, results: Path) -> root.Work:
    """The work of build.sh in a root. Writes apt's preferences for this root to `sources`."""
    pins = [
        f"Package: {package}\nPin: release n={suite}-backports\nPin-Priority: 500\n"
        for package in BACKPORTS.get(suite, ())
    ]
    (sources / "preferences").write_text("\n".join(pins))
    return root.Work(
        _HERE / "build.sh",
        ("/root", commit.version, *(["again"] if again else [])),
        files=tuple(file for file in sources.iterdir() if file.is_file()),
        results=results,
    )


def _debs(results: Sequence[Path]) -> tuple[Path, ...]:
    """The packages among the results, except packages of debug symbols."""
    return tuple(
        file for file in map(Path, results) if re.fullmatch(r"scx-[a-z]+_.*\.deb", file.name)
    )


def _check(suite: str, packages: tuple[Path, ...], output: Path) -> None:
    """Install and remove the packages in a root, and use them in a guest."""
    log = output / f"check-{suite}.log"
    work = root.Work(_HERE / "check.sh", files=packages)
    _follow(suite, root.run(suites.find(suite), work, log), log)
    with tempfile.TemporaryDirectory(prefix="scx-package-") as scratch:
        log = output / f"image-{suite}.log"
        files = (*packages, _HERE / "session.sh")
        work = root.Work(_HERE / "image.sh", files=files, results=Path(scratch))
        _follow(suite, root.run(suites.find(suite), work, log), log)
        for name in machine.BOOTS:
            log = output / f"boot-{name}-{suite}.log"
            lines = machine.boot(Path(scratch) / "image.cpio.zst", name, log)
            _follow(suite, lines, log, "booting a system with the packages")


def _follow(suite: str, lines: Iterable[str], log: Path, step: str = "creating a root") -> None:
    """Print each step of a script with its time. Raises PackageError if a step fails."""
    began = time.monotonic()
    error = ""
    print(f"{suite}: {step} …", end=" ", flush=True)
    for line in lines:
        if line.startswith(MARK + FAILED):
            error = line.removeprefix(MARK + FAILED)
        elif line.startswith(MARK):
            print(f"{time.monotonic() - began:.0f} s", flush=True)
            began = time.monotonic()
            step = line.removeprefix(MARK)
            if step in DONE:
                continue
            print(f"{suite}: {step} …", end=" ", flush=True)
        elif found := re.search(r"(?:^| )(?:E:|error:|dpkg-checkbuilddeps: error:) (.+)", line):
            error = error or found[1]
    if step not in DONE:
        print("failed", flush=True)
        raise PackageError(f"{suite}: {step}: {error or 'failed'}: see {log}")


if __name__ == "__main__":
    sys.exit(main())
