# SPDX-License-Identifier: GPL-2.0-only
"""Print what scx_loader is told of a C scheduler: NAME.json, and what its BPF object NAME.bpf.o
needs of the kernel. Rust schedulers print theirs themselves."""

import json
import re
import subprocess
import sys
from pathlib import Path

#: A symbol of the kernel without which the object does not load; weak ones have a substitute.
_NEEDED = re.compile(r" GLOBAL +DEFAULT +UND +(\w+)$", re.MULTILINE)


def kfuncs(obj: Path) -> list[str]:
    """The functions of the kernel that a BPF object cannot do without."""
    command = ["readelf", "--symbols", "--wide", obj]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(_NEEDED.findall(table))


def main() -> None:
    description, obj = map(Path, sys.argv[1:])
    manifest = json.loads(description.read_text()) | {"kfuncs": kfuncs(obj)}
    print(json.dumps(manifest, indent=2))


if __name__ == "__main__":
    main()
