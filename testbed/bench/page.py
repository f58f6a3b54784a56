# SPDX-License-Identifier: GPL-2.0-only
"""The figures as a self-contained HTML page: a plot and a table for each figure."""

from __future__ import annotations

import html as markup
import math
from collections.abc import Iterable
from itertools import groupby

from . import plot, record
from .rounds import EEVDF, Plan, Results, Round
from .summary import ROUND_US, Cell, Row, number

_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
h2 { margin-top: 3rem; border-bottom: 1px solid #ccc; }
h3 { margin: 1.5rem 0 0; font-size: 1rem; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
td, th { padding: .1rem .8rem .1rem 0; text-align: right; font-weight: normal; }
td:first-child, th:first-child, .all :is(:nth-child(2), :nth-child(4)) { text-align: left; }
th { color: #666; border-bottom: 1px solid #ccc; }
.better { color: #1a6b2f; } .worse { color: #a3230e; } .same { color: #666; }
code, pre { font-size: .85rem; background: #f4f4f4; } pre { overflow-x: auto; padding: .5rem; }
svg { display: block; max-width: 100%; height: auto; }
.note { color: #555; }
"""

_VIRTUAL = f"""\
<p>Each round ran in a virtual machine whose clock counts instructions: repeating a round gives
exactly the same figures, regardless of the load of the host. The figures show which scheduler makes
better <em>decisions</em>: wakeup latency, fairness, cost of a decision. They show neither
scalability nor effects of caches and memory, since each instruction takes the same time and busy
CPUs slow each other down. A CPU sees an interrupt from another CPU only when its turn comes, so
differences below {ROUND_US:g} µs, marked ~, are not significant.</p>
"""
_REAL = """\
<p>The rounds of the schedulers alternated on a real machine. Other load on it affects the figures:
consider the spread before you trust a median.</p>
"""
_HOW = """\
<p>In the plots, a ring is one round and the bar is the median; lower is better unless noted
otherwise. "As good" compares the median with the kernel's own scheduler, EEVDF: 2.00 is twice as
good, 0.50 half as good.</p>
"""


def html(plan: Plan, results: Results, rows: list[Row], emulator: str) -> str:
    """The page."""
    title = "Schedulers compared: " + ", ".join(subject.name for subject in plan.subjects)
    title = markup.escape(title)
    body = [f"<h1>{title}</h1>", _where(plan, emulator), _VIRTUAL if plan.place.kernel else _REAL]
    body.append(_HOW)
    if results.is_interrupted:
        body.append("<p><strong>Interrupted: some rounds are missing.</strong></p>")
    body += [
        f"<p class=worse>{_of(error)} gave no figures: {markup.escape(error.error)}</p>"
        for error in results.errors()
    ]
    body.append(_overview(rows))
    for _, group in groupby(rows, key=lambda row: row.workload.name):
        body += _workload(plan, list(group))
    return (
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE}</style>\n" + "\n".join(body) + "\n</html>\n"
    )


def _of(over: Round) -> str:
    return markup.escape(f"{over.workload}, {over.subject}, seed {over.seed}")


def _where(plan: Plan, emulator: str) -> str:
    place = plan.place
    if not place.kernel or not place.topology:
        return f"<p class=note>{place.cpus} CPUs, {markup.escape(emulator)}.</p>"
    seeds = ", ".join(map(str, plan.seeds))
    text = f"Linux {place.kernel.release}, {place.cpus} CPUs ({place.topology.name}), "
    text += f"{'seeds' if len(plan.seeds) > 1 else 'seed'} {seeds}; {emulator}."
    return f"<p class=note>{markup.escape(text)}</p>"


def _overview(rows: list[Row]) -> str:
    """The first figure of each workload, unless EEVDF lacks this figure."""
    lines = []
    for name, group in groupby(rows, key=lambda row: row.workload.name):
        row = next(group)
        if row.cells[0].subject != EEVDF.name:
            continue
        link = f"<td><a href=#{name}>{name}</a></td><td>{markup.escape(_title(row))}</td>"
        link += f"<td>{number(row.cells[0].median)}</td>"
        lines += [
            f"<tr>{link}<td>{markup.escape(cell.subject)}</td>"
            f"<td>{number(cell.median)}</td>{_ratio(cell)}</tr>"
            for cell in row.cells[1:]
        ]
    if not lines:
        return ""
    head = (
        "<th>workload</th><th>figure</th><th>EEVDF</th><th>scheduler</th><th></th><th>as good</th>"
    )
    return f"<table class=all><tr>{head}</tr>{''.join(lines)}</table>"


def _workload(plan: Plan, rows: list[Row]) -> Iterable[str]:
    workload = rows[0].workload
    names = [subject.name for subject in plan.subjects]
    yield f"<h2 id={workload.name}>{workload.name}</h2>"
    yield f"<p>{markup.escape(workload.title[:1].upper() + workload.title[1:])}.</p>"
    for row in rows:
        if row.figure in workload.figures:
            yield f"<h3>{markup.escape(_title(row))}</h3>"
            yield plot.dots(row, names)
            yield _table(row)
    yield _used([row for row in rows if row.figure not in workload.figures])
    commands = [
        record.command(plan, subject, workload.name, seed)
        for subject in plan.subjects
        for seed in plan.seeds
    ]
    lines = markup.escape("\n".join(dict.fromkeys(commands)))
    yield f"<details><summary>Commands of the rounds</summary><pre>{lines}</pre></details>"


def _used(rows: list[Row]) -> str:
    """Resource usage of the schedulers' processes: medians, a line for each scheduler."""
    medians: dict[str, list[str]] = {}
    for row in rows:
        for cell in row.cells:
            medians.setdefault(cell.subject, []).append(f"<td>{number(cell.median)}</td>")
    if not medians:
        return ""
    heads = "".join(f"<th>{markup.escape(_title(row))}</th>" for row in rows)
    lines = "".join(
        f"<tr><td>{markup.escape(name)}</td>{''.join(cells)}</tr>"
        for name, cells in medians.items()
    )
    return f"<h3>Resource usage of schedulers</h3><table><tr><th></th>{heads}</tr>{lines}</table>"


def _title(row: Row) -> str:
    unit = f", {row.figure.unit}" if row.figure.unit else ""
    return f"{row.figure.title}{unit}" + (" (more is better)" if _is_more(row) else "")


def _is_more(row: Row) -> bool:
    return row.figure.better == "higher"


def _table(row: Row) -> str:
    lines = [
        f"<tr><td>{markup.escape(cell.subject)}</td><td>{number(cell.median)}</td>"
        f"<td>{number(cell.least)} … {number(cell.most)}</td>{_ratio(cell)}</tr>"
        for cell in row.cells
    ]
    head = "<tr><th></th><th>median</th><th>least … most</th><th>as good</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def _ratio(cell: Cell) -> str:
    if cell.times_better is None:
        return "<td></td>"
    if cell.is_within_round or math.isclose(cell.times_better, 1, rel_tol=0.05):
        kind = "same"
    else:
        kind = "better" if cell.times_better > 1 else "worse"
    mark = " ~" if cell.is_within_round else ""
    return f"<td class={kind}>{cell.times_better:.2f} ×{mark}</td>"
