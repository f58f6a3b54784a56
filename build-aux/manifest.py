# SPDX-License-Identifier: GPL-2.0-only
"""Print the manifest of a C scheduler for scx_loader: the contents of NAME.json, and a list of the
kfuncs that its BPF object NAME.bpf.o requires. Rust schedulers print their own manifests."""

import json
import re
import subprocess
import sys
from pathlib import Path

#: Matches a kernel symbol without which the object does not load, in the output of readelf. Weak
#: symbols are optional, and not matched.
_NEEDED = re.compile(r" GLOBAL +DEFAULT +UND +(\w+)$", re.MULTILINE)


def kfuncs(obj: Path) -> list[str]:
    """The kfuncs that a BPF object requires."""
    command = ["readelf", "--symbols", "--wide", obj]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(_NEEDED.findall(table))


def main() -> None:
    description, obj = map(Path, sys.argv[1:])
    manifest = json.loads(description.read_text()) | {"kfuncs": kfuncs(obj)}
    print(json.dumps(manifest, indent=2))


if __name__ == "__main__":
    main()
