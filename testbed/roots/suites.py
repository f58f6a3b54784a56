# SPDX-License-Identifier: GPL-2.0-only
"""The suites from which a root can be created, and their package sources."""

from __future__ import annotations

import csv
import datetime
from dataclasses import dataclass, replace
from pathlib import Path

import debs

#: The releases of Debian that are checked by default: 12 and 13, which the README names.
_DEBIAN = ("bookworm", "trixie")
_RELEASES = Path("/usr/share/distro-info")
#: Where to find the keys of Ubuntu's archive: a suite of Debian, a package in the suite, and a file
#: in the package.
_UBUNTU_KEYS = ("trixie", "ubuntu-keyring", "usr/share/keyrings/ubuntu-archive-keyring.gpg")


class SuiteError(Exception):
    """A suite is unknown, or its root cannot be created here; the text is one line for the user."""


@dataclass(frozen=True)
class Suite:
    """Arguments of mmdebstrap for a suite."""

    name: str
    #: Lines of sources.list; empty for mmdebstrap's defaults.
    sources: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def default() -> list[str]:
    """The suites that are checked by default: _DEBIAN, and the latest LTS release of Ubuntu."""
    ubuntu = [row["series"] for row in _releases("ubuntu") if "LTS" in row["version"]]
    return [*_DEBIAN, *ubuntu[-1:]]


def find(name: str) -> Suite:
    """A suite by its code name. Raises SuiteError, debs.DebsError."""
    if any(row["series"] == name for row in _releases("ubuntu")):
        return _ubuntu(name)
    return Suite(name, tuple(debs.sources(name)))


def with_backports(suite: Suite) -> Suite:
    """A suite of Debian with its backports. Raises debs.DebsError."""
    uri = debs.archive_uri(debs.debian_codename())
    return replace(suite, sources=(*suite.sources, f"deb {uri} {suite.name}-backports main"))


def release(name: str) -> str:
    """The release of a suite, as in versions of packages: deb12, ubuntu24.04. Raises SuiteError."""
    for vendor, prefix in (("debian", "deb"), ("ubuntu", "ubuntu")):
        for row in _releases(vendor):
            if row["series"] == name and row["version"]:
                return prefix + row["version"].split()[0]
    raise SuiteError(f"there is no release '{name}' of Debian or Ubuntu")


def _ubuntu(name: str) -> Suite:
    packaged_in, package, path = _UBUNTU_KEYS
    try:
        keyring = debs.Suite(packaged_in).fetch(package) / path
    except debs.DebsError as error:
        raise SuiteError(f"no keys of Ubuntu's archive: {error}") from error
    # No sources are needed, because mmdebstrap knows Ubuntu's archive.
    return Suite(name, options=(f"--keyring={keyring}",))


def _releases(vendor: str) -> list[dict[str, str]]:
    """The releases of a vendor until today, oldest first; [] without the package
    distro-info-data."""
    file = _RELEASES / f"{vendor}.csv"
    if not file.exists():
        return []
    today = datetime.date.today().isoformat()
    with file.open(newline="") as rows:
        return [row for row in csv.DictReader(rows) if (row["release"] or "9") <= today]
