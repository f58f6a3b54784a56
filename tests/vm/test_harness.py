# SPDX-License-Identifier: GPL-2.0-only
"""The harness itself (testbed/vm), with real guests."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from vm import guest as guest_module
from vm.guest import CommandError, Guest, GuestError
from vm.kernels import Kernel
from vm.topology import Topology

pytestmark = pytest.mark.once


@pytest.fixture(scope="session")
def icount() -> bool:
    """These guests have the host's time, as those of ./dev vm by default: the tests check timeouts,
    which are in the host's time."""
    return False


SYS_CPU = "/sys/devices/system/cpu"


def cpus(listing: str) -> tuple[int, ...]:
    """Parses a CPU list of the kernel, such as 0-3,6."""
    found: list[int] = []
    for part in listing.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def read(guest: Guest, path: str) -> str:
    return guest.run(["cat", path]).check().stdout


@pytest.mark.parametrize("status", [0, 1, 42, 255])
def test_exit_status(guest: Guest, status: int) -> None:
    result = guest.run(f"exit {status}")
    assert (result.status, result.timed_out, result.ok) == (status, False, status == 0)


def test_output_bytes_are_unchanged(guest: Guest) -> None:
    result = guest.run(r"printf 'a\000\377\r\n\033b'; printf 'e\200' >&2")
    assert result.stdout_raw == b"a\x00\xff\r\n\x1bb"
    assert result.stderr_raw == b"e\x80"


def test_list_is_a_program_and_its_arguments(guest: Guest) -> None:
    words = ["a  b", "$HOME", "'", "*", "\\n", "ü", "two\nlines"]
    assert guest.run(["printf", "%s|", *words]).stdout == "".join(f"{word}|" for word in words)


def test_error_of_a_failed_command(guest: Guest) -> None:
    with pytest.raises(CommandError, match="ended with status 3: sorry"):
        guest.run("echo sorry >&2; exit 3").check()
    assert guest.run(["nosuch"]).status == 127


def test_large_output(guest: Guest) -> None:
    size = 1 << 20
    result = guest.run(f"head -c {size} /dev/zero | tr '\\0' x; seq 20000 >&2")
    assert result.stdout_raw == b"x" * size
    assert result.stderr == "".join(f"{i}\n" for i in range(1, 20001))


def test_large_script(guest: Guest) -> None:
    lines = "".join(f"echo {'x' * 60} {i}\n" for i in range(1000))
    assert len(guest.run(lines).stdout.splitlines()) == 1000


def test_files_are_read_without_a_process(guest: Guest) -> None:
    size = 3 << 20
    guest.run(
        f"mkdir /tmp/files; head -c {size} /dev/zero >/tmp/files/1; printf 'a\\200' >/tmp/files/2"
    )
    assert guest.read("/tmp/files/*").stdout_raw == bytes(size) + b"a\x80"
    assert guest.read("/tmp/files/2").stdout_raw == b"a\x80"
    # Files in /proc report the size 0, although they have contents.
    assert guest.read("/proc/uptime").check().stdout.count(".") == 2
    assert guest.read("/proc/kallsyms").stdout.count("\n") > 100_000
    # No rest of a file is left in the data port, where it would precede the next output.
    assert guest.run(["echo", "output"]).stdout == "output\n"
    counts = [nr_forks(guest) for _ in range(20)]
    # If each read forked a process, the difference would be at least the number of reads minus 1.
    # It may be above 0, because the kernel may fork a thread meanwhile.
    assert counts[-1] - counts[0] < len(counts) - 1


def nr_forks(guest: Guest) -> int:
    """The number of processes and threads since boot."""
    return int(guest.read("/proc/stat").stdout.partition("\nprocesses ")[2].split()[0])


def test_missing_file_has_a_status(guest: Guest) -> None:
    for pattern in ("/nothing", "/proc/nothing/*"):
        result = guest.read(pattern)
        assert (result.status, result.stdout_raw) == (1, b"")
    with pytest.raises(CommandError, match="'read /nothing' ended with status 1"):
        guest.read("/nothing").check()
    with pytest.raises(ValueError, match="give one line"):
        guest.read("/proc/uptime\npoweroff")


def test_kernel_log(guest: Guest) -> None:
    guest.run("echo 'a message' >/dev/kmsg").check()
    log = guest.kernel_log()
    assert log.endswith("a message\n")
    assert log == guest.run(["dmesg"]).stdout


def test_timeout_kills_a_command_with_its_children(guest: Guest) -> None:
    result = guest.run("echo begun; sleep 1234 & sleep 1234", timeout_s=2)
    assert (result.timed_out, result.ok, result.stdout) == (True, False, "begun\n")
    assert result.status == 128 + signal.SIGKILL
    assert "sleep 1234" not in guest.run("ps -o args").stdout


def test_finished_commands_leave_no_files(guest: Guest) -> None:
    before = guest.run("ls /run/spawn").stdout.split()
    for _ in range(5):
        guest.run("echo output")
    assert len(guest.run("ls /run/spawn").stdout.split()) <= len(before) + 1


def test_background_process(guest: Guest) -> None:
    process = guest.spawn(
        "looper", "trap 'echo bye; exit 7' INT; echo hi; while :; do sleep 0.1; done"
    )
    assert process.running()
    assert guest.run(f"grep PPid /proc/{process.pid}/status").ok
    wait_for(lambda: process.stdout() == "hi\n")
    process.signal(signal.SIGINT)
    assert process.wait(timeout_s=20) == 7
    assert not process.running()
    assert (process.stdout(), process.stderr()) == ("hi\nbye\n", "")


def wait_for(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_reach_the_program_itself(guest: Guest, number: int) -> None:
    process = guest.spawn("sleeper", ["sleep", "1234"])
    # Between fork() and exec(), the process has the name of the agent.
    wait_for(lambda: guest.read(f"/proc/{process.pid}/comm").stdout == "sleep\n")
    process.signal(number)
    assert process.wait(timeout_s=20) == 128 + number
    assert process.stderr() == ""
    process.signal(number)


def test_wait_has_a_timeout(guest: Guest) -> None:
    process = guest.spawn("waited", ["sleep", "1234"])
    with pytest.raises(TimeoutError, match="'waited' still runs after 0.5 s"):
        process.wait(timeout_s=0.5)
    with pytest.raises(ValueError, match="'waited' already runs"):
        guest.spawn("waited", "true")
    process.signal(signal.SIGKILL)
    process.wait(timeout_s=20)
    assert guest.spawn("waited", "exit 4").wait(timeout_s=20) == 4


def test_orphans_are_reaped(guest: Guest) -> None:
    guest.run("(sleep 0.2 &)").check()
    time.sleep(1)
    assert " Z " not in guest.run("ps -o stat,args | sed 's/^/ /'").stdout


def test_unprivileged_user(guest: Guest) -> None:
    result = guest.run("id -un; id -u; touch /root/x", user="nobody")
    assert result.stdout == "nobody\n65534\n"
    assert "Permission denied" in result.stderr
    process = guest.spawn("unprivileged", ["sleep", "1234"], user="nobody")
    assert guest.run(["stat", "-c", "%U", f"/proc/{process.pid}"]).stdout == "nobody\n"
    process.signal(signal.SIGTERM)
    assert process.wait(timeout_s=20) == 128 + signal.SIGTERM


def test_unknown_user_is_an_error(guest: Guest) -> None:
    with pytest.raises(CommandError, match="cannot start 'x'.*unknown user"):
        guest.spawn("x", "true", user="somebody")


def test_streaming(guest: Guest) -> None:
    chunks: list[bytes] = []
    result = guest.stream("echo out; echo err >&2; sleep 1; echo late; exit 5", sink=chunks.append)
    assert (result.status, result.timed_out) == (5, False)
    assert b"".join(chunks) == b"out\nerr\nlate\n"
    assert len(chunks) > 1


def test_large_stream_is_complete(guest: Guest) -> None:
    received = bytearray()
    guest.stream("seq 50000", sink=received.extend)
    assert received == b"".join(b"%d\n" % i for i in range(1, 50001))


def test_stream_is_interrupted_after_its_timeout(guest: Guest) -> None:
    received = bytearray()
    result = guest.stream(
        "trap 'echo bye; exit 3' INT; while :; do sleep 0.1; done",
        timeout_s=2,
        sink=received.extend,
    )
    assert (result.status, result.timed_out, bytes(received)) == (3, True, b"bye\n")


def test_signal_to_the_host_is_forwarded_to_the_stream(guest: Guest) -> None:
    def interrupt(chunk: bytes) -> None:
        if b"ready" in chunk:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    result = guest.stream(
        "trap 'exit 6' TERM; echo ready; while :; do sleep 0.1; done", sink=interrupt
    )
    assert (result.status, result.timed_out) == (6, False)
    assert signal.getsignal(signal.SIGTERM) == before


def test_stream_that_ignores_a_signal_is_killed(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(chunk: bytes) -> None:
        if b"ready" in chunk:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(guest_module, "_STOP_GRACE_S", 1.0)
    result = guest.stream("trap '' INT; echo ready; while :; do sleep 0.1; done", sink=interrupt)
    assert (result.status, result.timed_out) == (128 + signal.SIGKILL, False)


def test_only_urgent_commands_are_real_time_tasks(guest: Guest) -> None:
    policy = "chrt -p $$ | head -n 1"
    assert guest.run(policy).stdout.endswith(": SCHED_OTHER\n")
    assert guest.run(policy, user="nobody").stdout.endswith(": SCHED_OTHER\n")
    assert guest.run(policy, is_urgent=True).stdout.endswith(": SCHED_FIFO\n")
    assert guest.spawn("ordinary", "chrt -p $$ | head -n 1 >/tmp/policy").wait(60) == 0
    assert guest.run(["cat", "/tmp/policy"]).stdout.endswith(": SCHED_OTHER\n")


def test_commands_while_a_process_runs(guest: Guest) -> None:
    """The output of a command does not contain the output of a process that runs meanwhile."""
    noise = guest.spawn("noise", "while :; do echo noise; echo noise >&2; done")
    try:
        for i in range(10):
            assert guest.run(f"seq {i * 100}").stdout.count("\n") == i * 100
    finally:
        noise.signal(signal.SIGKILL)
        noise.wait(timeout_s=20)


def test_kernel_is_the_requested_one(guest: Guest, kernel: Kernel) -> None:
    assert guest.run(["uname", "-r"]).stdout.strip() == kernel.release
    assert "Linux version " + kernel.release in guest.kernel_log()


def test_file_systems_and_btf(guest: Guest) -> None:
    types = guest.run("cut -d' ' -f2,3 /proc/mounts").stdout
    for mount in (
        *("/proc proc", "/sys sysfs", "/dev devtmpfs", "/run tmpfs", "/tmp tmpfs"),
        *("/sys/fs/cgroup cgroup2", "/sys/fs/bpf bpf", "/sys/kernel/tracing tracefs"),
    ):
        assert mount in types
    assert guest.run("cat /sys/kernel/btf/vmlinux | head -c 2").stdout_raw == b"\x9f\xeb"


@pytest.mark.every_topology
def test_cpus_match_the_topology(guest: Guest, shape: Topology) -> None:
    assert cpus(read(guest, f"{SYS_CPU}/possible")) == shape.possible
    assert cpus(read(guest, f"{SYS_CPU}/online")) == shape.online


@pytest.mark.every_topology
def test_smt_and_caches_match_the_topology(guest: Guest, shape: Topology) -> None:
    for cpu in shape.online:
        directory = f"{SYS_CPU}/cpu{cpu}"
        siblings = read(guest, f"{directory}/topology/thread_siblings_list")
        assert cpus(siblings) == shape.siblings(cpu)
        llc = cpus(read(guest, f"{directory}/cache/index3/shared_cpu_list"))
        assert llc == tuple(other for other in shape.llc(cpu) if other in shape.online)


@pytest.mark.every_topology
def test_nodes_match_the_topology(guest: Guest, shape: Topology) -> None:
    nodes = shape.nodes or (shape.online,)
    for node, members in enumerate(nodes):
        directory = f"/sys/devices/system/node/node{node}"
        assert cpus(read(guest, f"{directory}/cpulist")) == members
        if shape.distances:
            distances = tuple(int(word) for word in read(guest, f"{directory}/distance").split())
            assert distances == shape.distances[node]


def test_clock_source_is_fast(guest: Guest) -> None:
    source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    # In its first seconds the kernel calls the TSC "tsc-early".
    assert read(guest, source).strip() in {"tsc", "tsc-early", "kvm-clock"}


def test_panic_is_reported_with_the_console_log(kernel: Kernel) -> None:
    with (
        pytest.raises(GuestError, match="the guest died: Kernel panic") as lost,
        Guest(kernel) as guest,
    ):
        started_s = time.monotonic()
        guest.run("echo c >/proc/sysrq-trigger; sleep 60")
    assert time.monotonic() - started_s < 30
    log = Path(str(lost.value).rpartition("console log: ")[2])
    assert "sysrq" in log.read_text()
    log.unlink()


def test_guest_that_hangs_during_boot_is_killed(kernel: Kernel, tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    started_s = time.monotonic()
    with (
        pytest.raises(GuestError, match="the guest did not boot within 3 s; console log: "),
        Guest(kernel, kernel_args=["rdinit=/bin/cat"], boot_timeout_s=3, console_log=log) as guest,
    ):
        guest.run("true")
    assert time.monotonic() - started_s < 20
    assert log.exists()


def test_guest_has_a_maximum_lifetime(kernel: Kernel, tmp_path: Path) -> None:
    with (
        pytest.raises(GuestError, match="the guest exceeded its life time of 15 s; console log: "),
        Guest(kernel, lifetime_s=15, console_log=tmp_path / "console.log") as guest,
    ):
        guest.run("sleep 60")


#: Stops the guest's agent. Then the guest runs, but does not respond.
HANG = "kill -STOP $(pidof scx_agent); echo hangs >/dev/kmsg; sleep 60"


def test_guest_that_hangs_during_a_command_is_reported(kernel: Kernel) -> None:
    started_s = time.monotonic()
    with (
        pytest.raises(GuestError, match="the guest hangs: no heartbeat for 6 s") as lost,
        Guest(kernel, max_silence_s=6) as guest,
    ):
        guest.stream(HANG)
    assert time.monotonic() - started_s < 60
    log = Path(str(lost.value).rpartition("console log: ")[2])
    assert log.exists()
    log.unlink()


def test_silent_command_is_not_a_hang(kernel: Kernel) -> None:
    with Guest(kernel, max_silence_s=4) as guest:
        assert guest.stream("sleep 10; exit 3").status == 3


def test_after_an_interrupt_only_the_log_of_a_hung_guest_is_kept(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guest_module, "_HASTY_POWEROFF_S", 10.0)
    logs: list[Path | None] = []
    for hang in ("true", HANG):
        with pytest.raises(KeyboardInterrupt), Guest(kernel) as guest:
            guest.spawn("command", hang)
            log = guest.console_log
            assert log
            if hang == HANG:
                wait_for(lambda log=log: "hangs" in log.read_text(errors="replace"))
            logs.append(log)
            raise KeyboardInterrupt
    clean, hung = logs
    assert clean and not clean.exists()
    assert hung and hung.exists()
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "console log" in line] == [
        f"the guest did not power off; console log: {hung}"
    ]
    hung.unlink()
