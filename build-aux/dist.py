# SPDX-License-Identifier: GPL-2.0-only
"""Add the crates of Cargo.lock to the tree that `meson dist` packs.

A configuration file makes cargo use only these crates, so that the tarball builds without a
network. Prebuilt Windows libraries and generated HTML pages in the crates are left out, as
distributions accept only sources.
"""

import json
import os
import subprocess
from pathlib import Path

import cargo

CONFIG = """\
# Written by build-aux/dist.py: use only the crates in this tarball.
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
"""
GENERATED = {".a", ".dll", ".html", ".lib"}


def _vendor(args, root: Path) -> None:
    if not args.cargo:
        raise cargo.CargoError("cargo, which collects the crates, is not installed")
    line = [args.cargo, "vendor", "--quiet", "--locked", "--versioned-dirs"]
    # Honours the user's mirror, if configured.
    line += ["--respect-source-config", *(["--offline"] if args.offline else []), "vendor"]
    done = subprocess.run(line, cwd=root, stdout=subprocess.DEVNULL, env=cargo.environment(args))
    if done.returncode:
        raise cargo.CargoError(f"cargo vendor failed with status {done.returncode}")
    (root / ".cargo").mkdir(exist_ok=True)
    (root / ".cargo" / "config.toml").write_text(CONFIG)


def _drop_generated_files(vendor: Path) -> None:
    """Remove generated files from the crates, and from the lists of files that cargo verifies."""
    for list_of_files in vendor.glob("*/.cargo-checksum.json"):
        crate, listed = list_of_files.parent, json.loads(list_of_files.read_text())
        dropped = [name for name in listed["files"] if Path(name).suffix in GENERATED]
        for name in dropped:
            (crate / name).unlink()
            del listed["files"][name]
        if dropped:
            list_of_files.write_text(json.dumps(listed))


def _same_time_for_all(root: Path) -> None:
    """Give all files the time of the commit. Files from git already have this time, the crates do
    not. So the tarball of a commit is reproducible."""
    time = (root / "Cargo.lock").stat().st_mtime
    for path in [*root.rglob("*"), root]:
        os.utime(path, (time, time), follow_symlinks=False)


def main() -> None:
    args = cargo.parser(__doc__).parse_args()
    root = Path(os.environ["MESON_DIST_ROOT"])
    _vendor(args, root)
    _drop_generated_files(root / "vendor")
    _same_time_for_all(root)


if __name__ == "__main__":
    cargo.main(main)
