# SPDX-License-Identifier: GPL-2.0-only
"""Conflicting options of scx_rustland."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_rust_programs import assert_refused


@pytest.mark.parametrize(
    "args",
    [
        ["--builtin-idle", "--full-user"],
        ["--slice-us", "500", "--slice-us-min", "1000"],
    ],
)
def test_conflicting_options_are_refused_in_one_line(rust_programs: Path, args: list[str]) -> None:
    message = assert_refused(rust_programs / "scx_rustland", *args)
    for option in filter(lambda arg: arg.startswith("--"), args):
        assert option in message
