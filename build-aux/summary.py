# SPDX-License-Identifier: GPL-2.0-only
"""Summarize a meson test run: the time of each suite, the slowest tests, skipped tests with
reasons, failed tests, and a last line `N passed, N failed, N skipped`. A suite that was killed
or ended early counts as a failed test. Exit status 1 if a test failed or none passed.

In the list of times, a suite is one test of Meson, such as 7.2-smp4, and a test is a test point in
its output."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

NR_SLOWEST = 10
#: Precedes the name of a test that begins, as printed by tests/conftest.py.
_BEGINS = "# begins: "
#: A test point of TAP, and its duration, as printed by tests/conftest.py.
_TOOK = re.compile(r"^(?:not )?ok \d+ - ([^#\n]*).*\n# took ([\d.]+) s$", re.MULTILINE)


def _reason(case: ET.Element) -> str:
    """Why a test was skipped, from its output."""
    note = case.find("skipped")
    text = (note.get("message") or note.text or "") if note is not None else ""
    if not text:
        lines = (case.findtext("system-out") or "").strip().splitlines()
        text = lines[-1] if lines else "no reason given"
    return text.removeprefix("skipped: ")


def _running(output: str) -> str | None:
    """The test that had begun, but had not ended, when the output ended."""
    for line in reversed(output.splitlines()):
        if line.startswith(_BEGINS):
            return line.removeprefix(_BEGINS)
        if line.startswith(("ok ", "not ok ")):
            return None
    return None


def _is_unfinished(result: str, output: str) -> bool:
    """Whether a suite was killed or ended early. Meson's result is ERROR in this case, but also
    after a test point that failed."""
    if result == "ERROR":
        return not re.search("^not ok ", output, re.MULTILINE) or "\nBail out!" in output
    return result in ("TIMEOUT", "INTERRUPT")


def unfinished(runs: list[dict]) -> list[str]:
    """A line for each suite that was killed or ended early, with the test that it was running.
    Meson reports only the test points that such a suite has printed."""
    lines = []
    for run in runs:
        output = run.get("stdout", "")
        if _is_unfinished(run["result"], output):
            test = _running(output)
            at = f"in {test}" if test else "outside its tests"
            lines.append(f"{run['name']}: {run['result']} after {run['duration']:.0f} s, {at}")
    return lines


def slowest(runs: list[dict]) -> list[str]:
    """A line for each suite, then a line for each of the slowest tests."""
    tests, suites = [], []
    for run in runs:
        suite = run["name"].rpartition(" / ")[2]
        suites.append((run["duration"], suite))
        tests += [
            (float(took_s), f"{suite}: {test.strip()}")
            for test, took_s in _TOOK.findall(run.get("stdout", ""))
        ]
    tests.sort(reverse=True)
    suites.sort(reverse=True)
    return [f"{took_s:7.1f} s  {name}" for took_s, name in [*suites, *tests[:NR_SLOWEST]]]


def main() -> None:
    log = Path(sys.argv[1])
    if not log.exists():
        sys.exit("no test was run")
    # A line of this file has the output of one of Meson's tests.
    runs = [json.loads(line) for line in log.with_name("testlog.json").read_text().splitlines()]
    print("Time of each suite, and the slowest tests:")
    for line in slowest(runs):
        print(line)
    passed, failed, skipped = 0, unfinished(runs), []
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
