# SPDX-License-Identifier: GPL-2.0-only
"""`./dev test --changed`: print the tests that a change affects, for ./dev.

The change is the difference from a commit, including untracked files. Output: a line for each
suite of `meson test`, then a line for each argument of pytest, if tests outside these suites are
affected.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import built, tests

_ROOT = Path(__file__).parents[2]
#: Prefixes of the files that affect all programs. Each file meson.build in a subdirectory affects
#: all programs, too.
_OF_ALL = ("meson.build", "meson_options.txt", "Cargo.lock", "Cargo.toml", "build-aux/")
#: Suffixes of files that affect no program. After a change of such a file, only lint and the tests
#: that read the file run.
_TEXT = (".md", ".gitignore")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status: 1 if git or ninja fails."""
    parser = argparse.ArgumentParser(prog="changed", description=__doc__)
    parser.add_argument("commit", help="compare with this commit")
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("SCX_BUILD", "build")))
    options = parser.parse_args(arguments)
    try:
        names = _differing(options.commit)
        print(*_plan(names, built.programs(options.build.resolve())), sep="\n")
    except subprocess.CalledProcessError as error:
        print(f"changed: {(error.stderr or str(error)).strip()}", file=sys.stderr)
        return 1
    return 0


def _differing(commit: str) -> list[str]:
    """Changed files, relative to the root of the tree. Raises CalledProcessError."""
    queries = (
        ["diff", "--name-only", "-z", commit, "--"],
        ["ls-files", "--others", "--exclude-standard", "-z"],
    )
    found: set[str] = set()
    for query in queries:
        command = ["git", "-C", str(_ROOT), *query]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found |= {name for name in done.stdout.split("\0") if name}
    return sorted(found)


def _plan(names: Sequence[str], programs: dict[str, set[Path]]) -> list[str]:
    """Suites, and arguments of pytest."""
    code = [name for name in names if not name.endswith(_TEXT)]
    suites = ["lint"] * bool(names) + ["unit"] * bool(code)
    changed = {_ROOT / name for name in names}
    of_all = any(name.startswith(_OF_ALL) or name.endswith("/meson.build") for name in code)
    hit = sorted(name for name, files in programs.items() if of_all or files & changed)
    files = tests.affected(_ROOT, changed, hit)
    print(f"changed: {len(names)} files; programs: {', '.join(hit) or 'none'}", file=sys.stderr)
    # If code has changed, the suite `unit` runs. It includes the tests in tests/unit that read a
    # changed document, so leave them out here.
    readers = [f for f in tests.readers(_ROOT, changed) if not code or f.parent.name != "unit"]
    arguments = [str(file.relative_to(_ROOT)) for file in (*readers, *files)]
    # Of the tests that are parametrized by schedulers, run only those of the affected programs,
    # unless the change affects tests in another way, too.
    if files and hit and not tests.affected(_ROOT, changed, ()):
        arguments.append("--programs=" + ",".join(hit))
    return suites + arguments


if __name__ == "__main__":
    sys.exit(main())
