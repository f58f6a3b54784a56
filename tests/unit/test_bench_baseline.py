# SPDX-License-Identifier: GPL-2.0-only
"""The baseline of the bench without a guest: bands, checks, and updates of the file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench import __main__ as command_line
from bench import baseline
from bench.baseline import Band, BaselineError, Verdict, band
from bench.rounds import Results, Round
from bench.workloads import OF_SCHEDULER, Figure

LATENCY = Figure("late_us", "late", "µs", is_latency=True)
RATE = Figure("rate", "messages", "/s", "higher")
SHARE = Figure("missed", "missed", "%")
KEY = baseline.key("7.2.13+deb14", "QEMU 10.0.8")


def all_rounds(scale: float = 1.0, seeds: tuple[int, ...] = baseline.SEEDS) -> Results:
    """All rounds of a baseline. Each figure is 1000 plus the seed, times `scale`."""
    return Results(
        [
            Round(
                baseline.SCHEDULER,
                workload.name,
                seed,
                {
                    figure.name: scale * (1000.0 + seed)
                    for figure in (*workload.figures, *OF_SCHEDULER)
                },
            )
            for seed in seeds
            for workload in baseline.CHOSEN
        ]
    )


@pytest.mark.parametrize(
    ("values", "figure", "expected"),
    [
        ([1000.0, 1040.0, 1020.0], RATE, Band(745, 1295)),
        # The band is extended by the range of the values on both sides.
        ([1000.0, 1600.0, 1200.0], RATE, Band(400, 2200)),
        # The band of a latency is extended by at least one turn of each emulated CPU (ROUND_US).
        ([100.0, 110.0, 105.0], LATENCY, Band(0, 232)),
        ([0.0, 0.0, 0.0], SHARE, Band(0, 1)),
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
    verdict = Verdict("wakeup", figure, Band(10, 20), value)
    assert verdict.is_worse == is_worse
    assert verdict.text().endswith("worse") == is_worse


def test_measured_values_are_within_their_bands() -> None:
    known = baseline.bands(all_rounds())
    verdicts = baseline.judge(all_rounds(seeds=baseline.seeds_of_check()), known)
    assert len(verdicts) > 10
    assert not any(verdict.is_worse for verdict in verdicts)
    assert not {verdict.figure.name for verdict in verdicts} & baseline.LEFT_OUT


def test_twice_as_much_is_worse_where_less_is_better() -> None:
    known = baseline.bands(all_rounds())
    for scale, worse in ((2.0, "lower"), (0.5, "higher")):
        verdicts = baseline.judge(all_rounds(scale, baseline.seeds_of_check()), known)
        assert {verdict.figure.better for verdict in verdicts if verdict.is_worse} == {worse}


def test_single_seeds_do_not_decide() -> None:
    """A single seed decides neither a check nor a band."""
    results = all_rounds()
    known = baseline.bands(results)
    for far in (1.0, 1e6):
        strange = replace(results.rounds[0], values=dict.fromkeys(results.rounds[0].values, far))
        others = Results([strange, *results.rounds[1:]])
        check = Results([one for one in others.rounds if one.seed in baseline.seeds_of_check()])
        assert not any(verdict.is_worse for verdict in baseline.judge(check, known))
        made = baseline.bands(others)
        assert made["wakeup"]["lateness_p99_us"].least > 700
        assert made["wakeup"]["lateness_p99_us"].most < 1300


def test_round_without_figures_is_an_error() -> None:
    results = all_rounds()
    results.rounds.pop()
    with pytest.raises(
        BaselineError, match=f"gave {len(baseline.SEEDS) - 1} of {len(baseline.SEEDS)}"
    ):
        baseline.bands(results)


def test_bands_are_kept_for_each_kernel(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    found = baseline.bands(all_rounds())
    with pytest.raises(BaselineError, match="there are: none"):
        baseline.load(KEY, file)
    other = baseline.key("6.12.107", "QEMU 10.0.8")
    older = baseline.key("7.2.9", "QEMU 10.0.7")
    for name in (older, other, KEY):
        baseline.save(name, found, file)
    # The older baseline of the same series is replaced.
    assert sorted(json.loads(file.read_text())) == [other, KEY]
    known = baseline.load(KEY, file)
    assert known.keys() == found.keys()
    with pytest.raises(BaselineError, match="no baseline for Linux 7.2.9"):
        baseline.load(older, file)


def test_committed_baseline_has_each_figure() -> None:
    text = json.loads(baseline.FILE.read_text())
    names = {
        (workload.name, figure.name)
        for workload in baseline.CHOSEN
        for figure in (*workload.figures, *OF_SCHEDULER)
        if figure.name not in baseline.LEFT_OUT
    }
    for key in text:
        known = baseline.load(key)
        assert {(one, figure) for one in known for figure in known[one]} == names


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "--renew"],
        ["--check", "scx_simple"],
        ["--renew", "--seeds", "3"],
        ["--check", "--seed", "3"],
        ["--check", "--topology", "numa"],
        ["--renew", "--json", "/tmp/x"],
        ["--check", "--jobs", "0"],
    ],
)
def test_baseline_has_fixed_parameters(arguments: list[str]) -> None:
    try:
        assert command_line.main(arguments) == 2
    except SystemExit as end:
        assert end.code == 2
