# SPDX-License-Identifier: GPL-2.0-only
"""The bench without a guest: scripts, figures and their aggregation, plots, pages, records, and
the command line."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench import __main__ as command_line
from bench import functions, measure, overview, page, plot, record, rounds, summary, table
from bench import results as results_page
from bench.measure import Place, RoundError, Subject
from bench.rounds import EEVDF, Plan, Results, Round
from bench.workloads import NICES, OF_SCHEDULER, WORKLOADS, Values, Workload, ideal_shares
from vm import topology
from vm.kernels import Kernel

ROOT = Path(__file__).resolve().parents[2]
KERNEL = Kernel(Path("/k/bzImage-7.2.13"), "7.2.13", "cache")
PLACE = Place(KERNEL, topology.find("smp4"), Path("/build/rust"))
OURS = Subject("scx_rustland", Path("/build/rust/scx_rustland"))
OTHER = Subject("/opt/x -v", Path("/opt/x"), ("-v",), is_ours=False)
WAKEUP = WORKLOADS["wakeup"]


def plan(*subjects: Subject, workloads: tuple[str, ...] = ("wakeup",), seeds: int = 3) -> Plan:
    chosen = tuple(WORKLOADS[name] for name in workloads)
    return Plan(PLACE, subjects or (EEVDF, OURS), chosen, tuple(range(1, seeds + 1)))


def results(**lateness: list[float]) -> Results:
    """Results of the workload wakeup. `lateness` has the p50 of each scheduler, for each seed."""
    return Results(
        [
            Round(name, "wakeup", seed, {"lateness_p50_us": value})
            for name, values in lateness.items()
            for seed, value in enumerate(values, 1)
        ]
    )


def results_of_p99(**lateness: float) -> Results:
    """Results of the workload wakeup, from the p99 of each scheduler."""
    return Results(
        [Round(name, "wakeup", 1, {"lateness_p99_us": us}) for name, us in lateness.items()]
    )


def test_workloads_are_complete() -> None:
    for name, workload in WORKLOADS.items():
        assert workload.name == name
        assert workload.command(4)[0] == workload.program
        names = [figure.name for figure in (*workload.figures, *OF_SCHEDULER)]
        assert len(set(names)) == len(names)
        for figure in workload.figures:
            assert not figure.is_latency or figure.unit in {"µs", "ms", "s"}


@pytest.mark.parametrize(
    ("weights", "cpus", "shares"),
    [
        ([1, 1, 1, 1], 2, [0.5] * 4),
        ([3, 1], 1, [0.75, 0.25]),
        # A task cannot use more than one CPU. The other tasks share the rest.
        ([98, 1, 1], 2, [1, 0.5, 0.5]),
        ([98, 98, 1, 1], 3, [1, 1, 0.5, 0.5]),
        ([1, 1], 4, [1, 1]),
    ],
)
def test_ideal_shares(weights: list[float], cpus: int, shares: list[float]) -> None:
    assert ideal_shares(weights, cpus) == pytest.approx(shares)


def test_fairness_is_the_distance_from_the_ideal() -> None:
    read = WORKLOADS["fairness"].read

    def off(times: list[float]) -> float:
        return read(json.dumps({"hogs": {"cpu_s": times}}), 2)["off_max_percent"]

    assert NICES == (0, 5)
    fair = [1024.0, 335.0, 1024.0, 335.0]
    assert off(fair) == pytest.approx(0)
    # The third hog has 10 % less CPU time than the first.
    assert off([1024.0, 335.0, 921.6, 335.0]) == pytest.approx(6.5, abs=0.1)


LOAD = {"sleepers": {"lateness_p50_us": 70.0, "lateness_p99_us": 900.0, "lateness_max_us": None}}
OUTPUT = f"""\
== before
ctxt 1000
now_s 3.00
cpu_ns 5000000
cpu_ns 1000000
VmHWM:	   2048 kB
== after
ctxt 3000
now_s 5.00
cpu_ns 45000000
cpu_ns 1000000
VmHWM:	   4096 kB
== load
{json.dumps(LOAD, indent=1)}
== done
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_figures_of_a_round(newline: str) -> None:
    assert measure.figures(OUTPUT.replace("\n", newline), WAKEUP, 4) == {
        "lateness_p50_us": 70.0,
        "lateness_p99_us": 900.0,
        # In two seconds, the threads of the scheduler ran for 40 ms, and there were 2000 switches.
        "scheduler_cpu_percent": pytest.approx(2.0),
        "scheduler_memory_mib": 4.0,
        "switch_cost_ns": pytest.approx(20_000),
    }


def test_figures_without_a_scheduler() -> None:
    lines = [line for line in OUTPUT.splitlines() if not line.startswith(("cpu_ns", "VmHWM"))]
    assert set(measure.figures("\n".join([*lines, ""]), WAKEUP, 4)) == {
        "lateness_p50_us",
        "lateness_p99_us",
    }


def test_idle_time_and_cost_are_read() -> None:
    threads = [{"cpu_ns": 40_000_000, "run_max_ns": 250_000, "syscalls": 500}]
    said = json.dumps({"type": "summary", "elapsed_s": 1.0, "threads": threads})
    output = OUTPUT.replace("== load", f"== switches\n{said}\n== load")
    idle = measure.figures(output, WORKLOADS["idle"], 4)
    assert (idle["idle_percent"], idle["idle_max_us"]) == (pytest.approx(1.0), 250.0)

    after = "VmHWM:	   4096 kB\nrun_time_ns:	8000000\nrun_cnt:	6000\n"
    output = output.replace("VmHWM:	   4096 kB\n", after)
    cost = measure.figures(output, WORKLOADS["cost"], 4)
    assert cost["bpf_ns_per_switch"] == pytest.approx(4000)
    assert cost["bpf_runs_per_switch"] == pytest.approx(3)
    assert cost["syscalls_per_switch"] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("== before\nctxt 1\n== failed\nscx_x: no root\n", "scx_x: no root"),
        ("== before\nctxt 1\n", "== before ctxt 1"),
        ("", "it printed nothing"),
    ],
)
def test_failed_round_reports_the_reason(output: str, reason: str) -> None:
    with pytest.raises(RoundError, match=f"^{reason}$"):
        measure.figures(output, WAKEUP, 4)


def run_script(
    tmp_path: Path, subject: Subject, scheduler: str, load: str, workload: Workload = WAKEUP
) -> str:
    """The output of a round with these two scripts as scheduler and load."""
    for name, text in (("scx_rustland", scheduler), ("scx_load", load)):
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    state = tmp_path / "state"
    state.write_text("disabled\n")
    script = measure.script(subject, workload, 4, str(tmp_path))
    script = script.replace("/sys/kernel/sched_ext/state", str(state))
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "STATE": str(state)}
    done = subprocess.run(["sh", "-c", script], env=env, stdout=subprocess.PIPE, timeout=60)
    return done.stdout.decode()


SERVES = (
    "trap 'echo disabled >$STATE; exit 0' TERM; echo enabled >$STATE; while :; do sleep 0.1; done"
)


def test_script_runs_the_load_under_the_scheduler(tmp_path: Path) -> None:
    # The load lasts longer than the resolution of /proc/uptime, 10 ms.
    load = f"cat $STATE >{tmp_path}/seen; sleep 0.05; echo '{json.dumps(LOAD)}'"
    output = run_script(tmp_path, OURS, SERVES, load)
    values = measure.figures(output, WAKEUP, 4)
    assert values["lateness_p50_us"] == 70.0
    assert values["scheduler_memory_mib"] > 0
    assert (tmp_path / "seen").read_text() == "enabled\n"
    assert (tmp_path / "state").read_text() == "disabled\n"


@pytest.mark.parametrize("name", ["pingpong", "pingpong-pinned", "pingpong-many", "scale"])
def test_script_reads_the_counters(tmp_path: Path, name: str) -> None:
    program = tmp_path / "scx_counters"
    program.write_text("#!/bin/sh\necho instructions 5\necho clock_reads 6\n")
    program.chmod(0o755)
    load = """sleep 0.05; echo '{"pipes": {"round_trips_per_s": 50000}}'"""
    output = run_script(tmp_path, OURS, SERVES, load, WORKLOADS[name])
    for section in ("before", "after"):
        assert "instructions 5\nclock_reads 6\n" in measure.sections(output)[section]
    assert measure.figures(output, WORKLOADS[name], 4)["instructions_per_switch"] == 0


def test_counters_are_divided_by_the_switches() -> None:
    output = """\
== before
ctxt 100
now_s 1.00
instructions 4000000000
clock_reads 70
== after
ctxt 300
now_s 2.00
instructions 5000000000
clock_reads 670
== load
{"pipes": {"round_trips_per_s": 50000}}
== done
"""
    assert measure.figures(output, WORKLOADS["pingpong"], 4) == {
        "round_trip_us": 20.0,
        "instructions_per_switch": 5_000_000,
        "clock_reads_per_switch": 3,
    }
    # On the host, there are no counters.
    without = re.sub("^(instructions|clock_reads) .*\n", "", output, flags=re.MULTILINE)
    assert measure.figures(without, WORKLOADS["pingpong"], 4) == {"round_trip_us": 20.0}


@pytest.mark.parametrize(
    ("scheduler", "load", "reason"),
    [
        ("echo cannot attach; exit 1", "echo {}", "cannot attach"),
        (SERVES, "echo no CPU >&2; exit 1", "no CPU"),
        (SERVES, "echo disabled >$STATE; echo {}", "it ended:.*"),
        (SERVES.replace("exit 0", "echo bye; exit 2"), "echo {}", "it ended with status 2: bye"),
    ],
)
def test_script_reports_failures(tmp_path: Path, scheduler: str, load: str, reason: str) -> None:
    with pytest.raises(RoundError, match=f"^{reason}$"):
        measure.figures(run_script(tmp_path, OURS, scheduler, load), WAKEUP, 4)


def test_round_without_its_own_scheduler_is_refused(tmp_path: Path) -> None:
    script = measure.script(EEVDF, WAKEUP, 4, str(tmp_path))
    state = tmp_path / "state"
    state.write_text("enabled\n")
    script = script.replace("/sys/kernel/sched_ext/state", str(state))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    with pytest.raises(RoundError, match="^a scheduler is loaded already$"):
        measure.figures(done.stdout, WAKEUP, 4)


@pytest.mark.parametrize("ignored", ["INT", "INT TERM"])
def test_hung_round_on_the_host_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    pid = tmp_path / "pid"
    load = tmp_path / "scx_load"
    load.write_text(f"#!/bin/sh\ntrap '' {ignored}\necho $$ >{pid}\nexec sleep 60\n")
    load.chmod(0o755)
    # Even on a busy machine, 3 s are enough to start the load, and then to end it.
    monkeypatch.setattr(measure, "_LIFETIME_S", 3.0)
    monkeypatch.setattr(measure, "_GRACE_S", 3.0)
    # As root, measure() does not use sudo.
    monkeypatch.setattr(measure.os, "geteuid", lambda: 0)
    place = Place(None, None, tmp_path)
    with pytest.raises(RoundError, match="^it exceeded 3 s$"):
        measure.measure(place, EEVDF, WAKEUP, 1, lambda: False)
    if "TERM" in ignored:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    else:
        assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_rounds_are_interleaved() -> None:
    order = [(seed, subject.name) for seed, _, subject in plan(seeds=2).rounds()]
    assert order == [(1, "EEVDF"), (1, "scx_rustland"), (2, "EEVDF"), (2, "scx_rustland")]


Measure = Callable[..., Values]


def measuring(monkeypatch: pytest.MonkeyPatch, measured: Measure) -> None:
    monkeypatch.setattr(rounds, "measure", measured)


def test_finished_rounds_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(_place: Place, subject: Subject, *_: object) -> Values:
        if subject == OURS:
            raise RoundError("it ended")
        return {"lateness_p50_us": 1.0}

    measuring(monkeypatch, measured)
    found = rounds.run(plan(seeds=2))
    assert found.values("EEVDF", "wakeup", "lateness_p50_us") == [1.0, 1.0]
    assert [error.error for error in found.errors()] == ["it ended"] * 2
    assert "bench: wakeup, scx_rustland, seed 1: it ended\n" in capsys.readouterr().err


def test_interrupt_ends_running_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(
        _place: Place,
        _subject: Subject,
        _workload: object,
        seed: int,
        cancelled: Callable[[], bool],
    ) -> Values:
        while seed > 1 and not cancelled():
            pass
        return {"lateness_p50_us": float(seed)}

    def take(done: set[object], found: Results, meter: object) -> None:
        original(done, found, meter)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    original = rounds._take
    measuring(monkeypatch, measured)
    monkeypatch.setattr(rounds, "_take", take)
    found = rounds.run(plan(EEVDF, seeds=50))
    assert found.is_interrupted
    assert 1 <= len(found.rounds) < 50


def test_unexpected_error_cancels_the_other_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def measured(
        _place: Place, _subject: Subject, _workload: object, seed: int, *_: object
    ) -> Values:
        begun.append(seed)
        raise OSError(errno.ENOSPC, "no space left")

    measuring(monkeypatch, measured)
    with pytest.raises(OSError, match="no space left"):
        rounds.run(plan(EEVDF, seeds=500))
    assert len(begun) < 500


def test_medians_and_ratios() -> None:
    found = results(EEVDF=[400.0, 100.0, 200.0], scx_rustland=[50.0, 800.0, 40.0])
    (row,) = summary.rows(plan(), found)
    eevdf, ours = row.cells
    assert (eevdf.least, eevdf.median, eevdf.most) == (100.0, 200.0, 400.0)
    assert eevdf.times_better is None
    assert ours.times_better == 4.0
    assert not ours.is_within_round
    text = table.text([row])
    assert "wakeup: a task that sleeps" in text
    assert "4.00 × as good" in text
    assert "~" not in text


def test_insignificant_differences_are_marked() -> None:
    (row,) = summary.rows(plan(), results(EEVDF=[110.0], scx_rustland=[121.0]))
    assert row.cells[1].is_within_round
    assert "0.91 × as good ~" in table.text([row])


def test_higher_can_be_better() -> None:
    rates = [("EEVDF", 100.0), ("scx_rustland", 200.0)]
    found = Results([Round(name, "messaging", 1, {"messages_per_s": x}) for name, x in rates])
    (row,) = summary.rows(plan(workloads=("messaging",)), found)
    assert row.cells[1].times_better == 2.0


def test_table_without_figures_is_empty() -> None:
    assert table.text(summary.rows(plan(), Results())) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.1234, "0.123"), (0.5, "0.5"), (4.567, "4.57"), (45.67, "45.7"), (4567, "4567")],
)
def test_numbers(value: float, text: str) -> None:
    assert summary.number(value) == text


class Page(HTMLParser):
    """The ids, the links and the number of pictures of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.pictures += tag == "svg"
        self.ids += [given["id"] or ""] if "id" in given else []
        for name in ("href", "src"):
            if name in given:
                self.links.append(given[name] or "")


def test_page_is_self_contained_with_a_plot_for_each_figure() -> None:
    found = results(EEVDF=[400.0, 100.0], scx_rustland=[50.0, 8000.0])
    found.rounds.append(Round("scx_rustland", "wakeup", 3, {}, "it <ended>"))
    rows = summary.rows(plan(), found)
    text = page.html(plan(), found, rows, "QEMU 10")
    parsed = Page(text)
    assert parsed.pictures == len(rows) == 1
    assert parsed.links == ["#wakeup"]
    assert parsed.ids == ["wakeup"]
    assert "it &lt;ended&gt;" in text
    assert "<td>250</td>" in text
    assert "./dev bench --kernel 7.2.13 --topology smp4 --seed 3" in text


@pytest.mark.parametrize(
    "values", [[0.0], [0.0, 0.0], [1.0, 3.0], [0.001, 4567.0], [5.0, 5.0], [99.9]]
)
def test_plots_stay_within_bounds(values: list[float]) -> None:
    found = results(EEVDF=values, scx_rustland=values)
    (row,) = summary.rows(plan(), found)
    picture = ElementTree.fromstring(plot.dots(row, ["EEVDF", "scx_rustland"]))
    width, height = map(float, picture.attrib["viewBox"].split()[2:])
    space = "{http://www.w3.org/2000/svg}"
    rings = picture.findall(f"{space}circle")
    assert len(rings) == 2 * len(values)
    for element in rings:
        assert 0 < float(element.attrib["cx"]) < width
    for element in picture.findall(f"{space}text"):
        assert 0 < float(element.attrib["x"]) < width
        assert 0 < float(element.attrib["y"]) < height
    labels = [element.text for element in picture.findall(f"{space}text")]
    assert len(labels) - 2 >= 2, labels
    assert len(set(labels)) == len(labels), labels


def test_record_has_the_command_of_each_round() -> None:
    compared = plan(EEVDF, OURS, OTHER)
    found = results(EEVDF=[1.0], scx_rustland=[2.0])
    found.rounds.append(Round(OTHER.name, "wakeup", 2, {}, "it ended"))
    written = json.loads(record.to_json(compared, found, "QEMU 10"))
    commands = [one["command"] for one in written["rounds"]]
    guest = "./dev bench --kernel 7.2.13 --topology smp4 --seed"
    assert commands == [
        f"{guest} 1 --workload wakeup",
        f"{guest} 1 --workload wakeup --alone scx_rustland",
        f"{guest} 2 --workload wakeup --alone '/opt/x -v'",
    ]
    assert [one["error"] for one in written["rounds"]] == [None, None, "it ended"]
    assert command_line._parser().parse_args(shlex.split(commands[1])[2:]).alone


def test_record_is_read_back(tmp_path: Path) -> None:
    compared = plan(EEVDF, OURS, OTHER, workloads=("wakeup", "spawn"))
    found = results(EEVDF=[1.0, 2.0], scx_rustland=[2.0, 4.0])
    found.rounds.append(Round(OTHER.name, "wakeup", 2, {}, "it ended"))
    file = tmp_path / "rounds.json"
    file.write_text(record.to_json(compared, found, "QEMU 10"))
    read_plan, read, emulator = record.load(file, PLACE.tools)
    assert (read, emulator) == (found, "QEMU 10")
    assert read_plan.seeds == (1, 2)
    assert record.to_json(read_plan, read, emulator) == file.read_text()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": 0}', '{"version": 1}'])
def test_other_files_are_no_records(content: str, tmp_path: Path) -> None:
    file = tmp_path / "rounds.json"
    file.write_text(content)
    with pytest.raises(record.RecordError, match=str(file)):
        record.load(file, PLACE.tools)


def test_record_of_a_host_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rounds.json"
    of_host = replace(plan(), place=Place(None, None, PLACE.tools))
    file.write_text(record.to_json(of_host, results(EEVDF=[1.0]), "x86_64"))
    with pytest.raises(record.RecordError, match="not in guests"):
        record.load(file, PLACE.tools)


def test_results_page_has_each_scheduler_and_names_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_page, "FOLDER", tmp_path)
    found = results(EEVDF=[400.0, 100.0], scx_rustland=[50.0, 60.0])
    found.rounds.append(Round(OTHER.name, "wakeup", 1, {}, "it ended"))
    of_three = plan(EEVDF, OURS, OTHER)
    monkeypatch.setattr(results_page, "SCHEDULERS", (OURS.name, OTHER.name))
    results_page.write(of_three, found, "QEMU 10")
    text = (tmp_path / results_page.PAGE).read_text()
    assert "| EEVDF | 250 (100 … 400) |" in text
    assert "| scx_rustland | 55.0 (50.0 … 60.0) 4.55 × |" in text
    assert "| /opt/x -v | – |" in text
    assert "/opt/x -v, seed 1: no figures: it ended" in text
    named = re.findall(r"\]\((.*\.svg)\)", text)
    assert sorted(named) == sorted(file.name for file in tmp_path.glob("*.svg"))


def test_results_of_one_scheduler_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_page, "FOLDER", tmp_path)
    monkeypatch.setattr(results_page, "SCHEDULERS", (OURS.name, OTHER.name))
    found = results(EEVDF=[400.0], scx_rustland=[50.0], **{OTHER.name: [80.0]})
    results_page.write(plan(EEVDF, OURS, OTHER, seeds=1), found, "QEMU 10")
    results_page.write(plan(OTHER, seeds=1), results(**{OTHER.name: [60.0]}), "QEMU 10")
    text = (tmp_path / results_page.PAGE).read_text()
    assert "| scx_rustland | 50.0" in text
    assert "| /opt/x -v | 60.0" in text
    known, read, _ = record.load(tmp_path / results_page.FIGURES, PLACE.tools)
    assert [one.subject for one in read.rounds] == [EEVDF.name, OURS.name, OTHER.name]
    assert [subject.name for subject in known.subjects] == [EEVDF.name, OURS.name, OTHER.name]
    assert results_page.nr_seeds(PLACE.tools) == 1
    for other, emulator in ((plan(OTHER, seeds=2), "QEMU 10"), (plan(OTHER, seeds=1), "QEMU 11")):
        with pytest.raises(record.RecordError, match="measure all schedulers"):
            results_page.write(other, results(**{OTHER.name: [60.0]}), emulator)


def test_results_are_of_all_schedulers() -> None:
    listed = re.findall(r"^\| (scx_\w+) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(results_page.SCHEDULERS) == sorted(listed)
    for workload, figure, _ in overview.FIGURES:
        assert workload in results_page.CHOSEN
        assert figure in {figure.name for figure in WORKLOADS[workload].figures}


def test_committed_results_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record has all schedulers and workloads. The page and the pictures are drawn from it."""
    plan, found, emulator = record.load(results_page.FOLDER / results_page.FIGURES, PLACE.tools)
    names = [subject.name for subject in plan.subjects]
    assert names == [EEVDF.name, *results_page.SCHEDULERS]
    assert tuple(workload.name for workload in plan.workloads) == results_page.CHOSEN
    assert len(found.rounds) == len(names) * len(plan.workloads) * len(plan.seeds)
    committed = results_page.FOLDER
    monkeypatch.setattr(results_page, "FOLDER", tmp_path)
    results_page.write(plan, found, emulator)
    for file in tmp_path.iterdir():
        assert file.read_text() == (committed / file.name).read_text(), file.name
    text = (committed / results_page.PAGE).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Overview", *results_page.CHOSEN]
    for name in re.findall(r"\]\((.*\.svg)\)", text):
        assert ElementTree.parse(committed / name).getroot().tag.endswith("svg")


def test_overview_shows_what_was_measured() -> None:
    rows = summary.rows(plan(), results_of_p99(EEVDF=400.0, scx_rustland=40.0))
    picture = ElementTree.fromstring(overview.draw(rows))
    space = "{http://www.w3.org/2000/svg}"
    bars = [float(bar.attrib["width"]) for bar in picture.findall(f"{space}rect")]
    assert bars[0] == pytest.approx(10 * bars[1], rel=0.01)
    labels = [element.text for element in picture.findall(f"{space}text")]
    assert labels == ["EEVDF", "scx_rustland", "wakeup, p99, µs", "400", "40.0"]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build with one scheduler, and a machine without sched_ext."""
    program = tmp_path / "rust/scx_rustland"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("SCX_BUILD", str(tmp_path))
    monkeypatch.setattr(command_line, "_STATE", tmp_path / "state")
    monkeypatch.setattr(command_line.kernels, "resolve", lambda _: KERNEL)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["scx_nothing"], "there is no scheduler 'scx_nothing'"),
        (["./nothing"], "there is no scheduler './nothing'"),
        ([""], "there is no scheduler ''"),
        (["scx_rustland", "scx_rustland"], "given twice"),
        (["--alone"], "name a scheduler"),
        (["--seeds", "0"], "--seeds 0: give 1 to 100"),
        (["--seed", "0"], "--seed 0: give 1 to 4294967295"),
        (["--seed", "-1"], "--seed -1: give 1 to"),
        (["--seed", "1", "--seeds", "2"], "exclude each other"),
        (["--topology", "x"], "x"),
        (["--host"], "this kernel has no sched_ext"),
        (["--host", "--topology", "numa"], "--topology is for guests"),
        (["--html", "/nonexistent/page"], "there is no such directory"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    build: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert command_line.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("bench: ")
    assert said.err.count("\n") == 1
    assert reason in said.err


def test_host_with_a_running_scheduler_is_rejected(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (build / "state").write_text("enabled\n")
    assert command_line.main(["--host"]) == 2
    assert "loaded already" in capsys.readouterr().err


def test_run_writes_table_page_and_record(
    build: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Emulator:
        def version(self) -> str:
            return "10.0.2"

    monkeypatch.setattr(command_line.emulator, "find", Emulator)
    measuring(monkeypatch, lambda *_: {"lateness_p50_us": 100.0})
    written = [tmp_path / "x.html", tmp_path / "x.json"]
    files = ["--html", str(written[0]), "--json", str(written[1])]
    assert command_line.main(["scx_rustland", "--workload", "wakeup", *files]) == 0
    assert "1.00 × as good" in capsys.readouterr().out
    assert "<svg" in written[0].read_text()
    assert len(json.loads(written[1].read_text())["rounds"]) == 6


@pytest.mark.parametrize(("lateness_us", "status", "nr_worse"), [(110.0, 0, 0), (900.0, 1, 2)])
def test_check_compares_with_the_results(
    build: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lateness_us: float,
    status: int,
    nr_worse: int,
) -> None:
    class Emulator:
        def version(self) -> str:
            return "10"

    monkeypatch.setattr(command_line.emulator, "find", Emulator)
    monkeypatch.setattr(results_page, "FOLDER", tmp_path)
    monkeypatch.setattr(results_page, "SCHEDULERS", (OURS.name,))
    monkeypatch.setattr(results_page, "CHOSEN", ("wakeup", "spawn"))
    measuring(monkeypatch, lambda *_: {"lateness_p50_us": 100.0, "spawn_p99_ms": 2.0})
    assert command_line.main(["--results", "--seeds", "3"]) == 0
    values = {"lateness_p50_us": lateness_us, "spawn_p99_ms": 2.0 * lateness_us / 110}
    measuring(monkeypatch, lambda *_: values)
    capsys.readouterr()
    assert command_line.main(["--check"]) == status
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"{nr_worse} of 2 figures are worse than in docs/results"
    assert sum(line.endswith(" worse") for line in said) == nr_worse
    assert command_line.main(["--check", OURS.name, "--workload", "wakeup"]) == status


def test_workloads_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(WORKLOADS)


KALLSYMS = """\
ffffffff81000000 _stext
ffffffff81000040 pick.isra.0
ffffffff81000080 pick.cold
ffffffffc0000100 bpf_prog_6deef7357e7b4530_simple_enqueue [bpf]
"""


def test_functions_are_found_by_address() -> None:
    symbols = functions.Symbols(KALLSYMS.splitlines())
    at = [symbols.at(0xFFFFFFFF81000000 + offset) for offset in (0, 0x3F, 0x40, 0x90)]
    assert at == ["_stext", "_stext", "pick", "pick"]
    assert symbols.at(0xFFFFFFFFC0000123) == "simple_enqueue [bpf]"
    assert symbols.at(0x555555554000) == functions.USER
    # Before the first symbol, the address stands for itself.
    assert symbols.at(0xFFFFFFFF80000000) == "0xffffffff80000000"


def test_only_executed_blocks_count() -> None:
    table = struct.pack("<9Q", 0xF000, 7, 3, 0, 0, 0, 0xF010, 5, 0)
    assert list(functions.blocks(table)) == [(0xF000, 21)]


def test_table_of_functions() -> None:
    found = [
        functions.Profile("EEVDF", 1000, {"__schedule": 300.0, functions.USER: 90.4}),
        functions.Profile("scx_rusty", 800, {"__schedule": 350.0, "rusty_enqueue [bpf]": 364.0}),
    ]
    assert functions.text(found, 2).splitlines() == [
        "                                    EEVDF  scx_rusty",
        "context switches                     1000        800",
        "instructions per context switch       390        714",
        "  of the kernel                       300        350",
        "  of BPF programs                       0        364",
        "  of user space                        90          0",
        "rusty_enqueue [bpf]                     0        364",
        "__schedule                            300        350",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--functions", "0"], "--functions 0: give 1 or more"),
        (["--functions", "--host"], "--functions cannot be combined with --host"),
        (
            ["--functions", "--workload", "wakeup", "--workload", "spawn"],
            "--functions: give one --workload",
        ),
    ],
)
def test_functions_refuses(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert command_line.main(arguments) == command_line.STATUS_USAGE
    assert complaint in capsys.readouterr().err
