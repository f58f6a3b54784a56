# SPDX-License-Identifier: GPL-2.0-only
"""A round of the bench in an ordinary guest, and the counting of instructions by function."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import functions, measure
from bench.workloads import WORKLOADS
from vm import kernels, programs
from vm.guest import Guest
from vm.topology import Topology

pytestmark = pytest.mark.once

BPF_STATS = "/proc/sys/kernel/bpf_stats_enabled"


@pytest.mark.parametrize(
    ("name", "has_policy_thread"), [("scx_rustland", True), ("scx_simple", False)]
)
def test_cost_is_measured_and_settings_are_restored(
    guest: Guest, shape: Topology, build_dir: Path, name: str, has_policy_thread: bool
) -> None:
    subject = measure.Subject(name, programs.scheduler(build_dir, name))
    cost = WORKLOADS["cost"]
    text = measure.script(subject, cost, len(shape.online), "/tmp")
    assert guest.run(["cat", BPF_STATS]).stdout == "0\n"
    done = guest.run(["sh", "-c", text], timeout_s=240).check()
    values = measure.figures(done.stdout, cost, len(shape.online))
    assert values["bpf_runs_per_switch"] > 1
    assert values["bpf_ns_per_switch"] > 0
    assert 0 < values["scheduler_cpu_percent"] < 100
    if has_policy_thread:
        assert values["syscalls_per_switch"] > 0
    assert guest.run(["cat", BPF_STATS]).stdout == "0\n"
    assert guest.run(["cat", "/sys/kernel/sched_ext/state"]).stdout == "disabled\n"


def test_instructions_are_counted_by_function(shape: Topology, build_dir: Path) -> None:
    """The instructions of all functions add up to the emulator's count of instructions, to within
    2 %. Each BPF program that runs on a context switch is among the functions."""
    place = measure.Place(kernels.resolve(None), shape, build_dir / "rust")
    subject = measure.Subject("scx_simple", programs.scheduler(build_dir, "scx_simple"))
    pinned = WORKLOADS["pingpong-pinned"]
    found = functions.profile(place, subject, pinned, seed=1)
    print(functions.text([found], 20))
    values = measure.measure(place, subject, pinned, 1, lambda: False)
    assert found.total() == pytest.approx(values["instructions_per_switch"], rel=0.02)
    of_bpf = {name for name in found.functions if name.endswith("[bpf]")}
    callbacks = ("select_cpu", "enqueue", "dispatch", "quiescent")
    assert of_bpf >= {f"simple_{name} [bpf]" for name in callbacks}
    assert found.functions["__schedule"] > 100
