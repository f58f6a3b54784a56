# SPDX-License-Identifier: GPL-2.0-only
"""A guest that cannot keep time is booted again; without an emulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from vm.guest import Guest
from vm.kernels import Kernel

KERNEL = Kernel(Path("/k/bzImage-7.2.13"), "7.2.13", "cache")


@pytest.mark.parametrize(
    ("clocks", "boots", "is_warned"),
    [
        (["tsc"], 1, False),
        (["kvm-clock"], 1, False),
        (["refined-jiffies", "tsc"], 2, False),
        (["acpi_pm", "refined-jiffies", "tsc-early"], 3, False),
        # A machine on which it always is so.
        (["acpi_pm", "acpi_pm", "acpi_pm", "tsc"], 3, True),
    ],
)
def test_a_guest_that_keeps_no_time_is_booted_again(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    clocks: list[str],
    boots: int,
    is_warned: bool,
) -> None:
    left, closed = list(clocks), []
    monkeypatch.setattr(Guest, "_boot_once", lambda _: left.pop(0))
    monkeypatch.setattr(Guest, "close", lambda *_: closed.append(True))
    Guest(KERNEL).boot()
    assert len(clocks) - len(left) == boots
    assert len(closed) == boots - 1
    assert ("clock is acpi_pm" in capsys.readouterr().err) == is_warned
