# SPDX-License-Identifier: GPL-2.0-only
"""Statements of the documentation that can be compared with the code."""

from __future__ import annotations

import re

from schedulers import COMMANDS, ROOT, SERVICES

RUSTLAND = ROOT / "rust/scx_rustland_core"


def test_documented_watchdog_timeout() -> None:
    state = (RUSTLAND / "include/rustland/state.bpf.h").read_text()
    (timeout_ms,) = re.findall(r"^#define TIMEOUT_MS (\d+)$", state, re.MULTILINE)
    seconds = int(timeout_ms) // 1000
    guide = (ROOT / "docs/writing-a-scheduler.md").read_text()
    assert re.findall(r"gets no CPU for (\d+) seconds, the kernel ejects", guide) == [str(seconds)]
    policy = (RUSTLAND / "src/policy.rs").read_text()
    assert re.findall(r"ends the scheduler after (\d+) s\b", policy) == [str(seconds)]


def test_documented_clocks_are_used() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    clocks = set(re.findall(r"`(scx_\w*now)\(\)`", text))
    assert clocks == {"scx_bpf_now", "scx_monotonic_now"}
    folders = [ROOT / "scheds/c", ROOT / "scheds/rust", RUSTLAND / "include"]
    sources = [path.read_text() for folder in folders for path in folder.rglob("*.bpf.[ch]")]
    assert [clock for clock in clocks if not any(f"{clock}()" in text for text in sources)] == []


def test_documented_tools_are_installed() -> None:
    """All programs of tools/ are installed. The text must not say this of a single program, which
    would suggest that the others are not."""
    text = (ROOT / "docs/architecture.md").read_text()
    (section,) = re.findall(
        r"^## tools: installed beside the schedulers$(.*?)^## ", text, re.MULTILINE | re.DOTALL
    )
    installed = sorted(SERVICES + COMMANDS)
    assert sorted(re.findall(r"^\*\*tools/(\w+)\*\*", section, re.MULTILINE)) == installed
    assert not re.search(r"\bone of the tools\b|\bonly installed\b", section)
    overview, apparatus = text.split("\n─")[:2]
    assert sorted(re.findall(r"^tools/(\w+) ", overview, re.MULTILINE)) == installed
    assert "tools/" not in apparatus.partition("```")[0]
    assert sorted(path.parent.name for path in ROOT.glob("tools/*/Cargo.toml")) == installed
