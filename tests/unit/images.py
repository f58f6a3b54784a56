# SPDX-License-Identifier: GPL-2.0-only
"""Minimal kernel images for tests."""

import struct


def bzimage_of(release: str, payload: bytes = b"") -> bytes:
    """A minimal bzImage according to the boot protocol, with one setup sector."""
    setup = bytearray(2 * 512)
    setup[0x1F1] = 1
    setup[0x202:0x206] = b"HdrS"
    text = f"{release} (someone@somewhere) #1 SMP".encode() + b"\0"
    struct.pack_into("<H", setup, 0x20E, 0x300 - 0x200)
    setup[0x300 : 0x300 + len(text)] = text
    struct.pack_into("<II", setup, 0x248, 16, len(payload))
    return bytes(setup) + bytes(16) + payload


def vmlinux_with(section: str, contents: bytes) -> bytes:
    """An ELF object with a table of names and one section."""
    names = b"\0.names\0" + section.encode() + b"\0"
    names_offset, contents_offset = 64, 64 + len(names)
    table_offset = contents_offset + len(contents)
    header = struct.pack(
        "<4s12xHHIQQQIHHHHHH",
        b"\x7fELF",
        2,
        62,
        1,
        0,
        0,
        table_offset,
        0,
        64,
        *(
            0,
            0,
            64,
            3,
            1,
        ),
    )
    header = header[:4] + b"\x02\x01" + header[6:]
    entry = struct.Struct("<IIQQQQIIQQ").pack
    table = entry(*[0] * 10)
    table += entry(1, 3, 0, 0, names_offset, len(names), 0, 0, 1, 0)
    table += entry(8, 1, 0, 0, contents_offset, len(contents), 0, 0, 1, 0)
    return header + names + contents + table
