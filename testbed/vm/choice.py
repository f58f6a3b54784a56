# SPDX-License-Identifier: GPL-2.0-only
"""Selects the kernels of a test run.

    python3 -m vm.choice FILE WANTED [ARGUMENT…]

FILE lists the tested series, newest first; WANTED is `all`, `default` or a comma-separated list;
the arguments are those of `meson test`. Prints the selected series, one per line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from . import kernel_build
from .kernels import KernelError


class ChoiceError(Exception):
    """A kernel that is not tested; the text is one line for the user."""


def choose(
    wanted: str,
    tested: Sequence[str],
    to_build: Callable[[str], bool],
    arguments: Iterable[str] = (),
) -> list[str]:
    """Selects from the `tested` series.

    If `arguments` name tests or suites of certain series, these series are selected. Otherwise,
    `default` selects the newest series, and the oldest series that needs no build. Raises
    ChoiceError.
    """
    named = {
        argument.rpartition(":")[2].removeprefix("kernel-").removeprefix("topologies-")
        for argument in arguments
    }
    asked_for = [s for s in tested if any(n == s or n.startswith(f"{s}-") for n in named)]
    if asked_for:
        return asked_for
    if wanted == "all":
        return list(tested)
    if wanted == "default":
        oldest = next((s for s in reversed(tested) if not to_build(s)), tested[0])
        return [s for s in tested if s in {tested[0], oldest}]
    listed = wanted.split(",")
    for series in listed:
        if series not in tested:
            known = ", ".join(tested)
            raise ChoiceError(f"'{series}' is not tested: give all, default, or some of {known}")
    return [s for s in tested if s in listed]


def main(arguments: Sequence[str]) -> int:
    """Prints the selected series. Returns the exit status."""
    file, wanted, *rest = arguments
    tested = Path(file).read_text().split()
    try:
        print("\n".join(choose(wanted, tested, kernel_build.needed, rest)))
    except (ChoiceError, KernelError) as error:
        print(f"dev: --kernels {wanted}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
