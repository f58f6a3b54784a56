# SPDX-License-Identifier: GPL-2.0-only
"""Selecting kernels by version, and extracting their BTF, with handmade images."""

import gzip
import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import debs
import pytest
from images import bzimage_of, vmlinux_with
from vm import bzimage, elf, kernels
from vm.kernels import Kernel, KernelError, Packaged


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SCX_OFFLINE", "1")
    monkeypatch.delenv("SCX_VM_KERNELS", raising=False)
    # The handmade images contain no BTF to check, so their releases tell whether they are sound.
    monkeypatch.setattr(kernels, "_sound", lambda kernel: "unsound" not in kernel.release)


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Creates images of these releases, in SCX_VM_KERNELS or in the cache."""

    def make(*releases: str, cached: bool = False) -> None:
        directory = tmp_path / ("cache/kernels" if cached else "given")
        directory.mkdir(parents=True)
        for release in releases:
            name = f"vmlinuz-{release}" if cached else f"bzImage-{release}"
            (directory / name).write_bytes(bzimage_of(release))
        if not cached:
            monkeypatch.setenv("SCX_VM_KERNELS", str(directory))

    return make


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("7.2.12+deb13-cloud-amd64", (7, 2, 12)),
        ("6.17", (6, 17)),
        ("7.3.0-rc1", (7, 3, 0)),
        ("x", ()),
    ],
)
def test_versions_are_numbers(text: str, version: tuple[int, ...]) -> None:
    assert kernels.version_of(text) == version


@pytest.mark.parametrize(
    ("wanted", "release", "matches"),
    [
        ("7.2", "7.2.12+deb13-cloud-amd64", True),
        ("7.2", "7.2", True),
        ("7.2", "7.20.1", False),
        ("7", "7.20.1", True),
        ("7.2.1", "7.2.12", False),
        ("7.2.12+deb13-cloud-amd64", "7.2.12+deb13-cloud-amd64", True),
        ("7.2.12+deb13", "7.2.12+deb13-cloud-amd64", False),
        ("latest", "7.2.12", False),
    ],
)
def test_version_prefixes(wanted: str, release: str, matches: bool) -> None:
    assert kernels.matches(release, wanted) is matches


def test_release_of_an_image(tmp_path: Path) -> None:
    image = tmp_path / "anything"
    image.write_bytes(bzimage_of("6.99.1-mine"))
    kernel = kernels.resolve(str(image))
    assert (kernel.release, kernel.version, kernel.path) == ("6.99.1-mine", (6, 99, 1), image)


def test_commands_name_kernels_that_are_found_again(
    images: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images("6.12.107", cached=True)
    images("6.17.2-mine")
    image = tmp_path / "anything"
    image.write_bytes(bzimage_of("6.12.107"))
    monkeypatch.chdir(tmp_path)
    for wanted in (str(image), "./anything", "6.12", "6.17"):
        kernel = kernels.resolve(wanted)
        assert kernels.resolve(kernel.wanted) == kernel
    assert kernels.resolve("6.12").wanted == "6.12.107"


@pytest.mark.parametrize("contents", [b"", b"\x7fELF", bytes(1024)])
def test_other_files_are_not_kernels(tmp_path: Path, contents: bytes) -> None:
    image = tmp_path / "image"
    image.write_bytes(contents)
    with pytest.raises(KernelError, match=r"image: not an x86 kernel image"):
        kernels.resolve(str(image))


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"nothing: cannot read the kernel image: No such file"):
        kernels.resolve(str(tmp_path / "nothing"))


def test_given_images_come_before_the_cache(images: Callable[..., None]) -> None:
    images("6.17.13+deb13", "6.12.107", cached=True)
    images("6.17.2-mine", "6.12.1-mine")
    assert kernels.resolve("6.17").release == "6.17.2-mine"
    assert kernels.resolve("6.17.13").release == "6.17.13+deb13"


def test_newest_of_a_series_is_selected(images: Callable[..., None]) -> None:
    images("7.2.9", "7.2.12", "7.2.2")
    assert kernels.resolve("7.2").release == "7.2.12"


def test_unusable_kernel_is_skipped(images: Callable[..., None]) -> None:
    images("7.2.12-unsound", "7.2.9", "7.1.3-unsound")
    assert kernels.resolve("7.2").release == "7.2.9"
    assert kernels.resolve().release == "7.2.9"


def test_default_is_the_newest_tested_kernel(images: Callable[..., None]) -> None:
    images("6.17.13", "7.2.12", "7.9.1", cached=True)
    assert kernels.resolve().release == "7.2.12"


def test_without_a_local_kernel_offline(images: Callable[..., None]) -> None:
    with pytest.raises(KernelError, match="no local kernel: give an image with --kernel PATH"):
        kernels.resolve()
    with pytest.raises(KernelError, match="no local kernel 7.2: SCX_OFFLINE=1 forbids .*--kernel"):
        kernels.resolve("7.2")
    with pytest.raises(KernelError, match="no kernel 'newest': give a path, or a version"):
        kernels.resolve("newest")


def test_wrong_directory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCX_VM_KERNELS", "/nonexistent")
    with pytest.raises(KernelError, match="SCX_VM_KERNELS: /nonexistent is not a directory"):
        kernels.resolve("7.2")


def test_packages_that_contain_an_image() -> None:
    names = [
        "linux-base-7.2.12+deb13-cloud-amd64",
        "linux-binary-7.2.12+deb13-cloud-amd64",
        "linux-binary-7.2.12+deb13-amd64",
        "linux-image-7.2.12+deb13-cloud-amd64",
        "linux-image-7.2.12+deb13-cloud-amd64-dbg",
        "linux-image-7.2.12+deb13-cloud-amd64-unsigned",
        "linux-image-6.17.13+deb13-cloud-amd64",
        "linux-image-6.12.43+deb12-cloud-amd64",
        "linux-image-cloud-amd64",
    ]
    assert sorted(kernels.packaged("s", names), key=lambda kernel: kernel.version) == [
        Packaged("6.17.13+deb13-cloud-amd64", "s", "linux-image-6.17.13+deb13-cloud-amd64"),
        Packaged("7.2.12+deb13-cloud-amd64", "s", "linux-binary-7.2.12+deb13-cloud-amd64"),
    ]


def archive(monkeypatch: pytest.MonkeyPatch, *releases: str) -> None:
    """A Debian archive with kernel packages of these releases."""
    monkeypatch.delenv("SCX_OFFLINE")
    offered = [Packaged(release, "suite", f"linux-image-{release}") for release in releases]
    monkeypatch.setattr(kernels, "archived", lambda fresh=False: iter(offered))
    monkeypatch.setattr(
        kernels, "fetch", lambda kernel: Kernel(Path("image"), kernel.release, kernel.suite)
    )


def test_default_comes_from_the_archive(
    monkeypatch: pytest.MonkeyPatch, images: Callable[..., None]
) -> None:
    archive(monkeypatch, "7.9.1", "7.2.12", "6.17.13")
    images("6.12.107")
    assert kernels.resolve().origin == "suite"
    assert kernels.resolve().release == "7.2.12"


def test_archive_is_searched_for_a_usable_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    archive(monkeypatch, "7.2.12-unsound", "7.2.9-unsound", "6.17.13")
    assert kernels.resolve().release == "6.17.13"
    with pytest.raises(KernelError, match="no kernel 7.2 with sched_ext in Debian"):
        kernels.resolve("7.2")


def test_local_image_is_preferred_if_as_new(
    monkeypatch: pytest.MonkeyPatch, images: Callable[..., None]
) -> None:
    archive(monkeypatch, "7.2.12")
    images("7.2.12-mine")
    assert kernels.resolve().release == "7.2.12-mine"


def test_without_an_archive_the_newest_local_kernel_is_used(
    monkeypatch: pytest.MonkeyPatch, images: Callable[..., None]
) -> None:
    def no_archive(fresh: bool = False) -> None:
        raise debs.DebsError("no apt")

    monkeypatch.delenv("SCX_OFFLINE")
    monkeypatch.setattr(kernels, "archived", no_archive)
    with pytest.raises(KernelError, match="no apt; give an image with --kernel PATH"):
        kernels.resolve()
    images("6.12.107")
    assert kernels.resolve().release == "6.12.107"


def with_size(stream: bytes) -> bytes:
    """A payload as in the kernel's build: the stream, then its unpacked size."""
    return stream + struct.pack("<I", 12345)


def zstd(data: bytes) -> bytes:
    if shutil.which("zstd") is None:
        pytest.skip("needs the package zstd")
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lambda data: with_size(lzma.compress(data)),
        lambda data: with_size(zstd(data)),
        lambda data: data,
    ],
    ids=["gzip", "xz", "zstd", "none"],
)
def test_btf_is_extracted_once(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    image = tmp_path / "image"
    image.write_bytes(bzimage_of("6.99.0", pack(vmlinux_with(".BTF", b"types" * 1000))))
    kernel = kernels.from_path(image)
    first = kernels.btf(kernel)
    assert first.read_bytes() == b"types" * 1000
    written_ns = first.stat().st_mtime_ns
    assert kernels.btf(kernel) == first
    assert first.stat().st_mtime_ns == written_ns


def test_kernel_without_btf_is_an_error(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bzimage_of("6.99.0", gzip.compress(vmlinux_with(".text", b"x"))))
    with pytest.raises(KernelError, match="built without CONFIG_DEBUG_INFO_BTF"):
        kernels.btf(kernels.from_path(image))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"????", "unknown compression"),
        (b"\x1f\x8b????????????", "cannot decompress the kernel"),
        (
            b"\x28\xb5\x2f\xfd????????",
            "cannot decompress the kernel: the command 'zstd' is missing",
        ),
    ],
)
def test_invalid_payloads_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, payload: bytes, message: str
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    image = tmp_path / "image"
    image.write_bytes(bzimage_of("6.99.0", payload))
    with pytest.raises(bzimage.ImageError, match=message):
        bzimage.vmlinux(image)


def test_elf_sections_by_name() -> None:
    image = vmlinux_with(".BTF", b"types")
    assert elf.section(image, ".BTF") == b"types"
    assert elf.section(image, ".BTF.ext") is None
    with pytest.raises(ValueError, match="not a little-endian 64-bit ELF object"):
        elf.section(b"\x7fELF\x01\x01", ".BTF")
