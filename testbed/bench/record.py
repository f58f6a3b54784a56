# SPDX-License-Identifier: GPL-2.0-only
"""The figures as JSON, with the command that reproduces each of them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from .measure import Subject
from .rounds import EEVDF, Plan, Results

#: Increased when a field changes its meaning or is removed.
VERSION = 1


def command(plan: Plan, subject: Subject, workload: str, seed: int) -> str:
    """The command that repeats a round."""
    words = ["./dev", "bench"]
    if plan.place.kernel and plan.place.topology:
        words += ["--kernel", plan.place.kernel.release]
        words += ["--topology", plan.place.topology.name]
        words += ["--seed", str(seed)]
    else:
        words.append("--host")
    words += ["--workload", workload]
    if subject == EEVDF:
        return shlex.join(words)
    name = subject.name if not subject.program else _named(subject)
    return shlex.join([*words, "--alone", " ".join([name, *map(shlex.quote, subject.arguments)])])


def _named(subject: Subject) -> str:
    assert subject.program
    return subject.program.name if subject.is_ours else str(subject.program)


def to_json(plan: Plan, results: Results, emulator: str) -> str:
    """All rounds."""
    place = plan.place
    subjects = {subject.name: subject for subject in plan.subjects}
    record: dict[str, Any] = {
        "version": VERSION,
        "kernel": place.kernel.release if place.kernel else None,
        "topology": place.topology.name if place.topology else None,
        "emulator": emulator,
        "cpus": place.cpus,
        "is_interrupted": results.is_interrupted,
        "rounds": [
            {
                "scheduler": over.subject,
                "workload": over.workload,
                "seed": over.seed,
                "figures": over.values,
                "error": over.error or None,
                "command": command(plan, subjects[over.subject], over.workload, over.seed),
            }
            for over in results.rounds
        ],
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def write(path: Path, content: str) -> None:
    """Write a file atomically. Raises OSError."""
    part = path.with_name(path.name + ".part")
    part.write_text(content)
    part.replace(path)
