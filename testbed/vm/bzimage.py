# SPDX-License-Identifier: GPL-2.0-only
"""Reads x86 kernel images (bzImage): their release, and the ELF kernel.

The layout is the kernel's boot protocol, Documentation/arch/x86/boot.rst.
"""

from __future__ import annotations

import bz2
import lzma
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

_SETUP_SECTORS = 0x1F1
_MAGIC = 0x202
_RELEASE = 0x20E
_PAYLOAD = 0x248
_SECTOR_BYTES = 512
#: Maximum size of the real-mode code. One read of this size covers header and release.
_SETUP_BYTES_MAX = 65 * _SECTOR_BYTES
#: Size of the field with the kernel's uncompressed size. It follows the compressed stream in
#: payloads other than gzip.
_SIZE_TRAILER_BYTES = 4


class ImageError(Exception):
    """A file that is not a usable kernel image; the text is one line for the user."""


def release(path: Path) -> str:
    """The kernel release (`uname -r`) of the image at `path`. Raises ImageError."""
    setup = _setup(path)
    offset = struct.unpack_from("<H", setup, _RELEASE)[0]
    text = setup[offset + 0x200 :].split(b"\0", 1)[0] if offset else b""
    words = text.decode("ascii", "replace").split()
    if not words:
        raise ImageError(f"{path}: the kernel image does not name its release")
    return words[0]


def vmlinux(path: Path) -> bytes:
    """The decompressed ELF kernel inside the image at `path`. Raises ImageError."""
    setup = _setup(path)
    if len(setup) < _PAYLOAD + 8:
        raise ImageError(f"{path}: the kernel image is truncated")
    payload_offset, payload_bytes = struct.unpack_from("<II", setup, _PAYLOAD)
    # According to the protocol, 0 means 4 sectors, in very old images.
    protected_mode = ((setup[_SETUP_SECTORS] or 4) + 1) * _SECTOR_BYTES
    with path.open("rb") as image:
        image.seek(protected_mode + payload_offset)
        payload = image.read(payload_bytes)
    return _decompress(path, payload)


def _setup(path: Path) -> bytes:
    """The start of the image: setup header and release. Raises ImageError if it is no bzImage."""
    try:
        with path.open("rb") as image:
            setup = image.read(_SETUP_BYTES_MAX)
    except OSError as error:
        raise ImageError(f"{path}: cannot read the kernel image: {error.strerror}") from error
    if setup[_MAGIC : _MAGIC + 4] != b"HdrS" or len(setup) < _RELEASE + 2:
        raise ImageError(f"{path}: not an x86 kernel image (bzImage or vmlinuz)")
    return setup


def _decompress(path: Path, payload: bytes) -> bytes:
    for magic, decompress in _DECOMPRESSORS.items():
        if payload.startswith(magic):
            try:
                return decompress(payload)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise ImageError(f"{path}: cannot decompress the kernel: {error}") from error
    if payload.startswith(b"\x7fELF"):
        return payload
    raise ImageError(f"{path}: unknown compression of the kernel")


def _gunzip(payload: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(payload)


def _unxz(payload: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(payload)


def _bunzip2(payload: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(payload)


def _with_tool(tool: str) -> Callable[[bytes], bytes]:
    """A decompressor that pipes through the command `tool`."""

    def decompress(payload: bytes) -> bytes:
        if shutil.which(tool) is None:
            raise OSError(f"the command '{tool}' is missing: install the package {tool}")
        stream = payload[:-_SIZE_TRAILER_BYTES]
        done = subprocess.run([tool, "-dc"], input=stream, capture_output=True, check=False)
        if done.returncode != 0:
            raise OSError(f"{tool}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    return decompress


_DECOMPRESSORS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": _gunzip,
    b"\xfd7zXZ\0": _unxz,
    b"\x5d\0\0": _unxz,
    b"BZh": _bunzip2,
    b"\x28\xb5\x2f\xfd": _with_tool("zstd"),
    b"\x02\x21\x4c\x18": _with_tool("lz4"),
}
