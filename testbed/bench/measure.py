# SPDX-License-Identifier: GPL-2.0-only
"""One round: a workload under one scheduler, in a deterministic guest or on this machine.

In a guest and on this machine, the same shell script runs. It prints its results in sections that
begin with a line `== NAME`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vm import replay
from vm.kernels import Kernel
from vm.programs import COUNTERS, built
from vm.topology import Topology

from .workloads import Values, Workload

#: Time limits of a round: in guest time, and in host time.
_LIMIT_S = 120.0
_LIFETIME_S = 900.0
#: A script on this machine is killed if it still runs this long after its time limit.
_GRACE_S = 10.0
#: Exit statuses of timeout(1) if the script was terminated at its time limit, or killed after the
#: grace period.
_TIMED_OUT = (124, 137)

_PRELUDE = """\
section() { echo "== $1"; }
die() { section failed; echo "$1"; exit 1; }
snapshot() {
	section "$1"
	grep ctxt /proc/stat
	echo "now_s $(cut -d' ' -f1 /proc/uptime)"
	[ -z "$counters" ] || $counters
	[ "$pid" ] || return 0
	for thread in /proc/$pid/task/*/schedstat; do echo "cpu_ns $(cut -d' ' -f1 $thread)"; done
	grep -h VmHWM /proc/$pid/status
	grep -hE '^run_(time_ns|cnt)' /proc/$pid/fdinfo/*
}
pid=
switches=
load=
stats=
counters=
restore() {
	[ -z "$stats" ] || echo "$stats" >/proc/sys/kernel/bpf_stats_enabled
	kill $pid $switches $load 2>/dev/null
	wait
}
trap restore EXIT
# A second signal must not interrupt `restore`: Ctrl-C arrives from the terminal and from timeout.
trap "trap '' INT TERM; exit 1" INT TERM
# A round that was killed may have left its scheduler running.
loaded=$(cat /sys/kernel/sched_ext/state 2>/dev/null)
[ "$loaded" != enabled ] || die 'a scheduler is loaded already'
"""

#: Enables accounting of BPF programs; `restore` resets it.
_COUNT_BPF = """\
stats=$(cat /proc/sys/kernel/bpf_stats_enabled)
echo 1 >/proc/sys/kernel/bpf_stats_enabled
"""

#: Includes the emulator's counters in snapshots. The program that prints them is only in guests.
_COUNT_INSTRUCTIONS = f"counters=$(command -v {COUNTERS})\n"

#: Starts the scheduler, and waits until the kernel reports it as enabled.
_START = """\
{command} >{scratch}/scheduler 2>&1 & pid=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
	kill -0 $pid 2>/dev/null || die "$(tail -n 3 {scratch}/scheduler)"
	sleep 0.05
done
sleep 0.3
"""
_STOP = """\
said() {{ tail -n 3 {scratch}/scheduler; }}
[ "$(cat /sys/kernel/sched_ext/state)" = enabled ] || die "it ended: $(said)"
kill $pid; wait $pid || die "it ended with status $?: $(said)"
pid=
"""

_RECORD = """\
scx_switches {arguments} --summary --json >{scratch}/switches 2>{scratch}/recorder & switches=$!
until grep -q recording {scratch}/recorder; do
	kill -0 $switches 2>/dev/null || die "$(cat {scratch}/recorder)"
	sleep 0.02
done
"""
_END_RECORD = """\
wait $switches || die 'scx_switches failed'
switches=
"""


class RoundError(Exception):
    """A round without figures; the text is for the user."""


@dataclass(frozen=True)
class Subject:
    """A scheduler to measure: its file and arguments. The kernel's own scheduler has no file."""

    #: For display: the scheduler as given by the user.
    name: str
    program: Path | None = None
    arguments: tuple[str, ...] = ()
    #: Whether it is a scheduler of this tree, which the user names without a path.
    is_ours: bool = True


@dataclass(frozen=True)
class Place:
    """Where rounds run: in a guest, or on this machine if `kernel` is None."""

    kernel: Kernel | None
    topology: Topology | None
    #: Directory of scx_load and scx_switches.
    tools: Path

    @property
    def cpus(self) -> int:
        """The number of online CPUs of the guest or of this machine."""
        if self.topology:
            return len(self.topology.online)
        return os.cpu_count() or 1


def script(
    subject: Subject, workload: Workload, cpus: int, scratch: str, finally_: str = ""
) -> str:
    """The script of a round. The script writes its files to the directory `scratch`. After the
    load, it runs the commands `finally_`, and then stops the scheduler."""
    command = workload.command(cpus)
    lines = [_PRELUDE]
    if workload.counts_instructions:
        lines.append(_COUNT_INSTRUCTIONS)
    if workload.counts_cost:
        lines.append(_COUNT_BPF)
    if subject.program:
        words = [subject.program.name, *subject.arguments]
        lines.append(_START.format(command=shlex.join(words), scratch=scratch))
    recorder = list(workload.switches)
    # A recording that the workload requests has a time limit, and ends before the load.
    ends_itself = bool(recorder)
    if workload.counts_cost and subject.program:
        recorder = ["--pid", "$pid", "--syscalls"]
    if recorder and not ends_itself:
        lines.append(_record(recorder, scratch))
    lines.append("snapshot before\n")
    lines.append(f"{shlex.join(command)} >{scratch}/load 2>{scratch}/error & load=$!\n")
    if ends_itself:
        lines.append(f"sleep 0.3\n{_record(recorder, scratch)}{_END_RECORD}")
        lines.append("kill -0 $load || die 'the load ended before it was recorded'\n")
    lines.append(f'wait $load || die "$(cat {scratch}/error)"\nload=\nsnapshot after\n')
    if recorder and not ends_itself:
        lines.append(f"kill $switches; {_END_RECORD}")
    if recorder:
        lines.append(f"section switches; cat {scratch}/switches\n")
    lines.append(f"section load; cat {scratch}/load\n")
    lines.append(finally_)
    if subject.program:
        lines.append(_STOP.format(scratch=scratch))
    lines.append("section done\n")
    return "".join(lines)


def _record(arguments: list[str], scratch: str) -> str:
    """The part of the script that starts the recorder, and waits until it records."""
    words = " ".join(word if word == "$pid" else shlex.quote(word) for word in arguments)
    return _RECORD.format(arguments=words, scratch=scratch)


def measure(
    place: Place, subject: Subject, workload: Workload, seed: int, cancelled: Callable[[], bool]
) -> Values:
    """The figures of a round. Raises RoundError, and the errors of replay.run()."""
    if place.kernel and place.topology:
        text = script(subject, workload, place.cpus, "/tmp")
        output = in_guest(place, subject, workload, text, seed, cancelled)
    else:
        output = _on_host(place, subject, workload)
    return figures(output, workload, place.cpus)


def in_guest(
    place: Place,
    subject: Subject,
    workload: Workload,
    text: str,
    seed: int,
    cancelled: Callable[[], bool] = lambda: False,
    plugin: str | None = None,
) -> str:
    """Runs `text`, the script of a round, in a guest. Returns its output. Raises RoundError, and
    the errors of replay.run()."""
    assert place.kernel and place.topology
    programs = [place.tools / "scx_load", place.tools / "scx_switches", built(COUNTERS)]
    if workload.program != "scx_load":
        programs.append(Path(shutil.which(workload.program) or workload.program))
    if subject.program:
        programs.append(subject.program)
    outcome = replay.run(
        place.kernel,
        place.topology,
        text,
        programs=programs,
        seed=seed,
        limit=replay.Limit(_LIMIT_S, 9),
        lifetime_s=_LIFETIME_S,
        cancelled=cancelled,
        is_announced=False,
        plugin=plugin,
    )
    if outcome.timed_out:
        raise RoundError(f"it exceeded {_LIMIT_S:g} s of guest time")
    return outcome.output.decode(errors="replace")


def _on_host(place: Place, subject: Subject, workload: Workload) -> str:
    with tempfile.TemporaryDirectory(prefix="scx-bench-") as scratch:
        path = f"{place.tools}:{subject.program.parent}" if subject.program else str(place.tools)
        text = f"PATH={shlex.quote(path)}:$PATH\n" + script(subject, workload, place.cpus, scratch)
        as_root = [] if os.geteuid() == 0 else ["sudo"]
        # Run timeout as root, too: an ordinary user cannot signal the script.
        limit = ["timeout", "--foreground", f"--kill-after={_GRACE_S:g}", f"{_LIFETIME_S:g}"]
        done = subprocess.run(
            [*as_root, *limit, "sh", "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode in _TIMED_OUT:
        raise RoundError(f"it exceeded {_LIFETIME_S:g} s")
    return done.stdout


def sections(output: str) -> dict[str, str]:
    """The output of a round, by section."""
    parts = re.split(r"^== (\w+)\n", output.replace("\r\n", "\n"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def figures(output: str, workload: Workload, cpus: int) -> Values:
    """The figures in the output of a round. Raises RoundError."""
    found = sections(output)
    if "done" not in found:
        last = found.get("failed", output).strip().splitlines()[-3:]
        raise RoundError(" ".join(last) or "it printed nothing")
    values = workload.read(found["load"], cpus)
    before, after = sums(found["before"]), sums(found["after"])
    spent = {name: after[name] - before.get(name, 0.0) for name in after}
    if "cpu_ns" in after:
        values["scheduler_cpu_percent"] = spent["cpu_ns"] / spent["now_s"] / 1e7
        values["scheduler_memory_mib"] = after["VmHWM"] / 1024
        values["switch_cost_ns"] = spent["cpu_ns"] / spent["ctxt"]
    if "instructions" in after:
        values["instructions_per_switch"] = spent["instructions"] / spent["ctxt"]
        values["clock_reads_per_switch"] = spent["clock_reads"] / spent["ctxt"]
    if workload.switches:
        values |= _idle(found["switches"], cpus)
    if workload.counts_cost and "cpu_ns" in after:
        values |= _cost(found["switches"], spent)
    return values


def sums(text: str) -> Values:
    """The names in a snapshot, each with the sum of its values."""
    sums: Values = {}
    for line in text.splitlines():
        name, value = line.split()[:2]
        name = name.rstrip(":")
        sums[name] = sums.get(name, 0.0) + float(value)
    return sums


def _summary(switches: str) -> dict[str, object]:
    return json.loads(switches.strip().splitlines()[-1])


def _idle(switches: str, cpus: int) -> Values:
    summary = _summary(switches)
    idle_ns, longest_ns = 0.0, 0.0
    for thread in summary["threads"]:  # type: ignore[attr-defined]
        idle_ns += thread["cpu_ns"]
        longest_ns = max(longest_ns, thread["run_max_ns"] or 0)
    elapsed_s = float(summary["elapsed_s"])  # type: ignore[arg-type]
    return {
        "idle_percent": idle_ns / 1e7 / elapsed_s / cpus,
        "idle_max_us": longest_ns / 1e3,
    }


def _cost(switches: str, spent: Values) -> Values:
    # The scheduler's threads that ran during the load. The list may be empty.
    threads = _summary(switches)["threads"]
    syscalls = sum(thread["syscalls"] for thread in threads)  # type: ignore[attr-defined]
    return {
        "bpf_runs_per_switch": spent.get("run_cnt", 0.0) / spent["ctxt"],
        "bpf_ns_per_switch": spent.get("run_time_ns", 0.0) / spent["ctxt"],
        "syscalls_per_switch": syscalls / spent["ctxt"],
    }
