# SPDX-License-Identifier: GPL-2.0-only
"""Build Rust programs with one cargo call, for ninja.

Copies the programs to where Meson expects them. With --depfile, the depfile lists all files that
cargo read, and ninja runs this script only if one of them has changed. Without --depfile, ninja
runs the script each time, and programs that are up to date are not copied.
"""

import shutil
from pathlib import Path

import cargo


def _programs(messages: list[dict]) -> dict[str, Path]:
    """Name → file of each program in cargo's messages."""
    found = [m["executable"] for m in messages if m["reason"] == "compiler-artifact"]
    return {Path(f).name: Path(f) for f in found if f}


def _sources(program: Path) -> list[str]:
    """The files listed in cargo's dependency file beside `program`. Blanks in names become NULs."""
    text = program.with_name(program.name + ".d").read_text()
    return text.partition(": ")[2].split("\n")[0].replace("\\ ", "\0").split(" ")


def _write_depfile(depfile: Path, outputs: list[Path], programs: list[Path], root: Path) -> None:
    sources = {s.replace("\0", "\\ ") for p in programs for s in _sources(p) if s}
    manifests = [root / "Cargo.toml", root / "Cargo.lock", *root.glob("*/*/Cargo.toml")]
    for folders in ("rust/*/*", "scheds/rust/*", "tests/scheds/*"):
        manifests += root.glob(f"{folders}/Cargo.toml")
    sources |= {str(m).replace(" ", "\\ ") for m in manifests}
    targets = " ".join(str(o) for o in outputs)
    depfile.write_text(f"{targets}: {' '.join(sorted(sources))}\n")


def _is_current(copy: Path, program: Path) -> bool:
    """Whether the copy is not older than cargo's program."""
    return copy.exists() and copy.stat().st_mtime_ns >= program.stat().st_mtime_ns


def main() -> None:
    p = cargo.parser(__doc__)
    p.add_argument("--depfile", type=Path, help="list the files that cargo read, for ninja")
    p.add_argument("--out", type=Path, required=True, help="folder for the programs")
    p.add_argument("outputs", type=Path, nargs="+", help="programs to build, by their output files")
    args = p.parse_args()

    names = [o.name for o in args.outputs]
    # The workspace has no examples, but --examples makes cargo resolve the features of crates as
    # for tests and clippy, which then reuse the crates of this build.
    selection = ["--examples", *(a for n in names for a in ("--bin", n))]
    found = _programs(cargo.build(args, selection))
    for name in names:
        if name not in found:
            raise cargo.CargoError(f"the workspace has no program {name}")
        # ninja requires all outputs of an edge to be newer than its inputs.
        if args.depfile or not _is_current(args.out / name, found[name]):
            shutil.copy2(found[name], args.out / name)
            (args.out / name).touch()
    if args.depfile:
        programs = [found[n] for n in names]
        _write_depfile(args.depfile, args.outputs, programs, args.manifest.parent)


if __name__ == "__main__":
    cargo.main(main)
