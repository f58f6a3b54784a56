# SPDX-License-Identifier: GPL-2.0-only
"""Write the BPF side of scx_kfuncs, a program that refers to every kfunc that a header declares.

libbpf refuses to load the program if a kfunc that is not weak is missing, or does not match the
kernel's prototype. The program records in `kfuncs` which of the weak kfuncs match.
"""

import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"^extern\s[^;]*?\b(\w+)\([^;]*\)\s*__ksym\b([^;]*);", re.MULTILINE)


def main() -> None:
    header = Path(sys.argv[1])
    found = DECLARATION.findall(header.read_text())
    strong = [name for name, rest in found if "__weak" not in rest]
    weak = [name for name, rest in found if "__weak" in rest]
    if not strong or not weak:
        sys.exit(f"{header}: no kfunc declarations found")
    print(f'#include "{header}"')
    print('char _license[] SEC("license") = "GPL";')
    print("volatile unsigned long sink;")
    print(f"struct {{ char name[64]; bool resolved; }} kfuncs[{len(weak)}] = {{")
    for name in weak:
        print(f'\t{{ .name = "{name}" }},')
    print('};\nSEC("syscall") int resolve(void *ctx)\n{')
    for name in strong:
        print(f"\tsink = (unsigned long)&{name};")
    for index, name in enumerate(weak):
        print(f"\tkfuncs[{index}].resolved = bpf_ksym_exists({name});")
    print("\treturn 0;\n}")


if __name__ == "__main__":
    main()
