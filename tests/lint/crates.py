# SPDX-License-Identifier: GPL-2.0-only
"""Rules for the packages of the workspace: allowed dependencies, files of a scheduler."""

import re
from collections.abc import Iterator
from pathlib import Path

#: (pattern of directories, packages of this tree on which the packages in these directories may
#: depend). The first matching pattern counts.
MAY_USE = [
    (r"rust/scx_stats/scx_stats_derive", set()),
    (r"rust/scx_stats", {"scx_stats_derive"}),
    (r"rust/scx_cargo", set()),
    (r"rust/scx_utils", {"scx_stats"}),
    (r"rust/scx_rustland_core", {"scx_cargo", "scx_stats", "scx_utils"}),
    # Schedulers, tools and testbed depend on no scheduler, and on nothing of the tests.
    (r"scheds/rust/\w+", {"scx_cargo", "scx_rustland_core", "scx_stats", "scx_utils"}),
    (r"tests/scheds/\w+", {"scx_cargo", "scx_rustland_core", "scx_stats", "scx_utils"}),
    (r"tools/scxctl", {"scx_loader", "scx_stats", "scx_utils"}),
    (r"tools/scxtop", {"scx_cargo", "scx_stats", "scx_utils"}),
    (r"tools/\w+", {"scx_stats", "scx_utils"}),
    (r"testbed/\w+", {"scx_cargo", "scx_stats", "scx_utils"}),
]

#: The files of each Rust scheduler.
SCHEDULER_FILES = ["src/main.rs", "src/opts.rs", "src/sched.rs"]
#: Further files of a scheduler with a policy in BPF, and of a scheduler with a policy in user
#: space.
BPF_FILES = ["src/stats.rs", "src/bpf/main.bpf.c"]
USER_FILES = ["src/policy.rs"]


def _dependencies(manifest: str) -> set[str]:
    """The names in all dependency tables."""
    tables = re.split(r"^\[", manifest, flags=re.MULTILINE)
    own = [table for table in tables if re.match(r"[^\]]*dependencies\]", table)]
    names = {n for table in own for n in re.findall(r"^([\w-]+)[ .=]", table, re.MULTILINE)}
    # Tables [dependencies.NAME], and renamed packages.
    names |= set(re.findall(r"^\[.*dependencies\.([\w-]+)\]", manifest, re.MULTILINE))
    return names | set(re.findall(r'\bpackage = "(.+?)"', manifest))


def _imports(folder: str, manifest: str, ours: set[str]) -> Iterator[str]:
    allowed = next((names for where, names in MAY_USE if re.fullmatch(where, folder)), None)
    if allowed is None:
        yield f"{folder}/Cargo.toml: no rule of tests/lint/crates.py says what it may depend on"
        return
    for name in sorted(_dependencies(manifest) & ours - allowed):
        yield f"{folder}/Cargo.toml: {folder} must not depend on {name}"
    if re.search(r"\bpath = .*\.\.", manifest):
        yield f"{folder}/Cargo.toml: paths belong in the workspace's Cargo.toml only"


def _scheduler(root: Path, folder: str, names: set[str]) -> Iterator[str]:
    name = Path(folder).name
    listed = re.search(r"^rust_scheds = \[(.*?)\]", (root / "meson.build").read_text(), re.M | re.S)
    if not listed or f"'{name}'" not in listed[1]:
        yield f"{folder}: {name} is missing from rust_scheds in meson.build"
    if not re.search(rf"^\| {name} \|", (root / "README.md").read_text(), re.MULTILINE):
        yield f"{folder}: the table in README.md has no row for {name}"
    own = [name.removeprefix(f"{folder}/") for name in names if name.startswith(f"{folder}/")]
    has_bpf = any(name == "build.rs" or name.startswith("src/bpf/") for name in own)
    for file in SCHEDULER_FILES + (BPF_FILES if has_bpf else USER_FILES):
        if f"{folder}/{file}" not in names:
            yield f"{folder}: there is no {file}"


def check(root: Path, names: list[str]) -> Iterator[str]:
    """All findings about packages. `names` are the files of this tree."""
    manifests = {n.removesuffix("/Cargo.toml"): n for n in names if n.endswith("/Cargo.toml")}
    texts = {folder: (root / name).read_text() for folder, name in manifests.items()}
    found = (re.search(r'^name = "(.+)"', text, re.MULTILINE) for text in texts.values())
    ours = {name[1] for name in found if name}
    for folder, text in texts.items():
        yield from _imports(folder, text, ours)
        if folder.startswith("scheds/rust/"):
            yield from _scheduler(root, folder, set(names))
