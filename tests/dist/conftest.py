# SPDX-License-Identifier: GPL-2.0-only
"""What the test files of the suite dist share.

Third-party crates are compiled once: in one target directory, with the same options, and from the
same directory, because cargo compiles a crate again if its source has another path.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from schedulers import ROOT
from shared import QUICK_BUILD, configure, fetch_crates, need_git, output


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Turns pytest-timeout's limit off: a fixture may build everything, and each command has its
    own limit, of an hour at most."""
    for item in items:
        item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="session")
def workplace() -> Iterator[Path]:
    """The directory of all builds. It is removed afterwards, because the build output is large."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path).resolve()
        configure(folder, QUICK_BUILD)
        yield folder


@pytest.fixture(scope="session")
def target_dir(workplace: Path) -> Path:
    """The target directory of cargo."""
    path = workplace / "target"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def tarball(build_dir: Path, build_options: dict[str, str]) -> Path:
    need_git()
    fetch_crates(build_options["cargo"])
    make = ["meson", "dist", "-C", build_dir, "--no-tests", "--allow-dirty", "--formats", "gztar"]
    found = re.search(r"^Created (.+\.tar\.gz)$", output(*make), re.MULTILINE)
    assert found
    return Path(found[1])


@pytest.fixture(scope="session")
def unpacked(tarball: Path, workplace: Path) -> Path:
    """The directory of the unpacked tarball."""
    folder = workplace / "tarball"
    folder.mkdir()
    output("tar", "-C", folder, "-xzf", tarball)
    (tree,) = folder.iterdir()
    return tree


@pytest.fixture(scope="session")
def crates_of_tarball(request: pytest.FixtureRequest) -> str:
    """Configuration by which cargo uses the crates of the tarball for other builds, too. It is
    empty without a tarball, or if the tarball's commit has other crates than the working tree."""
    try:
        unpacked = request.getfixturevalue("unpacked")
    except (pytest.skip.Exception, pytest.fail.Exception):
        return ""  # The tests of the tarball report the error.
    if (unpacked / "Cargo.lock").read_bytes() != (ROOT / "Cargo.lock").read_bytes():
        return ""
    return f"""\
[source.crates-io]
replace-with = "tarball"

[source.tarball]
directory = "{unpacked}/vendor"
"""
