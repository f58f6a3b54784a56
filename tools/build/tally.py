# SPDX-License-Identifier: GPL-2.0-only
"""Sum up a meson test run: what failed, what was skipped and why, and one last line
`N passed, N failed, N skipped`. Exit status 1 if anything failed or nothing ran."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def _reason(case: ET.Element) -> str:
    """Why a test was skipped, as far as its output tells."""
    note = case.find("skipped")
    text = (note.get("message") or note.text or "") if note is not None else ""
    if not text:
        lines = (case.findtext("system-out") or "").strip().splitlines()
        text = lines[-1] if lines else "no reason given"
    return text.removeprefix("skipped: ")


def main() -> None:
    log = Path(sys.argv[1])
    if not log.exists():
        sys.exit("tally: no test was run")
    passed, failed, skipped = 0, [], []
    for suite in ET.parse(log).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = f"{suite.get('name')}: {case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(name)
            elif case.find("skipped") is not None:
                skipped.append(f"{name}: {_reason(case)}")
            else:
                passed += 1
    for name in skipped:
        print(f"skipped: {name}")
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
