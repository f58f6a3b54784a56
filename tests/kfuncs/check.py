# SPDX-License-Identifier: GPL-2.0-only
"""Compare the library's kfunc declarations with the BTF of each kernel at hand.

`check.py SCX_BTFCHECK OBJECT`: at hand is what earlier runs left in the cache and
what SCX_VM_KERNELS holds; nothing is fetched. Prints TAP.

A weak declaration with a misspelt name binds nowhere and breaks nothing, so each
must be found somewhere: the names of the past, which end in ___old, in the list
of Linux 6.12's, the others in a kernel at hand, as long as one knows all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vm import btf, kernels

NAMES_6_12 = frozenset((Path(__file__).parent / "names-6.12.txt").read_text().split())
#: Kernels of this series know every name and every prototype that is not old.
KNOWS_ALL = (7, 2)


def sound_btf(kernel: kernels.Kernel) -> Path | None:
    """The kernel's BTF; None, with a note, if there is none to compare with."""
    try:
        path = kernels.btf(kernel)
        if btf.is_sound(path.read_bytes()):
            return path
        reason = "its BTF is damaged"
    except (kernels.KernelError, ValueError) as error:
        reason = str(error)
    print(f"# without Linux {kernel.release}: {reason}")
    return None


def at_hand() -> dict[str, tuple[kernels.Kernel, Path]]:
    """The kernels to compare with and their BTF, one for each release."""
    found: dict[str, tuple[kernels.Kernel, Path]] = {}
    for kernel in kernels.local():
        path = None if kernel.release in found else sound_btf(kernel)
        if path:
            found[kernel.release] = (kernel, path)
    return found


def misspelt(extern: dict[str, Any], knows_all: bool) -> Iterator[str]:
    """Findings about a name that no kernel seems to have."""
    if extern["binding"] != "weak":
        return
    if extern["name"].endswith("___old"):
        if extern["lookup"] not in NAMES_6_12:
            yield "not a name of Linux 6.12"
    elif knows_all and all(kernel["status"] != "ok" for kernel in extern["kernels"].values()):
        yield "binds on no kernel"


def report(externs: list[dict[str, Any]], knows_all: bool) -> int:
    """Print a test point for each extern; the number of those that failed."""
    failed = 0
    print(f"1..{len(externs)}")
    for number, extern in enumerate(externs, 1):
        findings = [*extern["findings"], *misspelt(extern, knows_all)]
        failed += bool(findings)
        print(f"{'not ok' if findings else 'ok'} {number} - {extern['name']}")
        for finding in findings:
            print(f"# {extern['name']}: {finding}")
    return failed


def main() -> None:
    program, obj = sys.argv[1:]
    try:
        found = at_hand()
    except kernels.KernelError as error:
        print(f"1..0 # SKIP {error}")
        return
    if not found:
        print("1..0 # SKIP no kernel at hand: ./dev setup fetches some")
        return
    args = [arg for release, (_, path) in found.items() for arg in ("--btf", f"{release}={path}")]
    done = subprocess.run([program, "--json", *args, obj], stdout=subprocess.PIPE, check=False)
    if done.returncode not in {0, 1}:
        sys.exit(done.returncode)
    knows_all = any(kernel.version[:2] == KNOWS_ALL for kernel, _ in found.values())
    sys.exit(report(json.loads(done.stdout)["externs"], knows_all) > 0)


if __name__ == "__main__":
    main()
