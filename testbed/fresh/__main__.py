# SPDX-License-Identifier: GPL-2.0-only
"""`./dev test --fresh`: the README's two commands in a new minimal root file system of each suite.

The last commit is cloned into it, and `./dev run` and `./dev test` run there as on a fresh machine.
Only the log is kept.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import debs
from roots import root, suites

#: The commands of README.md, with `--yes` in place of answers. Without `--for`, the first command
#: would run without a limit.
COMMANDS = ("./dev run --yes --for 20", "./dev test --yes")
#: Time limit of a command.
LIMIT_S = 3 * 3600
#: Prefix of the line by which the script reports the exit of a command.
MARK = "fresh-root:"

_TREE = Path(__file__).parents[2]

_SCRIPT = """\
#!/bin/sh
export HOME=/root
cd /root
update-ca-certificates >/dev/null 2>&1
git clone --quiet -c advice.detachedHead=false scx.bundle scx && cd scx || exit
try() {{
	began=$(date +%s)
	timeout --kill-after 60 {limit_s} sh -c "$1" </dev/null 2>&1
	echo "{mark} $? $(($(date +%s) - began)) $1"
}}
{commands}
"""


class FreshError(Exception):
    """Nothing can be run in a root. The text is one line for the user."""


@dataclass(frozen=True)
class Outcome:
    """The result of a command in a root."""

    status: int
    elapsed_s: int
    command: str
    #: The last line of the command's output.
    last_line: str

    def __str__(self) -> str:
        ended = "passed" if self.status == 0 else f"status {self.status}"
        return f"{self.command}: {ended}, {self.elapsed_s} s: {self.last_line}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status: 0, or 1 if something failed."""
    options = _parser().parse_args(arguments)
    try:
        wanted = options.suite or suites.default()
        reason = root.why_impossible()
        if reason:
            print(f"skipped: {reason}")
            return 0
        failed = [name for name in wanted if not _check(name, options)]
    except (FreshError, debs.DebsError, suites.SuiteError) as error:
        print(f"fresh: {error}", file=sys.stderr)
        return 1
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev test --fresh", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "suite",
        nargs="*",
        metavar="SUITE",
        help="code names, such as bookworm (default: Debian 12 and 13, and Ubuntu's latest LTS)",
    )
    parser.add_argument(
        "--command",
        action="append",
        metavar="COMMAND",
        help=f"instead of {' and '.join(map(repr, COMMANDS))}; may be repeated",
    )
    parser.add_argument("--log", type=Path, metavar="DIR", help="keep the logs here")
    return parser


def _check(name: str, options: argparse.Namespace) -> bool:
    """Run all commands in a root of the suite, and print each result. Returns False if a step
    failed. A suite of Ubuntu is skipped if the keys of its archive are not available."""
    try:
        suite = suites.find(name)
    except suites.SuiteError as error:
        print(f"{name}: skipped: {error}")
        return True
    commands = options.command or COMMANDS
    folder = options.log or Path(tempfile.gettempdir())
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"fresh-{name}-{time.strftime('%Y%m%d-%H%M%S')}.log"
    print(f"{name}: log {log}", flush=True)
    outcomes = []
    for outcome in _run(suite, commands, log):
        print(f"{name}: {outcome}", flush=True)
        outcomes.append(outcome)
    if len(outcomes) < len(commands):
        print(f"{name}: creating the root or cloning failed", flush=True)
    return len(outcomes) == len(commands) and not any(outcome.status for outcome in outcomes)


def _run(suite: suites.Suite, commands: Sequence[str], log: Path) -> Iterator[Outcome]:
    """Create the root, run the commands in it, and yield the results."""
    with tempfile.TemporaryDirectory(prefix="scx-fresh-") as scratch:
        last_line = ""
        for line in root.run(suite, _work(commands, Path(scratch)), log):
            if line.startswith(MARK):
                status, elapsed_s, ran = line.removeprefix(MARK).strip().split(" ", 2)
                yield Outcome(int(status), int(elapsed_s), ran, last_line)
            elif line.strip():
                last_line = line.strip()


def _work(commands: Sequence[str], scratch: Path) -> root.Work:
    """The commands as a script in `scratch`, beside a git bundle of the tree."""
    bundle = scratch / "scx.bundle"
    git = ["git", "-C", str(_TREE), "bundle", "create", "--quiet", str(bundle), "HEAD"]
    if subprocess.run(git, check=False).returncode:
        raise FreshError("the last commit cannot be copied: git has reported why")
    script = scratch / "fresh"
    tries = "\n".join(f"try {shlex.quote(command)}" for command in commands)
    script.write_text(_SCRIPT.format(limit_s=LIMIT_S, mark=MARK, commands=tries))
    script.chmod(0o755)
    return root.Work(script, files=(bundle,), packages=("git", "ca-certificates"))


if __name__ == "__main__":
    sys.exit(main())
