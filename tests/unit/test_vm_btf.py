# SPDX-License-Identifier: GPL-2.0-only
"""Detecting damaged BTF of a kernel."""

import struct

import pytest
from vm import btf


def btf_with(function: str, *arguments: str) -> bytes:
    """BTF with an int, a struct, a prototype, and a function of that prototype."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in (function, *arguments))
    offsets = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in arguments]
    types = struct.pack("<IIII", 0, 1 << 24, 4, 32)
    types += struct.pack("<III", 0, 4 << 24 | 2, 8) + bytes(24)
    types += struct.pack("<III", 0, 13 << 24 | len(arguments), 1)
    types += b"".join(struct.pack("<II", offset, 1) for offset in offsets)
    types += struct.pack("<III", 1, 12 << 24, 3)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings))
    return header + types + strings


@pytest.mark.parametrize("arguments", [[], ["dsq_id"], ["aux", "node"]])
def test_public_prototype_is_accepted(arguments: list[str]) -> None:
    assert btf.is_sound(btf_with("scx_bpf_create_dsq", *arguments))


@pytest.mark.parametrize("function", ["scx_bpf_create_dsq", "scx_bpf_dump_bstr"])
def test_hidden_argument_is_rejected(function: str) -> None:
    """In damaged BTF, the hidden argument `aux` may be visible in any kfunc: an old pahole omits
    the BTF tags of some kfuncs, and which ones varies from build to build."""
    assert not btf.is_sound(btf_with(function, "node", "aux"))


@pytest.mark.parametrize("function", ["scx_bpf_create_dsq_impl", "bpf_other"])
def test_other_functions_may_have_the_argument(function: str) -> None:
    assert btf.is_sound(btf_with(function, "node", "aux"))


@pytest.mark.parametrize("data", [b"", bytes(100)])
def test_invalid_data_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="not BTF"):
        btf.is_sound(data)
