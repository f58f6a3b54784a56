# SPDX-License-Identifier: GPL-2.0-only
"""A minimal BTF parser (the kernel's Documentation/bpf/btf.rst) that detects damaged BTF of a
kernel.

Since Linux 7.1 many kfuncs have a hidden last argument, which the kernel's build removes from their
public prototype. The build finds these kfuncs by BTF tags, but an old pahole does not write the tag
for all of them. A kfunc without the tag keeps the hidden argument in its prototype, so no BPF
program can call it, and no scheduler can be loaded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
_FUNC, _FUNC_PROTO = 12, 13
#: Bytes after a type's common part, by kind: (fixed, for each of the type's `vlen` members).
_TRAILERS = {
    **{1: (4, 0), 3: (12, 0), 14: (4, 0), 17: (4, 0)},  # INT, ARRAY, VAR, DECL_TAG
    **{4: (0, 12), 5: (0, 12), 15: (0, 12), 19: (0, 12)},  # STRUCT, UNION, DATASEC, ENUM64
    **{6: (0, 8), _FUNC_PROTO: (0, 8)},  # ENUM, FUNC_PROTO
}
#: The prefix of sched_ext's kfuncs, the suffix of internal kfuncs, and the name of the hidden
#: argument.
_KFUNCS, _HIDDEN, _ARGUMENT = b"scx_bpf_", b"_impl", b"aux"


class _Strings:
    """The string section: names by their offset."""

    def __init__(self, btf: bytes) -> None:
        _, _, _, header_size, _, _, offset, size = _HEADER.unpack_from(btf)
        self._strings = btf[header_size + offset : header_size + offset + size]

    def __getitem__(self, offset: int) -> bytes:
        return self._strings[offset : self._strings.index(b"\0", offset)]

    def begins(self, offset: int, prefix: bytes) -> bool:
        """Whether the name at `offset` begins with `prefix`. Does not copy the name."""
        return self._strings.startswith(prefix, offset)

    def ends(self, offset: int, suffix: bytes) -> bool:
        """Whether the name at `offset` ends with `suffix`."""
        return self[offset].endswith(suffix)


def _types(btf: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """(kind, vlen, name offset, type or size, end of its members) of each type, from id 1 on."""
    _, _, _, header_size, type_offset, type_size, _, _ = _HEADER.unpack_from(btf)
    position = header_size + type_offset
    end = position + type_size
    while position < end:
        name, info, other = _TYPE.unpack_from(btf, position)
        kind, vlen = info >> 24 & 0x1F, info & 0xFFFF
        fixed, each = _TRAILERS.get(kind, (0, 0))
        position += _TYPE.size + fixed + each * vlen
        yield kind, vlen, name, other, position


def is_sound(btf: bytes) -> bool:
    """Whether no public kfunc of sched_ext has the hidden argument.

    Raises ValueError for bytes that are not little-endian BTF.
    """
    if len(btf) < _HEADER.size or _HEADER.unpack_from(btf)[0] != MAGIC:
        raise ValueError("not BTF")
    strings = _Strings(btf)
    last_argument: dict[int, int] = {}
    prototypes: list[int] = []
    for number, (kind, vlen, name, other, end) in enumerate(_types(btf), 1):
        if kind == _FUNC_PROTO and vlen:
            last_argument[number] = struct.unpack_from("<I", btf, end - 8)[0]
        elif kind == _FUNC and strings.begins(name, _KFUNCS) and not strings.ends(name, _HIDDEN):
            prototypes.append(other)
    return not any(strings[last_argument.get(number, 0)] == _ARGUMENT for number in prototypes)
