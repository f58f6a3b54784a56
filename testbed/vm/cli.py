# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the testbed's command lines."""

from __future__ import annotations

import sys


class UsageError(Exception):
    """The command line is invalid; the text is one line for the user."""


def complain(program: str, error: Exception, status: int) -> int:
    """Print on standard error why `program` fails; returns `status`."""
    print(f"{program}: {error}", file=sys.stderr)
    return status
