# SPDX-License-Identifier: GPL-2.0-only
"""Build the static libbpf pinned in Cargo.lock and install it where Meson expects it.

Prints one line that names the crate. Called at each `meson setup`; files that are up to date are
not written.
"""

import filecmp
import shutil
from pathlib import Path

import cargo


def _out_dir(messages: list[dict]) -> Path:
    """The output directory of libbpf-sys' build script, with archive and headers."""
    for m in messages:
        if m["reason"] == "build-script-executed" and "static=bpf" in m["linked_libs"]:
            return Path(m["out_dir"])
    raise cargo.CargoError("cargo did not name libbpf-sys' output folder")


def _install(source: Path, out: Path) -> None:
    """Copy archive and headers, preserving the times of unchanged files."""
    for path in [source / "libbpf.a", *(source / "include").rglob("*.h")]:
        to = out / path.relative_to(source)
        if to.exists() and filecmp.cmp(path, to, shallow=False):
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


def main() -> None:
    p = cargo.parser(__doc__)
    p.add_argument("--out", type=Path, required=True, help="gets libbpf.a and include/")
    args = p.parse_args()
    messages = cargo.build(args, ["-p", "libbpf-sys"])
    _install(_out_dir(messages), args.out)
    crate = next(m["package_id"] for m in messages if "libbpf-sys" in m.get("package_id", ""))
    print(f"static, from the crate libbpf-sys {crate.rpartition('@')[2]}")


if __name__ == "__main__":
    cargo.main(main)
