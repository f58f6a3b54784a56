# SPDX-License-Identifier: GPL-2.0-only
"""The stress test without a guest: its sequence, its evaluation, its command line."""

from __future__ import annotations

import subprocess
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from soak import __main__ as command_line
from soak import soak
from soak.actions import Scene, sequence
from vm import topology
from vm.kernels import Kernel

SMP4, ONE = topology.find("smp4"), topology.find("1cpu")
SCENE = Scene(SMP4, 123, "scx_rustland", has_monitor=True)
KERNEL = Kernel(Path("/k/bzImage-7.2.13"), "7.2.13", "cache")


def some(scene: Scene, seed: int, count: int = 400) -> list[Any]:
    return list(islice(sequence(scene, seed), count))


def test_same_seed_gives_the_same_sequence() -> None:
    assert some(SCENE, 1) == some(SCENE, 1)
    assert some(SCENE, 1) != some(SCENE, 2)


def test_all_actions_occur() -> None:
    happened = "\n".join(action.what for action in some(SCENE, 1))
    for word in ("load", "fork", "movers", "nice", "chrt", "real-time", "cgroup", "offline"):
        assert word in happened
    assert "client" in happened
    assert "stopped" in happened


def test_impossible_actions_do_not_occur() -> None:
    scene = Scene(ONE, 123, "scx_simple", has_monitor=False)
    assert not [
        action.what
        for action in some(scene, 1)
        if "offline and online" in action.what or "client" in action.what
    ]


@pytest.mark.parametrize("shape", [SMP4, topology.find("numa"), topology.find("offline")])
def test_scripts_are_valid_and_spare_cpu_0(shape: topology.Topology) -> None:
    scripts = [action.script for action in some(Scene(shape, 1, "scx_x", True), 3)]
    assert not [script for script in scripts if "/cpu0/" in script]
    done = subprocess.run(["sh", "-n"], input="\n".join(scripts), text=True, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")


class FakeGuest:
    """A guest whose scheduler has these successive states, memory sizes and page fault counts."""

    def __init__(self, states: list[str], rss_kib: list[int], faults: list[int], log: str) -> None:
        self.states, self.rss_kib, self.fault_counts, self.log = states, rss_kib, faults, log

    def spawn(self, *_: object) -> SimpleNamespace:
        process = SimpleNamespace(pid=7, stderr=lambda: "it said\nthis", wait=lambda _: 0)
        process.running = lambda: True
        process.signal = lambda _: setattr(process, "running", lambda: False)
        return process

    def run(self, *_: object, **__: object) -> SimpleNamespace:
        result = SimpleNamespace(stdout="", timed_out=False)
        result.check = lambda: result
        return result

    def read(self, path: str) -> SimpleNamespace:
        if path == "/sys/kernel/sched_ext/state":
            out = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        elif path == "/proc/7/status":
            out = f"Name:\tx\nVmRSS:\t {self.rss_kib.pop(0)} kB\n"
        else:
            assert path == "/proc/7/task/7/stat"
            out = f"7 (a b) S 1 2 3 4 5 6 {self.fault_counts.pop(0)} 0 1 0\n"
        result = SimpleNamespace(stdout=out)
        result.check = lambda: result
        return result

    def kernel_log(self) -> str:
        return f"a WARNING before\n{soak._MARK}\n{self.log}"


def judged(
    tmp_path: Path, states: list[str], rss: list[int], faults: list[int], log: str = ""
) -> soak.Verdict:
    program = tmp_path / "scx_rustland"
    setup = soak.Setup(KERNEL, SMP4, program, (), (), 1, 0.0, True, True)
    guest: Any = FakeGuest(states, rss, faults, log)
    return soak._Soak(setup, guest, lambda _: None).run()


def test_healthy_scheduler_passes(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ["enabled", "disabled"], [30_000, 30_100], [5, 5])
    assert verdict.faults == []
    assert (verdict.page_faults, verdict.memory_kib) == (0, (30_000, 30_100))


def test_kernel_may_unload_after_the_end_of_the_process(tmp_path: Path) -> None:
    states = ["enabled", "disabling", "disabling", "disabling", "disabled"]
    assert judged(tmp_path, states, [30_000, 30_000], [5, 5]).faults == []


def test_output_of_a_scheduler_that_failed_to_load_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "_TIMEOUT_S", 0.0)
    verdict = judged(tmp_path, ["disabled"], [], [])
    assert verdict.faults == ["it was not enabled: it said this"]
    assert verdict.log
    assert "it said" in verdict.log.read_text()
    verdict.log.unlink()


@pytest.mark.parametrize(
    ("rss", "faults", "log", "fault"),
    [
        ([30_000, 32_000], [5, 5], "", "its memory has grown from 30000 to 32000 KiB"),
        ([30_000, 30_000], [5, 8], "", "3 page faults of the policy thread"),
        ([1, 1], [0, 0], "BUG: x\n", "kernel error: BUG: x"),
    ],
)
def test_failures_are_reported(
    tmp_path: Path, rss: list[int], faults: list[int], log: str, fault: str
) -> None:
    verdict = judged(tmp_path, ["enabled", "disabled"], rss, faults, log)
    assert verdict.faults == [fault]
    assert verdict.log
    assert "it said" in verdict.log.read_text()
    verdict.log.unlink()


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "rust/scx_rustland"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("SCX_BUILD", str(tmp_path))
    monkeypatch.setattr(command_line.kernels, "resolve", lambda _: KERNEL)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["0"], "0 minutes: give more than 0"),
        (["nan"], "nan minutes"),
        (["1", "scx_nothing"], "there is no scheduler 'scx_nothing'"),
        (["1", "scx_rustland", "--seed", "-1"], "--seed -1: give 0 or more"),
        (["1", "scx_rustland", "--topology", "x"], "x"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    build: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert command_line.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("soak: ")
    assert said.err.count("\n") == 1
    assert reason in said.err


@pytest.mark.parametrize(("faults", "status"), [([], 0), (["it is gone"], 1)])
def test_result_is_printed_with_the_seed(
    build: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    faults: list[str],
    status: int,
) -> None:
    setups: list[soak.Setup] = []

    def run(setup: soak.Setup, _: object) -> soak.Verdict:
        setups.append(setup)
        return soak.Verdict(nr_actions=3, faults=faults)

    monkeypatch.setattr(command_line.soak, "run", run)
    arguments = ["2", "scx_rustland --slice-boost 0", "--topology", "numa"]
    assert command_line.main(arguments) == status
    said = capsys.readouterr().out
    assert setups[0].is_in_user_space
    assert setups[0].seconds == 120
    assert setups[0].arguments == ("--slice-boost", "0")
    assert str(setups[0].seed) in said
    if faults:
        assert "it is gone" in said
        assert "./dev soak 2 'scx_rustland --slice-boost 0' --seed" in said
        assert "--topology numa" in said
