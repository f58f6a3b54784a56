# SPDX-License-Identifier: GPL-2.0-only
"""A minimal ELF parser: the contents of one section of a 64-bit object."""

from __future__ import annotations

import struct

MAGIC = b"\x7fELF"
_CLASS_64_LITTLE = b"\x02\x01"
_SECTION = struct.Struct("<IIQQQQIIQQ")


def section(image: bytes, name: str) -> bytes | None:
    """The contents of the section `name`, or None if there is none.

    Raises ValueError for an image that is not a little-endian 64-bit ELF object.
    """
    if image[:4] != MAGIC or image[4:6] != _CLASS_64_LITTLE:
        raise ValueError("not a little-endian 64-bit ELF object")
    table_offset = struct.unpack_from("<Q", image, 0x28)[0]
    entry_bytes, count, names_index = struct.unpack_from("<HHH", image, 0x3A)
    headers = [_SECTION.unpack_from(image, table_offset + i * entry_bytes) for i in range(count)]
    if names_index >= count:
        return None
    names = _contents(image, headers[names_index])
    for header in headers:
        if _string(names, header[0]) == name.encode():
            return _contents(image, header)
    return None


def _contents(image: bytes, header: tuple[int, ...]) -> bytes:
    offset, size = header[4], header[5]
    return image[offset : offset + size]


def _string(table: bytes, offset: int) -> bytes:
    return table[offset : table.index(b"\0", offset)]
