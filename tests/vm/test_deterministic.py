# SPDX-License-Identifier: GPL-2.0-only
"""Deterministic guests: the output depends only on the inputs and the seed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vm import emulator, replay, topology
from vm.guest import GuestError
from vm.kernels import Kernel
from vm.topology import Topology

Replay = Callable[..., replay.Outcome]

#: Many short sleeps in an idle guest, then a mixed load under a scheduler. Prints the figures of
#: the load, the output of the scheduler, and counters of the kernel.
SCRIPT = """
n=0; while [ $n -lt 100 ]; do sleep 0.005; n=$((n + 1)); done
scx_simple >/tmp/stats 2>&1 & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
scx_load --hogs 4 --seconds 0.5 --json
kill -INT $scheduler
wait $scheduler
echo status $?
cat /tmp/stats /proc/interrupts /proc/stat
"""

#: Four shells start 500 processes each. Prints, before and after, the uptime in s and the number of
#: processes started since boot.
FORKS = """
count() { cut -d " " -f 1 /proc/uptime; sed -n "s/^processes //p" /proc/stat; }
scx_simple -i 0 & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
count
for shell in 1 2 3 4; do
    (n=0; while [ $n -lt 500 ]; do (:); n=$((n + 1)); done) & shells="$shells $!"
done
wait $shells
count
kill -INT $scheduler
wait $scheduler
"""

#: Records a trace of a mixed load under a scheduler, and prints its digest.
TRACE = """
scx_simple >/dev/null 2>&1 & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do sleep 0.1; done
scx_load --hogs 4 --seconds 10 >/dev/null & load=$!
sleep 0.1
scxtop trace --seconds 0.1 --output /tmp/trace && sha256sum /tmp/trace
kill -INT $load $scheduler
wait
"""


#: Sleeps, forks and pipes by busybox alone, so that the output does not depend on the compilers of
#: this tree's programs.
REFERENCE = """
n=0; while [ $n -lt 50 ]; do sleep 0.005; n=$((n + 1)); done
for job in 1 2 3 4 5 6; do
    (n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); done; echo $job) &
done
wait
seq 2000 | sort -r | md5sum
cat /proc/interrupts /proc/stat /proc/uptime
dmesg | md5sum
"""
#: Digests of the output of REFERENCE, by kernel, QEMU and base image.
REFERENCES = Path(__file__).with_name("reference.json")


#: Prints the emulator's counters and the uptime three times: before and after a load that uses all
#: CPUs, and after a sleep.
COUNT = """
count() { scx_counters; cut -d " " -f 1 /proc/uptime; }
count; scx_load --hogs 8 --sleepers 0 --pipes 0 --forks-per-s 0 --seconds 0.5; count; sleep 1; count
"""


def test_counters_count_what_the_cpus_execute(replays: Replay, shape: Topology) -> None:
    """A busy machine executes an instruction per ns, and an idle one hardly any."""
    output = replays(shape, COUNT).output.decode()
    numbers = re.findall(r"instructions (\d+)\nclock_reads (\d+)\n([\d.]+)\n", output)
    # Convert the uptime to an integer in units of 10 ms, its resolution: the difference of two
    # floating-point values that are 1 s apart may be slightly below 1.
    before, busy, idle = [
        (int(n), int(reads), int(uptime.replace(".", ""))) for n, reads, uptime in numbers
    ]
    assert busy[0] - before[0] == pytest.approx(1e7 * (busy[2] - before[2]), rel=0.1)
    assert idle[2] - busy[2] >= 100
    assert idle[0] - busy[0] < 50_000_000
    # The kernel reads the clock at each tick.
    assert busy[1] - before[1] > 100


def test_output_is_the_same_on_another_machine(
    replays: Replay, kernel: Kernel, shape: Topology
) -> None:
    """The output depends only on kernel, QEMU and base image. With SCX_RENEW_REFERENCE=1, the test
    writes the digest of the output to the file of the references."""
    key = f"{kernel.release}, {emulator.find().about()}, base image {replay.base_digest()}"
    digest = hashlib.sha256(replays(shape, REFERENCE, seed=1).output).hexdigest()
    known = json.loads(REFERENCES.read_text())
    if os.environ.get("SCX_RENEW_REFERENCE") == "1":
        known[key] = digest
        REFERENCES.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    if key not in known:
        pytest.skip(f"no reference of {key}")
    assert digest == known[key]


@pytest.mark.parametrize("name", ["smp4", "numa"])
def test_two_runs_are_the_same(replays: Replay, name: str, seed: int) -> None:
    """Two runs with a scheduler and a load have the same output, status and kernel log. With
    another seed, the output differs."""
    shape = topology.find(name)
    first = replays(shape, SCRIPT)
    assert first.status == 0, first.output
    load, found, _ = first.output.partition(b"status 0\n")
    assert found, first.output
    assert json.loads(load)["forks"]["done"] > 0
    assert replays(shape, SCRIPT) == first
    assert replays(shape, SCRIPT, seed=seed + 1).output != first.output


def test_two_traces_are_the_same(replays: Replay, shape: Topology) -> None:
    """`scxtop trace` writes the same bytes in two runs."""
    first = replays(shape, TRACE)
    assert first.status == 0, first.output
    lost = re.search(rb"wrote /tmp/trace: \d{4,} events, (\d+) lost", first.output)
    assert lost, first.output
    assert lost[1] == b"0"
    assert replays(shape, TRACE).output == first.output


def test_a_thousand_forks_per_second(replays: Replay, shape: Topology) -> None:
    """The rate is in guest time, which does not depend on the speed of emulation."""
    outcome = replays(shape, FORKS)
    assert outcome.status == 0, outcome.output
    start_s, before, end_s, after = map(float, outcome.output.split()[:4])
    assert (after - before) / (end_s - start_s) > 1000, outcome.output


def test_limit_is_in_guest_time(replays: Replay, shape: Topology) -> None:
    """The limit is ten minutes. In an idle guest, these take only seconds of the host's time."""
    script = "trap 'cut -d . -f 1 /proc/uptime; exit 3' INT; sleep 100000"
    outcome = replays(shape, script, limit=replay.Limit(600, signal.SIGINT))
    assert (outcome.status, outcome.timed_out) == (3, True)
    assert 600 <= int(outcome.output) < 610


def test_ends_while_cpus_wait_for_each_other(replays: Replay, shape: Topology) -> None:
    """When the script ends, the kernel still modifies its code for the tracer. All CPUs have to
    acknowledge each step, also the CPU that asks QEMU to stop the guest."""
    trace = "while :; do echo function; echo nop; done >/sys/kernel/tracing/current_tracer"
    assert replays(shape, f"({trace}) & sleep 0.5").status == 0


def test_panic_is_reported(replays: Replay, shape: Topology) -> None:
    with pytest.raises(GuestError, match="the guest died; console log: ") as error:
        replays(shape, "echo c >/proc/sysrq-trigger")
    log = Path(str(error.value).rpartition(" ")[2])
    assert "sysrq triggered crash" in log.read_text()
    log.unlink()


#: A trace, and what DAMON has found. If the kernel has DAMON, it samples the accessed bits of pages
#: all the time.
SAMPLED = f"""
{TRACE}
cat /sys/module/damon_stat/parameters/memory_idle_ms_percentiles
cat /proc/interrupts /proc/stat /proc/uptime
"""


def emulators() -> list[int]:
    """The PIDs of the emulators that this process runs."""
    found = []
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if b"qemu-system" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
    return found


@contextlib.contextmanager
def halted_now_and_then() -> Iterator[None]:
    """Stops the emulators again and again, for longer than QEMU waits until it resizes a TLB."""
    ended = threading.Event()

    def halt() -> None:
        while not ended.wait(0.1):
            with contextlib.suppress(OSError):
                for pid in emulators():
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(0.15)
                    os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=halt)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_halts_of_the_host_change_nothing(replays: Replay, shape: Topology) -> None:
    """The output is the same while the host stops the emulator again and again."""
    first = replays(shape, SAMPLED)
    assert first.status == 0, first.output
    with halted_now_and_then():
        outputs = [replays(shape, SAMPLED).output for _ in range(2)]
    assert outputs == [first.output] * 2
