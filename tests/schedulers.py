# SPDX-License-Identifier: GPL-2.0-only
"""The names of the programs under test, as meson.build lists them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _listed(variable: str) -> list[str]:
    text = (ROOT / "meson.build").read_text()
    found = re.search(rf"^{variable} = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    assert found, f"meson.build has no {variable}"
    return re.findall(r"'(\w+)'", found[1])


C_SCHEDULERS = _listed("c_scheds")
RUST_SCHEDULERS = _listed("rust_scheds")
#: Rust programs that other programs start.
SERVICES = _listed("rust_services")
#: Rust programs that users run, installed beside the schedulers.
COMMANDS = _listed("rust_commands")


def project_version() -> str:
    """The version of the project, which all programs have."""
    found = re.search(r"version: '(.+?)'", (ROOT / "meson.build").read_text())
    assert found
    return found[1]
