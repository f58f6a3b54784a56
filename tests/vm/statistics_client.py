# SPDX-License-Identifier: GPL-2.0-only
"""Statistics of a running scheduler, read by an independent client
(tests/clients/scx_stats_client.c)."""

from __future__ import annotations

import json

from sched_ext import wait_for
from vm.guest import Guest

SOCKET = "/var/run/scx/root/stats"
STATS = '{"req":"stats","args":{"target":"top"}}'
TOTAL = '{"req":"stats","args":{"total":"true"}}'
META = '{"req":"stats_meta"}'


def ask(guest: Guest, *requests: str, user: str = "root") -> list[dict]:
    """The scheduler's answers over one connection."""
    command = ["scx_stats_client", SOCKET, "ask", *requests]
    done = guest.run(command, user=user, is_urgent=True).check()
    return [json.loads(line) for line in done.stdout.splitlines()]


def wait_served(guest: Guest) -> None:
    """Waits until the scheduler serves statistics. It does not suffice that the socket exists: a
    killed scheduler leaves its socket behind."""
    question = ["scx_stats_client", SOCKET, "ask", META]
    wait_for("statistics are served", lambda: guest.run(question, is_urgent=True).ok)


def payload(answer: dict) -> dict:
    assert answer["errno"] == 0, answer
    return answer["args"]["resp"]


def total(guest: Guest) -> dict:
    """The totals since the scheduler's start."""
    return payload(ask(guest, TOTAL)[0])
