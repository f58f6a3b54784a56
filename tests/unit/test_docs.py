# SPDX-License-Identifier: GPL-2.0-only
"""What documentation says of the code, where a program can compare the two."""

from __future__ import annotations

import re

from schedulers import ROOT

RUSTLAND = ROOT / "rust/scx_rustland_core"


def test_documents_name_the_watchdogs_timeout() -> None:
    state = (RUSTLAND / "include/rustland/state.bpf.h").read_text()
    (timeout_ms,) = re.findall(r"^#define TIMEOUT_MS (\d+)$", state, re.MULTILINE)
    seconds = int(timeout_ms) // 1000
    guide = (ROOT / "docs/writing-a-scheduler.md").read_text()
    assert re.findall(r"gets no CPU for (\d+) seconds, the kernel ejects", guide) == [str(seconds)]
    policy = (RUSTLAND / "src/policy.rs").read_text()
    assert re.findall(r"ends the scheduler after (\d+) s\b", policy) == [str(seconds)]


def test_clock_that_contributors_are_told_of_is_the_one_in_use() -> None:
    (clock,) = re.findall(r"^- Time is `(\w+)\(\)`", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    folders = [ROOT / "scheds/c", ROOT / "scheds/rust", RUSTLAND / "include"]
    sources = [path for folder in folders for path in folder.rglob("*.bpf.[ch]")]
    assert [path for path in sources if f"{clock}()" in path.read_text()]
