# SPDX-License-Identifier: GPL-2.0-only
"""Check whether a bpftool generates the skeletons that C schedulers need.

An old bpftool silently omits the struct_ops map and its shadow struct, and the build or the
scheduler fails later. So compile a real object and inspect its skeleton.
Exit status 0, or 1 with a one-line reason.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = """
struct sched_ext_ops { unsigned long long flags; char name[128]; };
__attribute__((section(".struct_ops.link"), used))
struct sched_ext_ops probe_ops = { .name = "probe" };
char _license[] __attribute__((section("license"), used)) = "GPL";
"""

# The parts of a skeleton that schedulers use: the struct_ops map and its shadow struct.
NEEDED = ["struct bpf_map *probe_ops;", "} *probe_ops;"]


def _run(command: list[str], reason: str) -> bytes:
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        sys.exit(f"{reason}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--clang", required=True)
    p.add_argument("--bpftool", required=True)
    args, includes = p.parse_known_args()
    with tempfile.TemporaryDirectory() as tmp:
        source, obj = Path(tmp, "probe.bpf.c"), Path(tmp, "probe.bpf.o")
        source.write_text(PROBE)
        clang = [args.clang, "-target", "bpf", "-g", "-O2", *includes, "-c", str(source)]
        _run([*clang, "-o", str(obj)], f"{args.clang} cannot compile a BPF program")
        skeleton = _run(
            [args.bpftool, "gen", "skeleton", str(obj), "name", "probe"],
            f"{args.bpftool} cannot generate a skeleton",
        ).decode()
    if not all(part in skeleton for part in NEEDED):
        sys.exit(f"{args.bpftool} is too old: its skeletons lack struct_ops maps (7.4 has them)")


if __name__ == "__main__":
    main()
