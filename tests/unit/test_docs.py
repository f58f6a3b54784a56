# SPDX-License-Identifier: GPL-2.0-only
"""Statements of the documentation that can be compared with the code."""

from __future__ import annotations

import re

from schedulers import ROOT

RUSTLAND = ROOT / "rust/scx_rustland_core"


def test_documented_watchdog_timeout() -> None:
    state = (RUSTLAND / "include/rustland/state.bpf.h").read_text()
    (timeout_ms,) = re.findall(r"^#define TIMEOUT_MS (\d+)$", state, re.MULTILINE)
    seconds = int(timeout_ms) // 1000
    guide = (ROOT / "docs/writing-a-scheduler.md").read_text()
    assert re.findall(r"gets no CPU for (\d+) seconds, the kernel ejects", guide) == [str(seconds)]
    policy = (RUSTLAND / "src/policy.rs").read_text()
    assert re.findall(r"ends the scheduler after (\d+) s\b", policy) == [str(seconds)]


def test_documented_clock_is_used() -> None:
    (clock,) = re.findall(r"^- Time is `(\w+)\(\)`", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    folders = [ROOT / "scheds/c", ROOT / "scheds/rust", RUSTLAND / "include"]
    sources = [path for folder in folders for path in folder.rglob("*.bpf.[ch]")]
    assert [path for path in sources if f"{clock}()" in path.read_text()]
