# SPDX-License-Identifier: GPL-2.0-only
"""Telling sound type information of a kernel from damaged."""

import struct

import pytest
from vm import btf

PROBE = "scx_bpf_create_dsq"


def btf_with(function: str, arguments: int) -> bytes:
    """Type information with an int, a struct, a prototype, and a function of that prototype."""
    strings = b"\0" + function.encode() + b"\0"
    types = struct.pack("<IIII", 0, 1 << 24, 4, 32)
    types += struct.pack("<III", 0, 4 << 24 | 2, 8) + bytes(24)
    types += struct.pack("<III", 0, 13 << 24 | arguments, 1) + bytes(8 * arguments)
    types += struct.pack("<III", 1, 12 << 24, 3)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings))
    return header + types + strings


def test_the_public_prototype_is_sound() -> None:
    assert btf.is_sound(btf_with(PROBE, 2))


def test_a_hidden_argument_is_not() -> None:
    assert not btf.is_sound(btf_with(PROBE, 3))


def test_a_kernel_without_the_function_is_not_judged() -> None:
    assert btf.is_sound(btf_with("scx_bpf_create_dsq_impl", 3))


@pytest.mark.parametrize("data", [b"", bytes(100)])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not BTF"):
        btf.is_sound(data)
