# SPDX-License-Identifier: GPL-2.0-only
"""Compile sources for another architecture, and report each in a line of TAP.

`compile.py [--like DATABASE] SOURCE… -- COMPILER FLAG…`: --like adds the flags that the build
uses for a source, from its compile_commands.json.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

#: For each source: the working directory, and the compiler's arguments, including `-c SOURCE`, but
#: without those in OUTPUTS.
Flags = dict[Path, tuple[Path, list[str]]]

#: Flags that request or name output files, and the number of words of each.
OUTPUTS = {"-MD": 1, "-MQ": 2, "-MF": 2, "-o": 2}


def _without_outputs(words: list[str]) -> list[str]:
    kept = []
    while words:
        taken = OUTPUTS.get(words[0], 0)
        if not taken:
            kept.append(words[0])
        words = words[taken or 1 :]
    return kept


def _read(database: Path) -> Flags:
    flags = {}
    for entry in json.loads(database.read_text()):
        folder = Path(entry["directory"])
        words = shlex.split(entry["command"])[1:]
        flags[(folder / entry["file"]).resolve()] = (folder, _without_outputs(words))
    return flags


def _has_libc(compiler: list[str]) -> bool:
    command = [*compiler, "-fsyntax-only", "-include", "stdio.h", "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True).returncode == 0


def _compile(number: int, source: Path, compiler: list[str], flags: Flags) -> None:
    folder, rest = flags[source.resolve()]
    with tempfile.TemporaryDirectory() as tmp:
        command = [*compiler, *rest, "-o", f"{tmp}/object"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(f"{'not ok' if done.returncode else 'ok'} {number} - {source.name}", flush=True)
    for line in done.stderr.splitlines():
        print(f"# {line}")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--like", type=Path, help="compile_commands.json of the build")
    p.add_argument("sources", type=Path, nargs="+")
    split = sys.argv.index("--")
    args, compiler = p.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    if not shutil.which(compiler[0]):
        print(f"1..0 # SKIP {compiler[0]} is not installed")
        return
    if args.like and not _has_libc(compiler):
        print(f"1..0 # SKIP {compiler[0]} has no C library")
        return
    if args.like:
        flags = _read(args.like)
    else:
        flags = {s.resolve(): (Path.cwd(), ["-c", str(s)]) for s in args.sources}
    print(f"1..{len(args.sources)}")
    for number, source in enumerate(args.sources, 1):
        _compile(number, source, compiler, flags)


if __name__ == "__main__":
    main()
