# SPDX-License-Identifier: GPL-2.0-only
"""What the test files of the suite dist share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def target_dir() -> Iterator[Path]:
    """A target directory for cargo, so that crates of the registry are compiled once for all test
    files. Removed afterwards, since its content is large."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path).resolve()
