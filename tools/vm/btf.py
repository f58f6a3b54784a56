# SPDX-License-Identifier: GPL-2.0-only
"""Just enough of the BTF format (the kernel's Documentation/bpf/btf.rst) to tell whether a
kernel's type information is sound.

Since Linux 7.1 many kfuncs have a hidden last argument, which the kernel's build takes out of
their public prototype. It finds these kfuncs by tags that an old pahole does not write for all of
them; in such a kernel the untreated ones cannot be called by any program, and no scheduler loads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
_FUNC, _FUNC_PROTO = 12, 13
#: Bytes that follow a type's common part: (fixed, for each of its `vlen` members).
_TRAILERS = {
    **{1: (4, 0), 3: (12, 0), 14: (4, 0), 17: (4, 0)},  # INT, ARRAY, VAR, DECL_TAG
    **{4: (0, 12), 5: (0, 12), 15: (0, 12), 19: (0, 12)},  # STRUCT, UNION, DATASEC, ENUM64
    **{6: (0, 8), _FUNC_PROTO: (0, 8)},  # ENUM
}
#: A kfunc that every scheduler needs, and its public number of arguments.
_PROBE, _PROBE_ARGUMENTS = b"scx_bpf_create_dsq\0", 2


def _types(btf: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(kind, vlen, name offset, type or size) of each type, from id 1 on."""
    _, _, _, header_size, type_offset, type_size, _, _ = _HEADER.unpack_from(btf)
    position = header_size + type_offset
    end = position + type_size
    while position < end:
        name, info, other = _TYPE.unpack_from(btf, position)
        kind, vlen = info >> 24 & 0x1F, info & 0xFFFF
        yield kind, vlen, name, other
        fixed, each = _TRAILERS.get(kind, (0, 0))
        position += _TYPE.size + fixed + each * vlen


def is_sound(btf: bytes) -> bool:
    """Whether the probed kfunc has its public prototype, or is not there at all.

    Raises ValueError for bytes that are not little-endian BTF.
    """
    if len(btf) < _HEADER.size or _HEADER.unpack_from(btf)[0] != MAGIC:
        raise ValueError("not BTF")
    header = _HEADER.unpack_from(btf)
    strings = header[3] + header[6]
    wanted = btf.find(b"\0" + _PROBE, strings) + 1 - strings
    arguments: dict[int, int] = {}
    prototype = 0
    for number, (kind, vlen, name, other) in enumerate(_types(btf), 1):
        if kind == _FUNC_PROTO:
            arguments[number] = vlen
        elif kind == _FUNC and name == wanted:
            prototype = other
    return arguments.get(prototype, _PROBE_ARGUMENTS) == _PROBE_ARGUMENTS
