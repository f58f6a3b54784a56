# SPDX-License-Identifier: GPL-2.0-only
"""Rules of this project that a program can check."""

import re
from collections.abc import Iterator
from pathlib import Path

import crates

LINE_MAX = 100
FILE_MAX = 800
#: Files that may be longer: a quoted text, and generated files.
LONG_FILES = {"LICENSE", "Cargo.lock", "docs/results/figures.json"}

C_FILES = (".c", ".h")
CODE = (*C_FILES, ".rs", ".py")


def _licence(name: str, text: str) -> Iterator[str]:
    if name.endswith((*C_FILES, ".py")) and "SPDX-License-Identifier: GPL-2.0-only" not in text:
        yield f"{name}: no SPDX-License-Identifier line"


def _length(name: str, text: str) -> Iterator[str]:
    lines = text.splitlines()
    if name not in LONG_FILES and len(lines) > FILE_MAX:
        yield f"{name}: {len(lines)} lines, more than {FILE_MAX}: split it by purpose"
    for number, line in enumerate(lines, 1):
        if name.endswith(CODE) and len(line.expandtabs(8)) > LINE_MAX:
            yield f"{name}:{number}: longer than {LINE_MAX} columns"


#: (files, forbidden pattern, reason)
BANNED = [
    (
        r"^(?!scheds/include/scx/time\.bpf\.h).*\.bpf\.[ch]$",
        r"\bbpf_ktime_get_ns\(",
        "use the clocks of time.bpf.h",
    ),
    (r"\.(bpf\.c|bpf\.h)$", r"LINUX_VERSION|KERNEL_VERSION", "kernels are probed by CO-RE"),
    (r"^scheds/include/", r'#include .*(runner/|"scx_)', "the library includes no scheduler"),
    (r"^scheds/.*\.bpf\.c$", r"bpf_ksym_exists", "kernel differences belong in compat.bpf.h"),
    (r"^scheds/.*\.bpf\.c$", r"___[a-z0-9]+\(", "call the wrapper of compat.bpf.h"),
    (r"^(scheds|testbed)/.*\.c$", r"\b(system|popen)\(", "children are started without a shell"),
    (r"\.md$", r"@[A-Z]+@", "a figure is missing"),
    (
        r"\.rs$",
        r"(?<!opened\.maps\.)\bdata_\w+_data\b",
        "BPF programs may write this memory once it is loaded: use scx_utils::bpf::Words",
    ),
    (r"\.rs$", r"\bctx_in\b.*\.as_ptr\(", "the kernel writes to ctx_in: use as_mut_ptr()"),
    # Comments may contain the word "unsafe".
    (
        r"^(?!rust/(scx_utils|scx_rustland_core)/|testbed/load/src/clock\.rs).*\.rs$",
        r"^(?!\s*//).*\bunsafe\b",
        "the crates have safe wrappers",
    ),
    (r"^(rust|scheds)/.*\.rs$", r"\b(ctrlc|signal_hook)::", "the runner handles signals"),
    (r"^(?!rust/scx_utils/).*\.rs$", r"\btracing_subscriber\b", "the runner sets up logging"),
    (r"^(?!rust/scx_utils/).*\.rs$", r"\bshould_restart\b", "the runner restarts schedulers"),
]


def _banned(name: str, text: str) -> Iterator[str]:
    for files, pattern, why in BANNED:
        if not re.search(files, name):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(pattern, line):
                yield f"{name}:{number}: {line.strip()}: {why}"


def _listed(root: Path, names: list[str]) -> Iterator[str]:
    """Every C scheduler is in Meson's list and the README, and has a man page."""
    meson = (root / "meson.build").read_text()
    readme = (root / "README.md").read_text()
    for name in names:
        if match := re.fullmatch(r"scheds/c/(scx_\w+)\.bpf\.c", name):
            if f"'{match[1]}'" not in meson:
                yield f"{name}: {match[1]} is missing from c_scheds in meson.build"
            if f"scheds/c/{match[1]}.8.in" not in names:
                yield f"{name}: no man page scheds/c/{match[1]}.8.in"
            if match[1] not in readme:
                yield f"{name}: README.md does not name {match[1]}"


def _versions(root: Path) -> Iterator[str]:
    meson = re.search(r"version: '(.+?)'", (root / "meson.build").read_text())
    rust = re.search(r'^version = "(.+?)"', (root / "Cargo.toml").read_text(), re.MULTILINE)
    if not meson or not rust or meson[1] != rust[1]:
        yield "meson.build and Cargo.toml name different versions"


def check(root: Path, names: list[str]) -> int:
    """Prints all findings. Returns 0 if there are none, else 1."""
    findings = [*_listed(root, names), *crates.check(root, names), *_versions(root)]
    for name in names:
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            continue
        for rule in (_licence, _length, _banned):
            findings += rule(name, text)
    print("\n".join(findings))
    return 1 if findings else 0
