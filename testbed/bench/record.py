# SPDX-License-Identifier: GPL-2.0-only
"""The rounds as JSON, each with its figures and the command that repeats it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from vm import topology
from vm.kernels import Kernel

from .measure import Place, Subject
from .rounds import EEVDF, Plan, Results, Round
from .workloads import WORKLOADS

#: Version of the format. It is increased when a field changes its meaning or is removed.
VERSION = 1


def command(plan: Plan, subject: Subject, workload: str, seed: int) -> str:
    """The command that repeats a round."""
    words = ["./dev", "bench"]
    if plan.place.kernel and plan.place.topology:
        words += ["--kernel", plan.place.kernel.wanted]
        words += ["--topology", plan.place.topology.name]
        words += ["--seed", str(seed)]
    else:
        words += ["--host", "--seeds", "1"]
    words += ["--workload", workload]
    if subject == EEVDF:
        return shlex.join(words)
    name = subject.name if not subject.program else _named(subject)
    return shlex.join([*words, "--alone", " ".join([name, *map(shlex.quote, subject.arguments)])])


def _named(subject: Subject) -> str:
    assert subject.program
    return subject.program.name if subject.is_ours else str(subject.program)


def origin(place: Place, emulator: str) -> str:
    """What the figures of a place depend on, apart from the programs: kernel, topology and
    emulator."""
    kernel = f"Linux {place.kernel.release}" if place.kernel else "this machine"
    shape = f"{place.topology.name}, " if place.topology else ""
    return f"{kernel}, {shape}{emulator}"


def to_json(plan: Plan, results: Results, emulator: str) -> str:
    """The plan and all finished rounds as JSON, with a line for each round."""
    place = plan.place
    subjects = {subject.name: subject for subject in plan.subjects}
    head: dict[str, Any] = {
        "version": VERSION,
        "kernel": place.kernel.release if place.kernel else None,
        "topology": place.topology.name if place.topology else None,
        "emulator": emulator,
        "cpus": place.cpus,
        "schedulers": [subject.name for subject in plan.subjects],
        "workloads": [workload.name for workload in plan.workloads],
        "is_interrupted": results.is_interrupted,
    }
    rounds = [
        {
            "scheduler": over.subject,
            "workload": over.workload,
            "seed": over.seed,
            "figures": over.values,
            "error": over.error or None,
            "command": command(plan, subjects[over.subject], over.workload, over.seed),
        }
        for over in results.rounds
    ]
    lines = [f" {_json(name)}: {_json(value)}" for name, value in head.items()]
    lines.append(' "rounds": [\n  ' + ",\n  ".join(map(_json, rounds)) + "\n ]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class RecordError(Exception):
    """A file is not a record of rounds in guests, or its rounds do not fit a plan. The message
    names the file."""


def load(path: Path, tools: Path) -> tuple[Plan, Results, str]:
    """The plan, the results and the emulator of a file with rounds in guests. The programs of the
    schedulers are not looked up. Raises OSError, RecordError."""
    try:
        known = json.loads(path.read_text())
        if known["version"] != VERSION:
            raise RecordError(f"{path}: version {known['version']}, not {VERSION}")
        if not known["kernel"]:
            raise RecordError(f"{path}: its rounds ran on a machine, not in guests")
        rounds = [
            Round(
                one["scheduler"], one["workload"], one["seed"], one["figures"], one["error"] or ""
            )
            for one in known["rounds"]
        ]
        plan = Plan(
            Place(Kernel(path, known["kernel"], "record"), topology.find(known["topology"]), tools),
            tuple(EEVDF if name == EEVDF.name else _subject(name) for name in known["schedulers"]),
            tuple(WORKLOADS[name] for name in known["workloads"]),
            tuple(sorted({over.seed for over in rounds})),
        )
    except (ValueError, KeyError, TypeError, AttributeError, topology.TopologyError) as error:
        raise RecordError(f"{path}: not written by --json: {error!r}") from error
    return plan, Results(rounds, known["is_interrupted"]), known["emulator"]


def _subject(name: str) -> Subject:
    program, *arguments = shlex.split(name)
    return Subject(name, Path(program), tuple(arguments), "/" not in program)


def write(path: Path, content: str) -> None:
    """Write a file atomically. Raises OSError."""
    part = path.with_name(path.name + ".part")
    part.write_text(content)
    part.replace(path)
