# SPDX-License-Identifier: GPL-2.0-only
"""The distributions' suites that a root can be made of, and where their packages come from."""

from __future__ import annotations

import csv
import datetime
from dataclasses import dataclass
from pathlib import Path

import debs

#: Always checked: Debian 12, which the README names, and 13.
_DEBIAN = ("bookworm", "trixie")
_RELEASES = Path("/usr/share/distro-info")
#: Where Debian packages the keys of Ubuntu's archive.
_UBUNTU_KEYS = ("trixie", "ubuntu-keyring", "usr/share/keyrings/ubuntu-archive-keyring.gpg")


class SuiteError(Exception):
    """A root of a suite cannot be made here; the text is one line for the user."""


@dataclass(frozen=True)
class Suite:
    """What mmdebstrap is told of a suite."""

    name: str
    #: Lines of sources.list; where there are none, mmdebstrap knows them.
    sources: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def default() -> list[str]:
    """The suites that are checked unless others are named."""
    ubuntu = [row["series"] for row in _releases("ubuntu") if "LTS" in row["version"]]
    return [*_DEBIAN, *ubuntu[-1:]]


def find(name: str) -> Suite:
    """A suite by its code name. Raises SuiteError, debs.DebsError."""
    if any(row["series"] == name for row in _releases("ubuntu")):
        return _ubuntu(name)
    return Suite(name, tuple(debs.sources(name)))


def _ubuntu(name: str) -> Suite:
    packaged_in, package, path = _UBUNTU_KEYS
    try:
        keyring = debs.Suite(packaged_in).fetch(package) / path
    except debs.DebsError as error:
        raise SuiteError(f"no keys of Ubuntu's archive: {error}") from error
    # Without sources: where Ubuntu's archive is, mmdebstrap knows.
    return Suite(name, options=(f"--keyring={keyring}",))


def _releases(vendor: str) -> list[dict[str, str]]:
    """What the package distro-info-data knows of the releases until today, oldest first."""
    file = _RELEASES / f"{vendor}.csv"
    if not file.exists():
        return []
    today = datetime.date.today().isoformat()
    with file.open(newline="") as rows:
        return [row for row in csv.DictReader(rows) if (row["release"] or "9") <= today]
