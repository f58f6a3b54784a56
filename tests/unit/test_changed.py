# SPDX-License-Identifier: GPL-2.0-only
"""Which tests `./dev test --changed` selects, with the dependencies of this build."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed import __main__ as changed
from changed import built
from schedulers import ROOT

GUESTS = "tests/vm/test_"


@pytest.fixture(scope="module")
def programs(build_dir: Path) -> dict[str, set[Path]]:
    found = built.programs(build_dir)
    if "scx_rusty" not in found:
        pytest.skip("built without the Rust programs")
    return found


def test_bpf_program_of_one_scheduler(programs: dict[str, set[Path]]) -> None:
    for name, source in (
        ("scx_simple", "scheds/c/scx_simple.bpf.c"),
        ("scx_rusty", "scheds/rust/scx_rusty/src/bpf/main.bpf.c"),
    ):
        assert (ROOT / source).exists()
        plan = changed._plan([source], programs)
        assert {"lint", "unit", f"{GUESTS}{name}.py", f"--programs={name}"} <= set(plan)
        assert f"{GUESTS}every_scheduler.py" in plan
        assert f"{GUESTS}scx_rlfifo.py" not in plan


def test_header_of_all_is_in_each_scheduler(programs: dict[str, set[Path]]) -> None:
    header = ROOT / "scheds/include/scx/common.bpf.h"
    missing = [
        name
        for name in ("scx_simple", "scx_fifo", "scx_rlfifo", "scx_rustland", "scx_rusty")
        if header not in programs[name]
    ]
    assert not missing
    assert header not in programs["scxctl"]


def test_module_of_testbed_affects_importing_tests(programs: dict[str, set[Path]]) -> None:
    plan = changed._plan(["testbed/bench/rounds.py"], programs)
    affected = [f"{GUESTS}{name}.py" for name in ("baseline", "bench", "experiments")]
    assert plan == ["lint", "unit", *affected]
    # The fixtures of all guest tests import this module.
    all_of_them = {str(file.relative_to(ROOT)) for file in (ROOT / "tests/vm").glob("test_*.py")}
    assert all_of_them <= set(changed._plan(["testbed/vm/guest.py"], programs))


def test_text_and_guest_tests(programs: dict[str, set[Path]]) -> None:
    assert changed._plan(["docs/deterministic.md"], programs) == ["lint"]
    assert changed._plan([], programs) == []
    plan = changed._plan([f"{GUESTS}soak.py"], programs)
    assert plan == ["lint", "unit", f"{GUESTS}soak.py"]


def test_documents_affect_their_readers() -> None:
    reader, guide = "tests/unit/test_docs.py", "docs/writing-a-scheduler.md"
    tutorial = "tests/dist/test_writing_a_scheduler.py"
    assert changed._plan(["CONTRIBUTING.md"], {}) == ["lint", reader]
    assert changed._plan([guide], {}) == ["lint", reader, tutorial]
    # The test reads the document through the module kernel_table.
    assert changed._plan(["docs/kernels.md"], {}) == ["lint", f"{GUESTS}kernels.py"]
    assert changed._plan([guide, "dev"], {}) == ["lint", "unit", tutorial]


def test_lock_file_affects_all_programs(programs: dict[str, set[Path]]) -> None:
    plan = changed._plan(["Cargo.lock"], programs)
    assert {f"{GUESTS}scx_rusty.py", f"{GUESTS}scx_simple.py", f"{GUESTS}scx_loader.py"} <= set(
        plan
    )
