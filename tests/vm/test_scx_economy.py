# SPDX-License-Identifier: GPL-2.0-only
"""scx_economy on a real kernel: servers get the CPU time that their clients give up, no more and no
less.

Money is lag: the CPU time to which a task is entitled, minus the CPU time that it has used. T1 to
T10 in the docstrings number the properties that the scheduler has to have. Most loads imitate the
example in docs/schedulers/scx_economy.md: four terminals scroll, and an X server draws their lines,
beside five tasks that compute, all on one CPU.
"""

from __future__ import annotations

import json
import re
import signal
from dataclasses import dataclass
from statistics import median
from typing import Any

import pytest
from figures import Replayed, record_runs, scx_load
from loads import end_load
from sched_ext import STOPS_FAIR_SERVER_TWICE, Load, SetCpu, Start, read, wait_for
from statistics_client import total, wait_served
from vm.guest import Guest

#: Runs loads one after the other, and then prints the scheduler's statistics.
SCRIPT = """
SCHEDULER 2>/tmp/economy >/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
    kill -0 $scheduler || { cat /tmp/economy; exit 1; }
    sleep 0.1
done
LOADS
sleep 0.1
scxstats
cat /sys/kernel/sched_ext/state
kill -INT $scheduler
wait $scheduler
"""

#: The prefix of a load that is to run on one CPU. The other CPUs are idle.
ONE_CPU = "taskset 2 "
HOGS = 5
CLIENTS = 4
#: The length of a slice: 3 ms, rounded up to the tick of 4 ms. TURN_MS is the time in which the
#: hogs, the clients and the server run for a slice each.
SLICE_MS = 4.0
TURN_MS = SLICE_MS * (HOGS + CLIENTS + 1)


@dataclass
class Run:
    """The figures of the loads of a run of the scheduler, and its statistics since its start."""

    loads: list[dict[str, Any]]
    totals: dict[str, int]

    def share(self, load: int = 0) -> dict[str, float]:
        """Shares of one CPU in a load: of the average hog, of the server, and of all clients
        together."""
        figures = self.loads[load]
        elapsed_s = figures["elapsed_s"]
        clients = figures["clients"]
        return {
            "hog": figures["hogs"]["cpu_mean_s"] / elapsed_s if "hogs" in figures else 0.0,
            "server": clients["server_cpu_s"] / elapsed_s,
            "clients": sum(clients["cpu_s"]) / elapsed_s,
        }


def trade(replayed: Replayed, options: str, *loads: str, prefix: str = ONE_CPU) -> Run:
    """Runs scx_load with the options of each of `loads`, one load after the other, under
    scx_economy with `options`. Checks that no money was created or lost."""
    commands = "\n".join(prefix + scx_load(load) for load in loads)
    script = SCRIPT.replace("SCHEDULER", f"scx_economy {options}").replace("LOADS", commands)
    printed = replayed(script)
    assert "enabled" in printed.splitlines(), printed
    figures = re.findall(r"^\{.*?^\}", printed, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^economy_(\w+) +(-?\d+)$", printed, re.MULTILINE)
    totals = {name: int(value) for name, value in lines}
    run = Run([json.loads(text) for text in figures], totals)
    print(options, [run.share(i) for i in range(len(loads))], totals)
    assert totals["nr_audits"] > 0
    assert totals["money_error_ns"] == 0
    return run


def terminals(seconds: float, clients: int = CLIENTS) -> str:
    """The options of the load of hogs and clients. By default, a request takes 1.5 times as much
    CPU time of the client as of the server."""
    return f"--hogs {HOGS} --clients {clients} --seconds {seconds}"


def test_server_gets_what_its_clients_give_up(replayed: Replayed) -> None:
    """T1 and T3: the example with payments, compared with the example without payments."""
    off = trade(replayed, "--economy off", terminals(3)).share()
    # The run with payments is longer, because clients cannot pay before they have used CPU time.
    on = trade(replayed, "", terminals(6))
    # Without payments, the server gets about the same share as a hog.
    assert off["server"] == pytest.approx(off["hog"], rel=0.02)
    assert on.share()["server"] >= 1.4 * off["server"]
    # The hogs keep their fair share, although server and clients together get more than without
    # payments.
    fair = 1 / (HOGS + CLIENTS + 1)
    assert on.share()["hog"] >= 0.99 * fair
    # More than three quarters of the messages are paid for, and more than three quarters of the
    # money arrives. The rest of the money is in accounts, or was in accounts that were closed
    # before all messages were read.
    assert on.totals["nr_pay"] > 0.75 * on.loads[0]["clients"]["requests"]
    assert on.totals["withdrawn_ns"] > 0.75 * on.totals["paid_ns"]
    assert on.totals["paid_ns"] == (
        on.totals["withdrawn_ns"] + on.totals["closed_ns"] + on.totals["balance_ns"]
    )


def test_server_share_grows_with_the_number_of_clients(replayed: Replayed) -> None:
    """T2: with more clients, the server's share does not fall. Server and clients together get at
    most the sum of their fair shares."""
    counts = (1, 2, 4, 8)
    work = "--client-waits --client-work-us 100"
    run = trade(replayed, "", *(f"{terminals(2, count)} {work}" for count in counts))
    shares = [run.share(i) for i in range(len(counts))]
    servers = [share["server"] for share in shares]
    assert servers == sorted(servers)
    for count, share in zip(counts, shares, strict=True):
        fair = 1 / (HOGS + count + 1)
        assert share["server"] + share["clients"] <= 1.02 * fair * (count + 1)
        assert share["hog"] >= 0.98 * fair


@pytest.mark.parametrize(
    "work",
    [
        "--client-work-us 0 --server-work-us 0",
        "--client-work-us 0 --server-work-us 20000",
    ],
    ids=["flood", "greedy-server"],
)
def test_hogs_never_get_less_than_their_share(replayed: Replayed, work: str) -> None:
    """T7: hogs keep their share beside a flood of messages, and beside a server that computes for
    long."""
    share = trade(replayed, "", f"{terminals(2)} {work}").share()
    assert share["hog"] >= 0.98 / (HOGS + CLIENTS + 1)


def test_debts_of_clients_are_not_forgiven(replayed: Replayed) -> None:
    """T7: 40 clients of weight 1 cannot pay more than they earn. Together, they have less than half
    of the weight of a hog."""
    load = f"--hogs {HOGS} --hog-nices 0 --clients 40 --client-work-us 0 --seconds 2"
    run = trade(replayed, "", load, prefix=f"{ONE_CPU} nice -n 19 ")
    # The server has the same weight as each client.
    assert run.share()["hog"] >= 0.97 * 100 / (HOGS * 100 + 41)


def test_clients_do_not_starve(replayed: Replayed) -> None:
    """T6: a client that pays more for its messages than it earns owes at most two slices. So it
    waits for at most three turns (TURN_MS): its own turn and two more. Usually it waits for less
    than two turns. The reserve (--reserve-us) is the CPU time that a client keeps when it pays.
    Without a reserve, the client waits longer.

    The longest waits are at the start of a load: the messages of a client are free until the server
    has read one, so all clients begin to pay at about the same time. The length of these waits
    depends on the order in which the clients run, hence five starts, and their median."""
    load = f"{terminals(0.4)} --client-work-us 300 --server-work-us 20"
    kept, bare = (
        [one["clients"]["gap_max_ms"] for one in trade(replayed, options, *[load] * 5).loads]
        for options in ("--price-us 1000", "--price-us 1000 --reserve-us 0")
    )
    print(f"longest waits {kept} ms, without a reserve {bare} ms")
    assert max(kept) <= 3 * TURN_MS
    assert median(kept) <= 2 * TURN_MS
    assert median(bare) > median(kept) + SLICE_MS


def test_requests_are_answered_sooner(replayed: Replayed) -> None:
    """Beside hogs, clients that pay get their replies sooner than clients that do not pay."""
    load = f"{terminals(3)} --client-waits --client-work-us 20"
    off, on = (
        trade(replayed, options, load).loads[0]["clients"] for options in ("--economy off", "")
    )
    assert on["latency_p50_ms"] < off["latency_p50_ms"]
    assert on["requests"] > 1.3 * off["requests"]


def test_compositor_misses_fewer_frames(replayed: Replayed) -> None:
    """T10: ten clients at 60 Hz and their server, beside five hogs. The price of a message is close
    to the CPU time that the server uses for the message."""
    load = (
        f"--hogs {HOGS} --clients 10 --client-period-us 16667 --client-work-us 100 "
        "--server-work-us 400 --seconds 3"
    )
    off, on = (
        trade(replayed, options, load).loads[0]["clients"]
        for options in ("--economy off", "--price-us 300")
    )
    assert on["missed"] / on["requests"] < 0.5 * off["missed"] / off["requests"]
    assert on["requests"] > 1.1 * off["requests"]


def test_messages_cost_little(replayed: Replayed) -> None:
    """T5: a client and a server do nothing but exchange messages on one CPU. In a deterministic
    guest, an instruction takes 1 ns, so the rate of round trips shows their cost: about 29,000
    instructions each. Messages are free unless CPU time is scarce. In the second pair of runs, hogs
    on another CPU make it scarce. As the emulator runs the two CPUs in turn, a round trip then
    takes twice as long."""
    load = "--hogs 0 --clients 1 --client-waits --client-work-us 0 --server-work-us 0 --seconds 0.3"
    hogs = f"taskset 1 {scx_load('--hogs 2 --seconds 0.35')} >/dev/null & {ONE_CPU}"
    by_load = [
        [trade(replayed, options, load, prefix=prefix) for options in ("--economy off", on)]
        for prefix, on in ((ONE_CPU, ""), (hogs, "--two-way"))
    ]
    counts = [[run.loads[0]["clients"]["requests"] for run in runs] for runs in by_load]
    free, paid = (off / on - 1 for off, on in counts)
    print(f"{counts}: {free:.4f} more instructions, {paid:.4f} if both ends pay")
    assert by_load[0][1].totals["nr_pay"] == 0
    assert free < 0.03
    assert by_load[1][1].totals["nr_pay"] > 1.9 * counts[1][1]
    assert paid < 0.1


def test_rich_server_does_not_monopolize_the_cpu(replayed: Replayed) -> None:
    """T8: a server that was stopped while its clients paid runs for at most its maximum lag (30 ms)
    plus two slices before another task runs."""
    command = ONE_CPU + scx_load(f"{terminals(60)} --client-work-us 50")
    load = f"""sh -c '{command} & load=$!
        sleep 0.3; server=$(pidof scx_load | tr " " "\\n" | grep -v "^$load$" | head -n 1)
        kill -STOP $server; sleep 1; kill -CONT $server
        trap "kill -INT $load" INT; wait $load; wait $load'"""
    runs = record_runs(replayed, "scx_economy", load, "scx_load", seconds=2)
    longest_ms = max(run["ran_ns"] for run in runs) / 1e6
    print(longest_ms, len(runs))
    assert len(runs) > 20
    assert longest_ms <= 30 + 2 * SLICE_MS


#: A task of nice 19 holds a PI mutex for 5 ms of CPU time in each of six rounds, beside hogs.
LOAN = """
SCHEDULER 2>/dev/null & scheduler=$!
until [ "$(cat /sys/kernel/sched_ext/state)" = enabled ]; do
    kill -0 $scheduler || exit 1
    sleep 0.1
done
taskset 2 HOGS >/dev/null & hogs=$!
sleep 0.3
taskset 2 scx_pi 19 5 6
kill -INT $hogs
wait $hogs
sleep 0.1
scxstats | grep -E 'loan|lent|error|audits'
kill -INT $scheduler
wait $scheduler
"""


def test_waiter_lends_to_the_owner_of_a_pi_futex(replayed: Replayed) -> None:
    """T9: with a loan, the owner ends its critical section of 5 ms at most two slices late,
    although its weight is small."""
    hogs = scx_load(f"--hogs {HOGS} --seconds 600")
    waits = []
    for options in ("", "--futex --futex-price-us 6000"):
        script = LOAN.replace("SCHEDULER", f"scx_economy {options}").replace("HOGS", hogs)
        printed = replayed(script)
        print(printed)
        assert re.search(r"money_error_ns +0$", printed, re.MULTILINE)
        assert re.search(r"nr_audits +[1-9]", printed)
        waits.append([float(ms) for ms in re.findall(r"^\d+\.\d\d$", printed, re.MULTILINE)])
    off, on = waits
    assert len(off) == len(on) == 6
    # Compare the longest waits: in some rounds, the owner ends its critical section before the
    # waiter runs.
    assert max(on) <= 5 + 2 * SLICE_MS
    assert max(off) > 10 * max(on)


#: A pipeline in which the reader works more than the writer. Prints how many lines the reader has
#: processed in 2 s. The file is empty while the reader writes it.
PIPELINE = """
work() { i=0; while [ $i -lt $1 ]; do i=$((i + 1)); done; }
write() { while :; do work 60; echo; done; }
read_all() { n=0; while read x; do work 100; n=$((n + 1)); echo $n >/tmp/done; done; }
write | read_all & sleep 2
n=; while [ -z "$n" ]; do read n </tmp/done; done; echo $n
kill $!
"""


def test_writers_of_pipes_pay_with_pipes(replayed: Replayed) -> None:
    """With --pipes, the reader of a pipe gets more CPU time beside hogs, because the writer
    pays."""
    done = []
    for options in ("", "--pipes --price-us 250"):
        hogs = scx_load(f"--hogs {HOGS} --seconds 3")
        loads = f"taskset 2 {hogs} >/dev/null & hogs=$!\ntaskset 2 sh -c '{PIPELINE}'\nwait $hogs"
        script = SCRIPT.replace("SCHEDULER", f"scx_economy {options}").replace("LOADS", loads)
        printed = replayed(script)
        print(printed)
        assert re.search(r"money_error_ns +0$", printed, re.MULTILINE)
        assert re.search(r"nr_audits +[1-9]", printed)
        found = re.search(r"^economy_nr_pay +(\d+)$", printed, re.MULTILINE)
        assert found
        done.append((int(found[1]), int(re.findall(r"^(\d+)$", printed, re.MULTILINE)[0])))
    (_, without), (paid, with_pipes) = done
    assert paid > 100
    assert with_pipes > 1.1 * without


#: Prints the PIDs of the servers of all loads. The pattern does not match this command itself.
SERVERS = (
    "for process in /proc/[0-9]*; do "
    "grep -qsz -- '^--serve[r]$' $process/cmdline && echo ${process#/proc/}; done; true"
)


def servers(guest: Guest) -> list[str]:
    return guest.run(SERVERS, is_urgent=True).check().stdout.split()


def audited(guest: Guest) -> dict[str, int]:
    """The totals of the first reading in which nr_audits has grown."""
    seen = [total(guest)]

    def is_audited() -> bool:
        seen.append(total(guest))
        return seen[-1]["nr_audits"] > seen[-2]["nr_audits"]

    wait_for("an audit", is_audited)
    return seen[-1]


def test_no_money_is_created_or_lost(guest: Guest, start: Start, load: Load) -> None:
    """T4: the sum of all money stays zero while servers and clients are killed, processes are
    forked, and nice values, cgroups, classes and affinities change."""
    start("scx_economy", "--pipes", "--futex", "--two-way").wait_enabled()
    wait_served(guest)
    mixed = load("--hogs", "6", "--sleepers", "20", "--pipes", "4", "--forks-per-s", "40")
    clients = load("--hogs", "2", "--clients", "4")
    wait_for("clients pay", lambda: total(guest)["nr_withdraw"] > 0)
    tasks = " ".join(f"/proc/{one.pid}/task/*" for one in (mixed, clients))
    # Some tasks end before the loop reaches them.
    each = f"for task in {tasks}; do task=${{task##*/}}; CHANGE && echo ok; done 2>&1; true"
    group = "/sys/fs/cgroup/economy"
    guest.run(f"echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; mkdir {group}").check()
    for change in (
        "renice -n 5 $task",
        f"echo $task >{group}/cgroup.procs",
        "chrt -b -p 0 $task && chrt -f -p 1 $task && chrt -o -p 0 $task",
        "taskset -p 1 $task >/dev/null && taskset -p f $task",
    ):
        done = guest.run(each.replace("CHANGE", change), is_urgent=True).check().stdout
        assert done.splitlines().count("ok") > 20, done
    guest.run(["kill", "-KILL", *servers(guest)], is_urgent=True).check()
    wait_for("clients fail", lambda: not clients.running())
    killed = load("--hogs", "0", "--clients", "4")
    wait_for("the server runs", lambda: servers(guest))
    killed.signal(signal.SIGKILL)
    killed.wait(60)
    end_load(mixed)
    guest.run(f"rmdir {group}; true").check()
    wait_for("servers end", lambda: not servers(guest))
    totals = audited(guest)
    print(totals)
    assert totals["money_error_ns"] == 0
    assert totals["nr_pay"] > 0


@STOPS_FAIR_SERVER_TWICE
def test_hotplug_under_load_loses_no_task(
    guest: Guest, start: Start, load: Load, set_cpu: SetCpu
) -> None:
    """T4: restarts because of CPU hotplug neither create nor lose money."""
    scheduler = start("scx_economy").wait_enabled()
    mixed = load("--hogs", "6", "--sleepers", "20", "--pipes", "1", "--clients", "4")
    for change in range(2):
        set_cpu(1, bool(change))
        restarts = change + 1
        wait_for(
            f"restart {restarts}",
            lambda n=restarts: scheduler.process.stderr().count("restarting") >= n,
        )
        scheduler.wait_enabled()
    wait_served(guest)
    wait_for("clients pay", lambda: total(guest)["nr_withdraw"] > 0)
    end_load(mixed)
    assert audited(guest)["money_error_ns"] == 0
    assert scheduler.end(signal.SIGINT) == 0


def test_explains_who_pays(guest: Guest, start: Start, load: Load) -> None:
    start("scx_economy").wait_enabled()
    wait_served(guest)
    clients = load("--hogs", "0", "--clients", "2")
    wait_for("the server runs", lambda: servers(guest))
    (server,) = servers(guest)

    def explained() -> str:
        return guest.run(["scx_economy", "--explain", server], is_urgent=True).check().stdout

    wait_for("clients pay", lambda: f"(PID {clients.pid}) has paid last" in explained())
    text = explained()
    print(text)
    assert text.startswith(f"scx_load (PID {server}) has had ")
    line = r"^  \S+ \(PID \d+\) has paid last over a socket: [\d.]+ ms in total"
    assert len(re.findall(line, text, re.M)) == 2
    missing = guest.run(["scx_economy", "--explain", "999999"])
    assert missing.status == 1
    assert missing.stderr == "scx_economy: there is no task 999999 under this scheduler\n"


def test_off_attaches_no_program(guest: Guest, start: Start, load: Load) -> None:
    """Without payments, sending a message has no overhead."""
    start("scx_economy", "--economy", "off").wait_enabled()
    wait_served(guest)
    load("--hogs", "0", "--clients", "2")
    wait_for("the server runs", lambda: servers(guest))
    listed = read(guest, "/proc/kallsyms")
    assert "economy_enqueue" in listed
    assert "economy_stream_send" not in listed
    assert total(guest)["nr_pay"] == 0
