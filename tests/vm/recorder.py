# SPDX-License-Identifier: GPL-2.0-only
"""scx_switches in a guest: records of where and for how long tasks ran."""

from __future__ import annotations

import itertools
import json
import re
import signal
from typing import Any

from sched_ext import TIMEOUT_S, wait_for
from vm.guest import Guest

Record = dict[str, Any]

_numbers = itertools.count()


def preempted_ns(printed: str) -> list[list[int]]:
    """The lengths of runs that ended by preemption, a list for each recording with --json."""
    recordings: list[list[int]] = [[]]
    for line in re.findall(r"^\{.*\}$", printed, re.MULTILINE):
        record = json.loads(line)
        if record["type"] == "summary":
            recordings.append([])
        elif record["end"] == "preempted":
            recordings[-1].append(record["ran_ns"])
    return recordings[:-1]


class Recorder:
    """scx_switches in the guest. The constructor returns once the program records."""

    def __init__(self, guest: Guest, *args: str) -> None:
        self.process = guest.spawn(f"switches{next(_numbers)}", ["scx_switches", *args])
        wait_for("it records", self._records_or_gone)
        assert self.process.running(), self.process.stderr()

    def _records_or_gone(self) -> bool:
        return "recording\n" in self.process.stderr() or not self.process.running()

    def stop(self, number: int = signal.SIGINT) -> str:
        """Stops the recording and returns the output."""
        self.process.signal(number)
        assert self.process.wait(TIMEOUT_S) == 0, self.process.stderr()
        return self.process.stdout()

    def records(self) -> tuple[list[Record], Record]:
        """Stops a recording that was started with --json. Returns the runs and the summary."""
        *runs, summary = [json.loads(line) for line in self.stop().splitlines()]
        assert summary["type"] == "summary"
        assert all(run["type"] == "run" for run in runs)
        return runs, summary
