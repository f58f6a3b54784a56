# SPDX-License-Identifier: GPL-2.0-only
"""Run one linter over the tree: `lint.py NAME` plus the options of build-aux/cargo.py.

Exit status 0 clean, 1 findings, 77 (skipped) when the tool is not installed.
`lint.py NAME --fix …` lets the formatters write.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build-aux"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import cargo  # noqa: E402
import tidy  # noqa: E402
import units  # noqa: E402

SKIPPED = 77
CLANG_FORMAT_MIN = 19
#: Crates and build output in an unpacked tarball, which are not part of the project.
FOREIGN = re.compile(r"(vendor|build(?!-aux)[^/]*|target)/")


def _sources(*patterns: str) -> list[str]:
    """Project files that match: files that git tracks or does not ignore. In a tarball, these are
    all files except FOREIGN."""
    if (ROOT / ".git").exists():
        git = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run([*git, "--", *patterns], check=True, capture_output=True, text=True)
        return [n for n in names.stdout.splitlines() if (ROOT / n).is_file()]
    files = [p.relative_to(ROOT) for pat in patterns for p in ROOT.rglob(pat) if p.is_file()]
    return [str(f) for f in files if not FOREIGN.match(str(f))]


def _tool(*names: str) -> str:
    """The first of these programs that is on PATH or was installed by build-aux/setup.sh. If there
    is none, exits with the status SKIPPED."""
    cache = os.environ.get("SCX_CACHE") or str(
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scx"
    )
    for name in names:
        if found := shutil.which(name) or shutil.which(name, path=f"{cache}/venv/bin"):
            return found
    print(f"skipped: {names[0]} is not installed")
    sys.exit(SKIPPED)


def _run(command: list[str], env: dict[str, str] | None = None) -> int:
    return 1 if subprocess.run(command, cwd=ROOT, env=env).returncode else 0


def _clang_format() -> str:
    """A clang-format that is recent enough, because older versions format differently. If there is
    none, exits with the status SKIPPED."""
    for name in ("clang-format", *(f"clang-format-{v}" for v in range(19, 30))):
        if found := shutil.which(name):
            text = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
            version = re.search(r"version (\d+)", text)
            if version and int(version[1]) >= CLANG_FORMAT_MIN:
                return found
    print(f"skipped: clang-format {CLANG_FORMAT_MIN} or newer is not installed")
    sys.exit(SKIPPED)


def clang_format(args, fix: bool) -> int:
    mode = ["-i"] if fix else ["--dry-run", "-Werror"]
    return _run([_clang_format(), *mode, *_sources("*.c", "*.h")])


def rustfmt(args, fix: bool) -> int:
    _tool("rustfmt")
    return _run([args.cargo, "fmt", "--all", *([] if fix else ["--check"])])


def clippy(args, fix: bool) -> int:
    _tool("cargo-clippy", "clippy-driver")
    command = cargo.command(args, "clippy", ["--workspace", "--all-targets"])
    return _run([*command, "--quiet", "--", "-D", "warnings"], cargo.environment(args))


def _is_shell_script(name: str) -> bool:
    with (ROOT / name).open("rb") as file:
        first = file.readline(64).rstrip()
    return first.startswith(b"#!") and first.endswith((b"sh", b"/openrc-run"))


def shellcheck(args, fix: bool) -> int:
    return _run([_tool("shellcheck"), *filter(_is_shell_script, _sources("*"))])


def ruff(args, fix: bool) -> int:
    return _run([_tool("ruff"), "check", "--quiet", *(["--fix"] if fix else []), "."])


def ruff_format(args, fix: bool) -> int:
    return _run([_tool("ruff"), "format", "--quiet", *([] if fix else ["--check", "--diff"]), "."])


LINTERS = {f.__name__.replace("_", "-"): f for f in (clang_format, rustfmt, clippy, ruff_format)}
LINTERS |= {"ruff": ruff, "shellcheck": shellcheck}
LINTERS["systemd-analyze"] = lambda args, fix: units.check(_tool("systemd-analyze"), args.unit)
LINTERS["tidy"] = lambda args, fix: tidy.check(ROOT, _sources("*"))


def main() -> None:
    p = cargo.parser(__doc__ or "")
    p.add_argument("linter", choices=sorted(LINTERS))
    p.add_argument("--fix", action="store_true", help="let the formatters write")
    p.add_argument("--unit", action="append", type=Path, default=[], help="for systemd-analyze")
    args = p.parse_args()
    sys.exit(LINTERS[args.linter](args, args.fix))


if __name__ == "__main__":
    main()
