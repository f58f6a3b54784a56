# SPDX-License-Identifier: GPL-2.0-only
"""What the command lines of the testbed have in common."""

from __future__ import annotations

import sys


class UsageError(Exception):
    """An option has a value that makes no sense; one line for the user."""


def complain(program: str, error: Exception, status: int) -> int:
    """Say on standard error why `program` ends with `status`, which is returned."""
    print(f"{program}: {error}", file=sys.stderr)
    return status
