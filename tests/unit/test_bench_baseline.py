# SPDX-License-Identifier: GPL-2.0-only
"""Checks of the bench against committed results, without a guest: bands and verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import __main__ as command_line
from bench import baseline, record
from bench import results as results_page
from bench.baseline import Band, BaselineError, Verdict, band
from bench.measure import Place, Subject
from bench.rounds import EEVDF, Plan, Results, Round
from bench.workloads import OF_SCHEDULER, WORKLOADS, Figure
from vm import topology
from vm.kernels import Kernel

LATENCY = Figure("late_us", "late", "µs", is_latency=True)
RATE = Figure("rate", "messages", "/s", "higher")
SHARE = Figure("missed", "missed", "%")
CPU = Figure("scheduler_cpu_percent", "CPU of the scheduler's process", "% of one")

KERNEL = Kernel(Path("/k/bzImage-7.2.13"), "7.2.13", "cache")
PLACE = Place(KERNEL, topology.find("smp4"), Path("/build/rust"))
CHOSEN = tuple(WORKLOADS[name] for name in results_page.CHOSEN)
SCHEDULERS = ("scx_rustland", "scx_simple")


def all_rounds(scale: float = 1.0, nr_seeds: int = 5) -> Results:
    """Each figure is 1000 plus the seed, times `scale`."""
    return Results(
        [
            Round(
                name,
                workload.name,
                seed,
                {
                    figure.name: scale * (1000.0 + seed)
                    for figure in (*workload.figures, *OF_SCHEDULER)
                },
            )
            for seed in range(1, nr_seeds + 1)
            for workload in CHOSEN
            for name in SCHEDULERS
        ]
    )


def judge(found: Results, known: Results) -> list[Verdict]:
    return baseline.judge(found, known, SCHEDULERS, CHOSEN)


@pytest.mark.parametrize(
    ("values", "figure", "expected"),
    [
        ([1000.0, 1040.0, 1020.0], RATE, Band(745, 1295)),
        # The band is extended by the range of the values on both sides.
        ([1000.0, 1600.0, 1200.0], RATE, Band(400, 2200)),
        # The band of a latency is extended by at least one turn of each emulated CPU (ROUND_US).
        ([100.0, 110.0, 105.0], LATENCY, Band(0, 232)),
        ([0.0, 0.0, 0.0], SHARE, Band(0, 1)),
        # The CPU time of a C scheduler's process is close to 0.
        ([0.05, 0.06, 0.05], CPU, Band(0, 0.56)),
    ],
)
def test_band(values: list[float], figure: Figure, expected: Band) -> None:
    assert band(values, figure) == expected


@pytest.mark.parametrize(
    ("figure", "value", "is_worse"),
    [
        (LATENCY, 10.0, False),
        (LATENCY, 20.0, False),
        (LATENCY, 20.1, True),
        (LATENCY, 1.0, False),
        (RATE, 9.9, True),
        (RATE, 10.0, False),
        (RATE, 50.0, False),
        (RATE, None, True),
    ],
)
def test_only_worse_figures_fail(figure: Figure, value: float | None, is_worse: bool) -> None:
    verdict = Verdict("scx_simple", "wakeup", figure, Band(10, 20), value)
    assert verdict.is_worse == is_worse
    assert verdict.text().startswith("scx_simple ")
    assert verdict.text().endswith("worse") == is_worse


def test_measured_values_are_within_their_bands() -> None:
    verdicts = judge(all_rounds(nr_seeds=3), all_rounds())
    assert {verdict.scheduler for verdict in verdicts} == set(SCHEDULERS)
    assert {verdict.workload for verdict in verdicts} == set(results_page.CHOSEN)
    assert not any(verdict.is_worse for verdict in verdicts)
    assert not {verdict.figure.name for verdict in verdicts} & baseline.LEFT_OUT


def test_twice_as_much_is_worse_where_less_is_better() -> None:
    for scale, worse in ((2.0, "lower"), (0.5, "higher")):
        verdicts = judge(all_rounds(scale, 3), all_rounds())
        assert {verdict.figure.better for verdict in verdicts if verdict.is_worse} == {worse}


def test_single_seed_does_not_decide() -> None:
    found = all_rounds(nr_seeds=3)
    for far in (1.0, 1e6):
        strange = replace(found.rounds[0], values=dict.fromkeys(found.rounds[0].values, far))
        verdicts = judge(Results([strange, *found.rounds[1:]]), all_rounds())
        assert not any(verdict.is_worse for verdict in verdicts)


def test_missing_figure_is_worse() -> None:
    found = all_rounds(nr_seeds=3)
    lost = found.rounds[0].workload
    found.rounds = [one for one in found.rounds if one.workload != lost]
    verdicts = judge(found, all_rounds())
    assert {verdict.workload for verdict in verdicts if verdict.is_worse} == {lost}


@pytest.mark.parametrize(
    ("release", "shape", "emulator"),
    [("7.2.14", "smp4", "QEMU 10"), ("7.2.13", "numa", "QEMU 10"), ("7.2.13", "smp4", "QEMU 11")],
)
def test_results_of_another_origin_are_refused(
    tmp_path: Path, release: str, shape: str, emulator: str
) -> None:
    subjects = tuple(Subject(name, Path(name)) for name in SCHEDULERS)
    file = tmp_path / "figures.json"
    plan = Plan(PLACE, (EEVDF, *subjects), CHOSEN, (1, 2, 3, 4, 5))
    file.write_text(record.to_json(plan, all_rounds(), "QEMU 10"))
    assert baseline.load(file, PLACE, "QEMU 10") == all_rounds()
    there = replace(PLACE, kernel=replace(KERNEL, release=release), topology=topology.find(shape))
    with pytest.raises(BaselineError, match=r"Linux 7\.2\.13, smp4, QEMU 10, not of Linux"):
        baseline.load(file, there, emulator)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "--results"],
        ["--check", "scx_nothing"],
        ["--check", "--workload", "cost"],
        ["--check", "--seeds", "3"],
        ["--check", "--seed", "3"],
        ["--check", "--topology", "numa"],
        ["--check", "--json", "/tmp/x"],
        ["--check", "--jobs", "0"],
        ["--results", "/tmp/scx_x"],
        ["--results", "--alone"],
        ["--results", "--workload", "wakeup"],
    ],
)
def test_checks_and_results_have_fixed_parameters(arguments: list[str]) -> None:
    try:
        assert command_line.main(arguments) == 2
    except SystemExit as end:
        assert end.code == 2
