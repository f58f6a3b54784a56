# SPDX-License-Identifier: GPL-2.0-only
"""Check the memory order of a BPF object: compile a source and inspect its instructions.

`atomics.py SOURCE --first FUNCTION… --between FUNCTION… -- COMPILER FLAG…`: every atomic operation
must fetch the old value (BPF_FETCH): such an operation is a full barrier, others are relaxed.
Functions after --first must have such a barrier before their first read; functions after --between
must have one between each write and the reads that follow it.
"""

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: ELF constants: types of sections and symbols, and the flag of sections with code.
SHT_SYMTAB, STT_FUNC, SHF_EXECINSTR = 2, 2, 4

#: Constants of BPF instructions: the mask of the class and three classes, the opcodes of atomic
#: operations on 4 and 8 bytes, and BPF_FETCH, a flag of `imm`.
BPF_CLASS, BPF_LDX, BPF_ST, BPF_STX = 0x07, 0x01, 0x02, 0x03
ATOMICS = {0xC3, 0xDB}
BPF_FETCH = 0x01
INSN_BYTES = 8


@dataclass
class Insn:
    opcode: int
    imm: int

    @property
    def is_atomic(self) -> bool:
        return self.opcode in ATOMICS

    @property
    def is_barrier(self) -> bool:
        return self.is_atomic and bool(self.imm & BPF_FETCH)

    @property
    def is_load(self) -> bool:
        return self.opcode & BPF_CLASS == BPF_LDX

    @property
    def is_store(self) -> bool:
        return not self.is_atomic and self.opcode & BPF_CLASS in (BPF_ST, BPF_STX)


def functions(elf: bytes) -> Iterator[tuple[str, list[Insn]]]:
    """Name and instructions of each function in a 64-bit object of either byte order."""
    order = "<" if elf[5] == 1 else ">"
    (shoff,) = struct.unpack_from(f"{order}Q", elf, 40)
    size, count = struct.unpack_from(f"{order}HH", elf, 58)
    headers = [
        struct.unpack_from(f"{order}IIQQQQIIQQ", elf, shoff + i * size) for i in range(count)
    ]
    for _, kind, _, _, offset, length, link, _, _, entry in headers:
        if kind != SHT_SYMTAB:
            continue
        names = headers[link][4]
        for at in range(offset, offset + length, entry):
            name, info, _, section, value, nr_bytes = struct.unpack_from(f"{order}IBBHQQ", elf, at)
            if info & 0xF != STT_FUNC or not headers[section][2] & SHF_EXECINSTR:
                continue
            text = elf[names + name : elf.index(b"\0", names + name)].decode()
            begin = headers[section][4] + value
            code = range(begin, begin + nr_bytes, INSN_BYTES)
            yield text, [Insn(elf[i], struct.unpack_from(f"{order}i", elf, i + 4)[0]) for i in code]


def begins_with_barrier(code: list[Insn]) -> bool:
    first = next((insn for insn in code if insn.is_load or insn.is_barrier), None)
    return first is not None and first.is_barrier


def reads_after_barrier(code: list[Insn]) -> bool:
    """Whether the code writes and reads, with a barrier between each write and the reads that
    follow it."""
    has_written = is_pending = False
    for insn in code:
        if insn.is_load and is_pending:
            return False
        is_pending = not insn.is_barrier and (is_pending or insn.is_store)
        has_written |= insn.is_store
    return has_written and any(insn.is_load for insn in code)


def check(elf: bytes, first: list[str], between: list[str]) -> Iterator[tuple[bool, str]]:
    """The results of all checks, with their descriptions."""
    found = dict(functions(elf))
    assert found, "the object has no functions"
    for name, code in found.items():
        if any(insn.is_atomic for insn in code):
            fetches = all(insn.is_barrier for insn in code if insn.is_atomic)
            yield fetches, f"{name}: each atomic operation fetches"
    for name in first:
        is_ordered = name in found and begins_with_barrier(found[name])
        yield is_ordered, f"{name}: a barrier comes before all reads"
    for name in between:
        is_ordered = name in found and reads_after_barrier(found[name])
        yield is_ordered, f"{name}: a barrier stands between a write and reads"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("source", type=Path)
    p.add_argument("--first", nargs="+", default=[])
    p.add_argument("--between", nargs="+", default=[])
    split = sys.argv.index("--")
    args, compiler = p.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    if not shutil.which(compiler[0]):
        print(f"1..0 # SKIP {compiler[0]} is not installed")
        return
    with tempfile.TemporaryDirectory() as tmp:
        target = Path(tmp) / "object"
        subprocess.run([*compiler, "-c", str(args.source), "-o", str(target)], check=True)
        results = list(check(target.read_bytes(), args.first, args.between))
    print(f"1..{len(results)}")
    for number, (holds, what) in enumerate(results, 1):
        print(f"{'ok' if holds else 'not ok'} {number} - {what}")


if __name__ == "__main__":
    main()
