# SPDX-License-Identifier: GPL-2.0-only
"""The handshakes of scx_rustland_core in a memory model: no order of events loses a wakeup.

Each CPU has a store buffer, as on x86, and a barrier flushes the buffer. Each side of a handshake
stores a word and then reads the word of the other side. All interleavings are tried.
tests/cross/atomics.py tests that the compiled programs contain the barriers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest


@dataclass(frozen=True)
class Store:
    word: str
    value: int


@dataclass(frozen=True)
class Fence:
    pass


@dataclass(frozen=True)
class ReadUnless:
    """Reads a word. If the word has this value, the program ends."""

    word: str
    value: int


@dataclass(frozen=True)
class Act:
    """Wakes the other side up, or goes to sleep."""

    what: str


Program = tuple[Store | Fence | ReadUnless | Act, ...]

FENCE = Fence()

#: A decision is spare while its task waits in the shared queue, which any CPU may serve. While the
#: policy holds a task on which it can decide, the policy thread sleeps only if there is a spare
#: decision. TAKE_SHARED is dispatch_shared() and wake_user() on the CPU that takes the last spare
#: decision. POLICY is Driver::tick() meanwhile.
SPARE = {"nr_spare": 1, "nr_waiting": 0, "is_sleeping": 0}
TAKE_SHARED: Program = (
    Store("nr_spare", 0),
    FENCE,
    ReadUnless("nr_waiting", 0),
    FENCE,
    ReadUnless("is_sleeping", 0),
    Act("wake"),
)
POLICY: Program = (
    Store("nr_waiting", 1),
    Store("is_sleeping", 1),
    FENCE,
    ReadUnless("nr_spare", 0),
    Act("sleep"),
)

#: GOES_IDLE is rl_dispatch() on a CPU that finds no task. KICKS is a CPU that has inserted a task
#: into a queue and calls kick_any_idle() or kick_idle_for().
IDLE = {"queued": 0, "idle": 0}
GOES_IDLE: Program = (Store("idle", 1), FENCE, ReadUnless("queued", 1), Act("sleep"))
KICKS: Program = (Store("queued", 1), FENCE, ReadUnless("idle", 0), Act("wake"))


#: DRAINS is the end of drain(): a CPU releases the ring, and drains it again ("wake") if a decision
#: was sent meanwhile. FINDS_TAKEN: the policy thread sends a decision, and then a second CPU finds
#: the ring taken, and leaves the decision to the first CPU ("sleep").
RING = {"nr_sent": 0, "taken": 1}
DRAINS: Program = (Store("taken", 0), FENCE, ReadUnless("nr_sent", 0), Act("wake"))
FINDS_TAKEN: Program = (Store("nr_sent", 1), FENCE, ReadUnless("taken", 0), Act("sleep"))


@dataclass(frozen=True)
class Cpu:
    program: Program
    at: int = 0
    buffer: tuple[Store, ...] = ()

    def read(self, word: str, memory: dict[str, int]) -> int:
        own = [store.value for store in self.buffer if store.word == word]
        return own[-1] if own else memory[word]


State = tuple[dict[str, int], tuple[Cpu, ...], frozenset[str]]


def successors(state: State) -> Iterator[State]:
    memory, cpus, done = state
    for index, cpu in enumerate(cpus):

        def moved(new: Cpu, index: int = index) -> tuple[Cpu, ...]:
            return (*cpus[:index], new, *cpus[index + 1 :])

        if cpu.buffer:
            first, *rest = cpu.buffer
            emptied = moved(replace(cpu, buffer=tuple(rest)))
            yield memory | {first.word: first.value}, emptied, done
        if cpu.at == len(cpu.program):
            continue
        step, after = cpu.program[cpu.at], replace(cpu, at=cpu.at + 1)
        if isinstance(step, Store):
            yield memory, moved(replace(after, buffer=(*cpu.buffer, step))), done
        elif isinstance(step, ReadUnless):
            ends = cpu.read(step.word, memory) == step.value
            yield memory, moved(replace(after, at=len(cpu.program)) if ends else after), done
        elif isinstance(step, Act):
            yield memory, moved(after), done | {step.what}
        elif not cpu.buffer:
            yield memory, moved(after), done


def outcomes(memory: dict[str, int], *programs: Program) -> set[frozenset[str]]:
    """The sets of actions of all possible interleavings."""
    states: list[State] = [(memory, tuple(Cpu(program) for program in programs), frozenset())]
    ended, seen = set(), set()
    while states:
        state = states.pop()
        key = (tuple(sorted(state[0].items())), state[1], state[2])
        if key in seen:
            continue
        seen.add(key)
        following = list(successors(state))
        states += following
        if not following:
            ended.add(state[2])
    return ended


LOST = frozenset({"sleep"})
HANDSHAKES = [
    pytest.param(SPARE, TAKE_SHARED, POLICY, id="nr_spare"),
    pytest.param(IDLE, GOES_IDLE, KICKS, id="idle"),
    pytest.param(RING, DRAINS, FINDS_TAKEN, id="ring"),
]


@pytest.mark.parametrize(("memory", "one", "other"), HANDSHAKES)
def test_no_wakeup_is_lost(memory: dict[str, int], one: Program, other: Program) -> None:
    found = outcomes(memory, one, other)
    assert LOST not in found
    assert frozenset({"sleep", "wake"}) in found


@pytest.mark.parametrize(("memory", "one", "other"), HANDSHAKES)
def test_each_barrier_is_needed(memory: dict[str, int], one: Program, other: Program) -> None:
    """Without the barriers of one side, the model finds a lost wakeup. This shows that the test
    above can fail."""
    for program in (one, other):
        bare = tuple(step for step in program if step != FENCE)
        pair = (bare, other) if program is one else (one, bare)
        assert LOST in outcomes(memory, *pair)
