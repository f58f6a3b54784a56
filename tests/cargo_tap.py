# SPDX-License-Identifier: GPL-2.0-only
"""Run the workspace's cargo tests and report each as a line of TAP.

Called by `meson test` with the options of build-aux/cargo.py, so that the tests
use the crates that the build has compiled.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "build-aux"))
import cargo  # noqa: E402

RESULT = re.compile(r"^test (.+?) \.\.\. (ok|FAILED|ignored)(?:, (.*))?$")


def _report(number: int, name: str, outcome: str, reason: str | None) -> None:
    if outcome == "ignored":
        print(f"ok {number} - {name} # SKIP {reason or 'ignored'}", flush=True)
    else:
        print(f"{'ok' if outcome == 'ok' else 'not ok'} {number} - {name}", flush=True)


def main() -> None:
    args = cargo.parser(__doc__).parse_args()
    command = cargo.command(args, "test", ["--workspace"]) + ["--no-fail-fast"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        cwd=args.manifest.parent,
        env=cargo.environment(args),
    )
    number = failed = 0
    for line in process.stdout or []:
        if match := RESULT.match(line.rstrip()):
            number += 1
            failed += match[2] == "FAILED"
            _report(number, match[1], match[2], match[3])
        else:
            print(f"# {line.rstrip()}")
    print(f"1..{number}")
    # cargo failed although no test did, for example because a crate does not build.
    if process.wait() and not failed:
        print("Bail out! cargo test failed")
        sys.exit(1)


if __name__ == "__main__":
    os.environ.setdefault("CARGO_TERM_COLOR", "never")
    cargo.main(main)
