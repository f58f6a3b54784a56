# SPDX-License-Identifier: GPL-2.0-only
"""The experiments without a guest: turns, bounds, timelines, the page, the command line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import markdown
import pytest
import svg
from bench import plot
from experiments import __main__ as command_line
from experiments import checks, fifo_rr, page, server, timeline, trace
from experiments.fifo_rr import HOG, JOB, Recording
from experiments.trace import Run, TraceError, Turn
from schedulers import ROOT
from vm import kernels

LABELS = {HOG: "nice 5", JOB: "nice -5"}


def recorded(*tasks: tuple[str, int, float]) -> list[Run]:
    """Runs on one CPU, one after the other. `tasks` has the name, the pid and the length in ms of
    each run."""
    runs, now_ns = [], 1_000_000_000
    for comm, pid, ms in tasks:
        ran_ns = round(ms * 1e6)
        runs.append(Run(now_ns, now_ns + ran_ns, ran_ns, 0, pid, comm))
        now_ns += ran_ns
    return runs


def hogs(*pids: int, ms: float = 12.0) -> list[tuple[str, int, float]]:
    return [(HOG, pid, ms) for pid in pids]


def lengths(found: list[Turn]) -> list[tuple[int, float, int]]:
    return [(turn.pid, round(turn.ran_ms, 3), len(turn.runs_ns)) for turn in found]


def round_robin(nr_rounds: int = 14, count: int = 3, ms: float = 12.0) -> list[Run]:
    return recorded(*hogs(*range(1, count + 1), ms=ms) * nr_rounds)


def jobs(count: int) -> list[Run]:
    return recorded(*((JOB, pid, 70.0) for pid in range(1, count + 1)))


def recording(**rounds: list[Run]) -> Recording:
    """A recording that is as expected, except for these rounds."""
    alone = recorded(*hogs(1, 2) * 5, *hogs(2, ms=300))
    expected = {
        "rr3": round_robin(),
        "rr6": round_robin(count=6),
        "fifo3": jobs(3),
        "fifo6": jobs(6),
        "mixed": recorded(*hogs(7, 8), *((JOB, pid, 70.0) for pid in (9, 10, 11)), *hogs(7)),
        "alone": alone,
    }
    return Recording(10, 4.0, expected | rounds, nr_kept=9)


def unmet(of: Recording) -> list[str]:
    return [check.what for check in checks.checks(of) if not check.is_met]


def test_consecutive_runs_are_one_turn() -> None:
    runs = recorded(
        (HOG, 1, 8),
        ("kworker/0:1", 9, 0.02),
        (HOG, 1, 4),
        (HOG, 2, 12),
        ("scx_switches", 9, 0.1),
        (HOG, 1, 3),
    )
    found = trace.turns(runs, (HOG, JOB))
    assert lengths(found) == [(1, 12.0, 2), (2, 12.0, 1), (1, 3.0, 1)]
    assert found[0].interrupted_ms == pytest.approx(0.02)


def test_only_turns_while_all_tasks_are_there_count() -> None:
    found = trace.turns(recorded(*hogs(1, 2, 1, 3, 1, 2, 3, 1, 3, 2, 3)), (HOG,))
    # The first turn of task 3 is the fourth turn, and the last turn of task 1 is the eighth. Only
    # the three turns in between count.
    assert [turn.pid for turn in trace.contended(found)] == [1, 2, 3]
    assert trace.contended([]) == []


def test_moves_between_cpus() -> None:
    cpus = [(1, 0), (2, 1), (1, 0), (1, 2), (2, 2), (1, 2)]
    runs = [Run(0, 1, 1, cpu, pid, HOG) for pid, cpu in cpus] + [Run(0, 1, 1, 3, 1, "sh")]
    assert trace.moves(runs, HOG) == (6, 2)


@pytest.mark.parametrize(("rank", "value"), [(0, 1), (50, 2), (75, 3), (76, 4), (100, 4)])
def test_percentiles(rank: float, value: float) -> None:
    assert trace.percentile([4, 2, 3, 1], rank) == value


def clocks(now_ns: int, jiffies: int) -> str:
    return f"now at {now_ns} nsecs\njiffies: {jiffies}\n"


@pytest.mark.parametrize("hz", [100, 250, 300, 1000])
def test_tick(hz: int) -> None:
    later = clocks(1_000_000_000 + 2_003_000_000, 7 + 2 * hz)
    assert trace.tick_ns(clocks(1_000_000_000, 7), later) == round(1e9 / hz)


def test_unknown_tick_is_an_error() -> None:
    with pytest.raises(TraceError, match="500 ticks per second"):
        trace.tick_ns(clocks(0, 0), clocks(1_000_000_000, 500))
    with pytest.raises(TraceError, match="timer_list"):
        trace.tick_ns("", "")


def printed(runs: list[Run], lost: int = 0) -> str:
    lines: list[dict[str, Any]] = [{"type": "run", "end": "slept"} | vars(run) for run in runs]
    lines.append({"type": "summary", "lost": lost})
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_recording_of_a_guest() -> None:
    runs = recorded(*hogs(1, 2))
    text = f"== begin\n{clocks(0, 0)}== rr3\n{printed(runs)}"
    text += "== before\nrl_nr_asked 5\nrl_nr_kept   4\n== after\nrl_nr_kept   11\n"
    with pytest.raises(TraceError, match="rl_nr_kept   11"):
        fifo_rr.read(text, 10)
    of = fifo_rr.read(f"{text}== end\n{clocks(10**9, 250)}", 10)
    assert (of.tick_ms, of.nr_kept, of.rounds) == (4.0, 7, {"rr3": runs})


def test_damaged_recordings_are_errors() -> None:
    with pytest.raises(TraceError, match="lost 3 runs"):
        trace.parse(printed(recorded(*hogs(1)), lost=3))
    with pytest.raises(TraceError, match="nothing"):
        trace.parse(printed([]))
    with pytest.raises(TraceError, match="the guest printed nothing"):
        fifo_rr.read("", 10)


def test_scripts_have_the_rounds() -> None:
    rounds = {slice_ms: fifo_rr.script(slice_ms) for slice_ms in fifo_rr.SLICES_MS}
    for slice_ms, script in rounds.items():
        assert f"--slice-us {slice_ms}000\n" in script
        recorded = re.findall(r"\brecorded (\w+)$", script, re.MULTILINE)
        assert recorded[:2] == ["rr3", "rr6"]
        assert (len(recorded) > 2) == (slice_ms == fifo_rr.FIRST_MS)
    assert fifo_rr.script_of_moves().count("--percpu-local") == 1


def test_expected_recording_passes() -> None:
    assert unmet(recording()) == []


@pytest.mark.parametrize(
    ("rounds", "what"),
    [
        ({"rr3": round_robin(10)}, "3 tasks: turns per task"),
        ({"rr3": round_robin(ms=14.4)}, "3 tasks: p50"),
        ({"rr6": round_robin(count=6, ms=9.7)}, "6 tasks: p50"),
        ({"rr3": recorded(*hogs(1, 2, 3) * 7, *hogs(2, 1, 3) * 7)}, "3 tasks: fixed order"),
        (
            {"rr3": recorded(*hogs(1, 2, 3) * 7, (HOG, 1, 15.0), *hogs(2, 3), *hogs(1, 2, 3) * 7)},
            "3 tasks: overlong",
        ),
        ({"fifo3": recorded(*((JOB, pid, 35.0) for pid in (1, 2, 1, 3)))}, "fifo3"),
        ({"fifo3": recorded(*((JOB, pid, 70.0) for pid in (2, 1, 3)))}, "fifo3"),
        ({"fifo6": jobs(5)}, "fifo6"),
        ({"mixed": jobs(3)}, "mixed: round robin"),
        ({"alone": recorded(*hogs(1, 2) * 20)}, "alone"),
    ],
)
def test_bounds(rounds: dict[str, list[Run]], what: str) -> None:
    found = unmet(recording(**rounds))
    assert any(what in one for one in found), found


def test_overlong_turns_are_explained_by_an_interruption() -> None:
    late = [(HOG, 1, 12.0), ("kdamond.0", 9, 0.02), (HOG, 1, 3.9)]
    runs = recorded(*hogs(1, 2, 3) * 7, *late, *hogs(2, 3), *hogs(1, 2, 3) * 7)
    of = recording(rr3=runs)
    assert unmet(of) == []
    assert len(checks.overlong(of, 3)) == 1
    assert checks.interrupters(of, 3) == {"kdamond.0": 1}


def test_check_of_migrations() -> None:
    assert checks.check_moves({"free": (400, 170), "local": (60, 0)}).is_met
    assert not checks.check_moves({"free": (400, 170), "local": (400, 170)}).is_met


TIMELINE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 94" role="img" font-size="13" '
    'font-family="sans-serif"><title>a &amp; b</title>'
    '<line x1="130.0" y1="6.0" x2="130.0" y2="54.0" stroke="#999999" stroke-width="0.5" />'
    '<text x="130.0" y="70.0" fill="#7a7a7a" text-anchor="middle">0</text>'
    '<line x1="505.0" y1="6.0" x2="505.0" y2="54.0" stroke="#999999" stroke-width="0.5" />'
    '<text x="505.0" y="70.0" fill="#7a7a7a" text-anchor="middle">10</text>'
    '<line x1="880.0" y1="6.0" x2="880.0" y2="54.0" stroke="#999999" stroke-width="0.5" />'
    '<text x="880.0" y="70.0" fill="#7a7a7a" text-anchor="middle">20</text>'
    '<text x="505.0" y="88.0" fill="#7a7a7a" text-anchor="middle">time, ms</text>'
    '<text x="120.0" y="23.0" fill="#7a7a7a" text-anchor="end">nice 5, 1</text>'
    '<path d="M130.0 11H317.5v14H130.0zM692.5 11H880.0v14H692.5z" fill="#2f7fc1" />'
    '<text x="120.0" y="47.0" fill="#7a7a7a" text-anchor="end">nice -5, 1</text>'
    '<path d="M317.5 35H692.5v14H317.5z" fill="#c2651a" /></svg>\n'
)


def test_timeline() -> None:
    turns = trace.turns(recorded((HOG, 1, 5), (JOB, 2, 10), (HOG, 1, 5)), (HOG, JOB))
    assert timeline.draw(turns, "a & b", LABELS) == TIMELINE


def test_timeline_ends_with_its_window() -> None:
    turns = trace.turns(round_robin(60, 6), (HOG,))
    drawn = timeline.draw(turns, "", LABELS)
    edges = re.findall(r"H([\d.]+)v", drawn)
    assert max(map(float, edges)) == 880.0
    assert len(drawn) < 5000


def luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", ["#ffffff", "#0d1117"])
def test_colours_are_visible_on_light_and_dark(background: str) -> None:
    for colour in (svg.TEXT, *timeline.BARS, *plot.COLOURS):
        low, high = sorted((luminance(colour), luminance(background)))
        assert (high + 0.05) / (low + 0.05) > 4


def results() -> page.Results:
    first = recording()
    others = {ms: replace(first, slice_ms=ms, nr_kept=None) for ms in (20, 30)}
    moves = {"free": (400, 170), "local": (60, 0)}
    latencies = [("2 ms", -5, "EEVDF", [6.86, 980.0, 4.86, 5.44, 435.0])]
    return page.Results("7.2.13", "QEMU 10", 1, {10: first} | others, moves, latencies)


def test_tables() -> None:
    assert markdown.table(("a", "b"), [("x", 1)]) == "| a | b |\n| --- | --: |\n| x | 1 |"
    assert "| 10 ms | 3 | 36 | 12.00 | 12.00 | 12.00 | 0 | 1.0 |" in page.slices(results())
    completion = page.completion(results().first)
    assert "| 3, number 2 | 70.0 | 140.0 | 70.0 | 1 | 1 | yes |" in completion
    assert "| 2 ms | -5 | EEVDF | 6.86 | 980 | 4.86 | 5.44 | 435 |" in page.latencies(results())
    assert "| `hog` | 36.000 | 300.000 |" in page.excerpt(results().first)


def test_page_names_its_pictures() -> None:
    drawn = dict(page.pictures(results()))
    assert set(re.findall(r"\]\((.*\.svg)\)", page.text(results()))) == set(drawn)
    for content in drawn.values():
        ElementTree.fromstring(content)


def test_page_does_not_depend_on_anything_else() -> None:
    assert page.text(results()) == page.text(results())
    assert "$" not in page.text(results())


def test_committed_page_has_its_pictures() -> None:
    folder = ROOT / "docs/experiments"
    named = re.findall(r"\]\((.*\.svg)\)", (folder / "fifo-rr.md").read_text())
    assert sorted(named) == sorted(file.name for file in folder.glob("fifo-rr*.svg"))
    for name in named:
        assert ElementTree.parse(folder / name).getroot().tag.endswith("svg")


def test_rounds_of_the_server() -> None:
    kernel = kernels.Kernel(Path("/k/bzImage-7.2.13"), "7.2.13", "cache")
    plan = server.plan(kernel, Path("/build"), 1)
    assert len(list(plan.rounds())) == 12
    words = plan.workloads[0].command(1)
    assert "nice -n -5 scx_load --hogs 0" in words[-1]
    assert "--request-us 2000" in words[-1]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--seed", "0"], "--seed 0"),
        (["--jobs", "0"], "--jobs 0"),
        (["--output", "/nowhere"], "--output /nowhere"),
        ([], "run ./dev build"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SCX_BUILD", str(tmp_path))
    assert command_line.main(["fifo-rr", *arguments]) == command_line.STATUS_USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("experiment: ")
    assert said.err.count("\n") == 1
    assert named in said.err


class Recorded(SimpleNamespace):
    """Replaces the guests by a recording."""

    def record(self, *_: object) -> dict[str, str]:
        return {f"slice {ms} ms": str(ms) for ms in fifo_rr.SLICES_MS} | {"migrations": ""}

    def read(self, _: str, slice_ms: int) -> Recording:
        return replace(self.of, slice_ms=slice_ms)


@pytest.mark.parametrize(
    ("of", "status"),
    [(recording(), 0), (recording(mixed=jobs(3)), command_line.STATUS_FAILED)],
)
def test_check_writes_nothing(
    of: Recording,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stub = Recorded(of=of)
    monkeypatch.setattr(fifo_rr, "SLICES_MS", (10,))
    monkeypatch.setattr(fifo_rr, "read", stub.read)
    monkeypatch.setattr(fifo_rr, "read_moves", lambda _: results().moves)
    monkeypatch.setattr(command_line, "_record", stub.record)
    monkeypatch.setattr(command_line, "_check_usage", lambda *_: None)
    monkeypatch.setattr(command_line.kernels, "resolve", lambda _: None)
    arguments = ["fifo-rr", "--check", "--output", str(tmp_path)]
    assert command_line.main(arguments) == status
    said = capsys.readouterr()
    assert "mixed: round robin before and after the jobs" in said.out
    assert said.err.count("\n") == (1 if status else 0)
    assert list(tmp_path.iterdir()) == []
