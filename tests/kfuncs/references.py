# SPDX-License-Identifier: GPL-2.0-only
"""Write a BPF program that refers to every kfunc a header declares.

A compiler keeps a declaration in the object's BTF only if it is used; the
program is never loaded, only compared with kernels' BTF by scx_btfcheck.
"""

import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"^extern\s[^;]*?\b(\w+)\([^;]*\)\s*__ksym\b[^;]*;", re.MULTILINE)


def main() -> None:
    header = Path(sys.argv[1])
    names = DECLARATION.findall(header.read_text())
    if not names:
        sys.exit(f"{header}: no kfunc declarations found")
    print(f'#include "{header}"')
    print('char _license[] SEC("license") = "GPL";')
    print("volatile unsigned long sink;")
    print('SEC("syscall") int references(void *ctx)\n{')
    for name in names:
        print(f"\tsink = (unsigned long)&{name};")
    print("\treturn 0;\n}")


if __name__ == "__main__":
    main()
