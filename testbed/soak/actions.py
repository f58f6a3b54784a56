# SPDX-License-Identifier: GPL-2.0-only
"""The actions of the stress test. Each action is a shell script, generated from a Scene and random
numbers: for a Scene, the same seed gives the same sequence.

A script runs in the guest to completion. Processes that it leaves behind end by themselves after at
most about 12 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from vm.topology import Topology


@dataclass(frozen=True)
class Action:
    """A step of the sequence."""

    #: A description for messages.
    what: str
    script: str


@dataclass(frozen=True)
class Scene:
    """The environment of the actions."""

    topology: Topology
    #: The scheduler's process id, and the name of its program.
    pid: int
    program: str
    #: Whether the program has the option --monitor, which prints the statistics of the running
    #: scheduler. Only the Rust schedulers have it.
    has_monitor: bool


#: Sets `thread` to the id of a random thread of the running loads that has one of these names.
#: Exits if there is none.
_PICK = """\
set -- $(for task in /proc/[0-9]*/task/[0-9]*; do
	read -r name 2>/dev/null <$task/comm && case $name in
	hog | sleeper | pinger | ponger | periodic) echo "${task##*/}" ;;
	esac
done)
[ $# -gt 0 ] || exit 0
shift $((NUMBER % $#)); thread=$1
"""
#: Discards error messages, because a task may have ended.
_QUIETLY = " 2>/dev/null"


def _pick(dice: Random) -> str:
    return _PICK.replace("NUMBER", str(dice.randrange(1 << 16)))


def _load(dice: Random, scene: Scene) -> Action:
    cpus = len(scene.topology.online)
    kinds = {
        "hogs": dice.randint(0, 2 * cpus),
        "sleepers": dice.randint(0, 20),
        "pipes": dice.randint(0, 2),
        "forks-per-s": dice.randint(0, 20),
        "periodic": dice.randint(0, 2),
        "workers": dice.choice([0, 0, cpus]),
        "groups": dice.choice([0, 0, 0, 1]),
    }
    counts = " ".join(f"--{kind}={count}" for kind, count in kinds.items())
    nice = dice.choice([0, 0, 5, 19, -5])
    seconds = dice.randint(3, 12)
    words = f"nice -n {nice} scx_load --movers=1 {counts} --seconds={seconds}"
    return Action(f"load for {seconds} s, nice {nice}", f"{words} >/dev/null 2>&1 &")


def _forks(dice: Random, scene: Scene) -> Action:
    threads, seconds = dice.randint(1, len(scene.topology.online)), dice.randint(1, 4)
    quiet = "--hogs=0 --sleepers=0 --pipes=0 --forks-per-s=0"
    words = f"scx_load {quiet} --fork-storms={threads} --seconds={seconds}"
    return Action(f"{threads} fork storms for {seconds} s", f"{words} >/dev/null 2>&1 &")


def _movers(dice: Random, _: Scene) -> Action:
    threads, seconds = dice.randint(2, 16), dice.randint(2, 6)
    quiet = "--hogs=0 --sleepers=0 --pipes=0 --forks-per-s=0"
    words = f"scx_load {quiet} --movers={threads} --seconds={seconds}"
    return Action(f"{threads} movers for {seconds} s", f"{words} >/dev/null 2>&1 &")


def _nice(dice: Random, _: Scene) -> Action:
    nice = dice.randint(-20, 19)
    script = _pick(dice) + f"renice -n {nice} -p $thread >/dev/null" + _QUIETLY
    return Action(f"nice {nice}", script)


def _policy(dice: Random, _: Scene) -> Action:
    """A temporary change of the scheduling class, or of the policy within the class."""
    policy = dice.choice(["-b 0", "-o 0", "-i 0", "-f 1", "-r 1"])
    script = _pick(dice) + f"chrt {policy.split()[0]} -p {policy.split()[1]} $thread" + _QUIETLY
    # The change is brief, because a hog that is a real-time task does not release its CPU.
    script += f"\nsleep 0.3; chrt -o -p 0 $thread{_QUIETLY}"
    return Action(f"chrt {policy}", script)


def _real_time(dice: Random, scene: Scene) -> Action:
    cpu, seconds = dice.choice(scene.topology.online), dice.randint(1, 2)
    # The hog ends by itself, because a task that had to kill it might never run.
    now = "IFS=. read -r now rest </proc/uptime"
    spin = f"{now}; end=$((now + {seconds})); while [ $now -lt $end ]; do {now}; done"
    script = f"chrt -f 50 taskset {1 << cpu:x} sh -c '{spin}' &"
    return Action(f"real-time hog on CPU {cpu} for {seconds} s", script)


def _cgroup(dice: Random, _: Scene) -> Action:
    group = dice.choice(["", "a", "b", "a/c"])
    script = (
        "cd /sys/fs/cgroup; [ -e cgroup.procs ] || mount -t cgroup2 none . && cd /sys/fs/cgroup\n"
        "mkdir -p a/c b; echo +cpu >cgroup.subtree_control 2>/dev/null\n"
        + _pick(dice)
        + f"echo $thread >./{group}/cgroup.procs"
        + _QUIETLY
    )
    return Action(f"a move to the cgroup /{group}", script)


def _hotplug(dice: Random, scene: Scene) -> Action:
    cpu = dice.choice(scene.topology.possible[1:])
    file = f"/sys/devices/system/cpu/cpu{cpu}/online"
    script = f"echo 0 >{file}; sleep 0.5; echo 1 >{file}"
    return Action(f"CPU {cpu} offline and online", script)


def _client(dice: Random, scene: Scene) -> Action:
    seconds, number = dice.randint(1, 4), dice.choice(["INT", "KILL"])
    command = f"timeout -s {number} {seconds} {scene.program} --monitor 0.5"
    return Action(f"a client for {seconds} s", f"{command} >/dev/null 2>&1 &")


def _stop(dice: Random, scene: Scene) -> Action:
    seconds = dice.choice([0.1, 1, 3])
    script = f"kill -STOP {scene.pid}; sleep {seconds}; kill -CONT {scene.pid}"
    return Action(f"the scheduler is stopped for {seconds} s", script)


def sequence(scene: Scene, seed: int) -> Iterator[Action]:
    """An endless sequence of actions."""
    dice = Random(seed)
    kinds: list[tuple[Callable[[Random, Scene], Action], int]] = [
        (_load, 6),
        (_forks, 2),
        (_movers, 2),
        (_nice, 3),
        (_policy, 2),
        (_real_time, 2),
        (_cgroup, 2),
        (_stop, 1),
    ]
    if len(scene.topology.possible) > 1:
        kinds.append((_hotplug, 2))
    if scene.has_monitor:
        kinds.append((_client, 2))
    makers, weights = zip(*kinds, strict=True)
    # The first action is a load, on which later actions can act.
    yield _load(dice, scene)
    while True:
        yield dice.choices(makers, weights)[0](dice, scene)
