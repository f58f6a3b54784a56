# SPDX-License-Identifier: GPL-2.0-only
"""Decodes traces of `scxtop trace` with Perfetto's own description of the format, which is in the
package perfetto. Times are ns of the monotonic clock."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

#: enum BuiltinClock.
MONOTONIC = 3

#: States of ftrace's sched_switch: runnable or preempted; dead or zombie.
RUNNABLE = (0, 0x100)
EXITED = 0x30

#: enum TrackEvent.Type.
SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass(frozen=True)
class Slice:
    """A run of a task. `end` is as in scx_switches: preempted (still runnable), slept or exited."""

    cpu: int
    pid: int
    comm: str
    start_ns: int
    stop_ns: int
    end: str


@dataclass(frozen=True)
class Event:
    """An event of a track. `track` is the path of the track, as in Trace.tracks()."""

    time_ns: int
    uuid: int
    track: str
    type: int
    name: str
    value: float | None
    annotations: dict[str, Any]
    flows: tuple[int, ...]
    ended_flows: tuple[int, ...]


def read(path: Path | str) -> Trace:
    """Decodes the trace in this file. Skips the test without the package, which `./dev test`
    installs below the cache."""
    cache = os.environ.get("SCX_CACHE", "~/.cache/scx")
    # The cache precedes the directory of the distribution's protobuf, which may be too old.
    sys.path[:0] = map(str, Path(cache).expanduser().glob("venv/lib/python3*/site-packages"))
    pytest.importorskip("perfetto", reason="needs Python's package perfetto")
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: PLC0415

    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(Path(path).read_bytes())
    return Trace(list(trace.packet))


class Trace:
    """A decoded trace."""

    def __init__(self, packets: list[Any]) -> None:
        self.packets = packets

    def sched(self, kind: str = "") -> Iterator[tuple[int, Any]]:
        """The CPU and the contents of each ftrace event, in the order of the file. With `kind`,
        only events that have this field of FtraceEvent, such as sched_switch."""
        for packet in self.packets:
            if packet.HasField("ftrace_events"):
                for event in packet.ftrace_events.event:
                    if not kind or event.HasField(kind):
                        yield packet.ftrace_events.cpu, event

    def slices(self) -> list[Slice]:
        """The runs of tasks between two switches of a CPU, ordered by start. Runs of idle tasks are
        left out."""
        slices = []
        before: dict[int, Any] = {}
        for cpu, event in self.sched("sched_switch"):
            start, switch = before.get(cpu), event.sched_switch
            before[cpu] = event
            # If the task that is switched out is not the one that the previous event switched in,
            # events in between were lost.
            if not start or start.sched_switch.next_pid != switch.prev_pid or not switch.prev_pid:
                continue
            times = (start.timestamp, event.timestamp)
            end = _end(switch.prev_state)
            slices.append(Slice(cpu, switch.prev_pid, switch.prev_comm, *times, end))
        return sorted(slices, key=lambda run: (run.start_ns, run.cpu))

    def tracks(self) -> dict[int, str]:
        """The path of each track by its id: the names of the track's parents and of the track,
        joined by ` / `. The path of a thread's track is only `NAME TID`."""
        described = {
            packet.track_descriptor.uuid: packet.track_descriptor
            for packet in self.packets
            if packet.HasField("track_descriptor")
        }

        def path(uuid: int) -> str:
            track = described[uuid]
            if track.HasField("thread"):
                return f"{track.thread.thread_name} {track.thread.tid}"
            parent = f"{path(track.parent_uuid)} / " if track.HasField("parent_uuid") else ""
            return parent + track.name

        return {uuid: path(uuid) for uuid in described}

    def events(self, track: str = "") -> list[Event]:
        """The events of all tracks, or of the tracks whose path is `track`, in the order of the
        file."""
        tracks = self.tracks()
        events = (
            _event(packet, tracks[packet.track_event.track_uuid])
            for packet in self.packets
            if packet.HasField("track_event")
        )
        return [event for event in events if not track or event.track == track]

    def processes(self) -> dict[int, str]:
        """The names of processes by their ids."""
        trees = [p.process_tree for p in self.packets if p.HasField("process_tree")]
        return {one.pid: " ".join(one.cmdline) for tree in trees for one in tree.processes}

    def threads(self) -> dict[int, tuple[int, str]]:
        """The process id and the name of threads, by the ids of the threads."""
        trees = [p.process_tree for p in self.packets if p.HasField("process_tree")]
        return {one.tid: (one.tgid, one.name) for tree in trees for one in tree.threads}

    def lost(self) -> int:
        """The number of lost events."""
        (summary,) = [one for one in self.events("scxtop") if one.name == "trace"]
        return summary.annotations["lost"]

    def check_monotonic(self) -> None:
        """Checks that all times are of the monotonic clock, within a day of the clock snapshot, and
        that times never go back on a track or a CPU."""
        (clocks,) = [p.clock_snapshot for p in self.packets if p.HasField("clock_snapshot")]
        assert clocks.primary_trace_clock == MONOTONIC
        now = {clock.clock_id: clock.timestamp for clock in clocks.clocks}
        timed = [packet for packet in self.packets if packet.HasField("timestamp")]
        assert {packet.timestamp_clock_id for packet in timed} <= {MONOTONIC}
        last: dict[tuple[str, int], int] = {}
        times = [(("track", one.uuid), one.time_ns) for one in self.events()]
        times += [(("cpu", cpu), event.timestamp) for cpu, event in self.sched()]
        for where, time_ns in times:
            assert last.get(where, 0) <= time_ns, where
            last[where] = time_ns
        day_ns = 24 * 3600 * 10**9
        assert all(abs(time_ns - now[MONOTONIC]) < day_ns for _, time_ns in times)

    def check_flows(self) -> int:
        """Checks that each flow begins once and ends once, no earlier than it begins, and that
        slices of a track do not overlap. Returns the number of flows."""
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        opened: Counter[int] = Counter()
        for event in self.events():
            for ids, times in ((event.flows, starts), (event.ended_flows, ends)):
                for flow in ids:
                    assert flow not in times, event
                    times[flow] = event.time_ns
            opened[event.uuid] += {SLICE_BEGIN: 1, SLICE_END: -1}.get(event.type, 0)
            assert opened[event.uuid] in (0, 1), event
        assert starts.keys() == ends.keys()
        assert all(starts[flow] <= ends[flow] for flow in starts)
        return len(starts)


def _end(state: int) -> str:
    if state in RUNNABLE:
        return "preempted"
    return "exited" if state & EXITED else "slept"


def _event(packet: Any, track: str) -> Event:
    event = packet.track_event
    value = event.WhichOneof("counter_value_field")
    return Event(
        time_ns=packet.timestamp,
        uuid=event.track_uuid,
        track=track,
        type=event.type,
        name=event.name,
        value=getattr(event, value) if value else None,
        annotations={one.name: _value(one) for one in event.debug_annotations},
        flows=tuple(event.flow_ids),
        ended_flows=tuple(event.terminating_flow_ids),
    )


def _value(annotation: Any) -> Any:
    value = annotation.WhichOneof("value")
    return getattr(annotation, value) if value else None
