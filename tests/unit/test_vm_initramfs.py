# SPDX-License-Identifier: GPL-2.0-only
"""The initramfs: a valid and reproducible archive, and error messages."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from vm import initramfs
from vm.initramfs import File, InitramfsError, Tree

needs_busybox = pytest.mark.skipif(
    shutil.which("busybox") is None, reason="needs the package busybox-static"
)


def members(archive: bytes) -> dict[str, dict[str, int | bytes]]:
    """The files of a newc archive, by path."""
    found: dict[str, dict[str, int | bytes]] = {}
    position = 0
    while True:
        assert archive[position : position + 6] == b"070701"
        fields = [int(archive[position + 6 + 8 * i : position + 14 + 8 * i], 16) for i in range(13)]
        name = position + 110
        data = name + fields[11] + -(110 + fields[11]) % 4
        path = archive[name : name + fields[11] - 1].decode()
        position = data + fields[6] + -fields[6] % 4
        if path == "TRAILER!!!":
            assert position == len(archive)
            return found
        found[path] = {
            **{"number": fields[0], "mode": fields[1], "uid": fields[2], "gid": fields[3]},
            **{"links": fields[4], "mtime": fields[5], "major": fields[9], "minor": fields[10]},
            "data": archive[data : data + fields[6]],
        }


def test_archive_can_be_read() -> None:
    tree = Tree()
    tree.file("usr/bin/x", b"12345", 0o755)
    tree.link("bin", "usr/bin")
    tree.device("dev/console", 5, 1)
    found = members(tree.archive())
    assert list(found) == ["bin", "dev", "dev/console", "usr", "usr/bin", "usr/bin/x"]
    assert found["usr/bin/x"]["mode"] == stat.S_IFREG | 0o755
    assert found["usr/bin/x"]["data"] == b"12345"
    assert found["bin"] == found["bin"] | {"mode": stat.S_IFLNK | 0o777, "data": b"usr/bin"}
    assert (found["dev/console"]["major"], found["dev/console"]["minor"]) == (5, 1)
    assert found["usr"]["links"] == 2


def test_times_owners_and_numbers_are_fixed() -> None:
    tree = Tree()
    for name in "cab":
        tree.file(name, b"")
    found = members(tree.archive())
    assert [entry["number"] for entry in found.values()] == [1, 2, 3]
    assert {(entry["mtime"], entry["uid"], entry["gid"]) for entry in found.values()} == {(0, 0, 0)}


def test_order_of_addition_does_not_matter() -> None:
    one, other = Tree(), Tree()
    for tree, names in ((one, "xyz"), (other, "zyx")):
        for name in names:
            tree.file(f"d/{name}", name.encode())
    assert one.archive() == other.archive()


@needs_busybox
def test_same_inputs_same_bytes(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    first = initramfs.build([script])
    script.touch()
    assert initramfs.build([script]) == first
    found = members(first)
    assert found["usr/bin/tool"]["mode"] == stat.S_IFREG | 0o755
    assert found["init"]["data"] == b"guest/init"
    assert {"dev/console", "bin/busybox", "bin/sh", "guest/agent"} <= set(found)


@needs_busybox
def test_files_have_a_path_contents_and_a_mode(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"\0\xff")
    source.chmod(0o700)
    files = {
        "/etc/dbus-1/system.d/ours.conf": File("<busconfig/>\n"),
        "/usr/lib/helper": File(source, 0o4755),
    }
    found = members(initramfs.build(files=files))
    conf, helper = (found[path.strip("/")] for path in files)
    assert (conf["mode"], conf["data"]) == (stat.S_IFREG | 0o644, b"<busconfig/>\n")
    assert (helper["mode"], helper["data"]) == (stat.S_IFREG | 0o4755, b"\0\xff")
    assert found["etc/dbus-1/system.d"]["mode"] == stat.S_IFDIR | 0o755
    # There are no duplicates, although the base tree already has /etc and /usr.
    assert [entry["number"] for entry in found.values()] == list(range(1, len(found) + 1))


@needs_busybox
def test_file_replaces_a_standard_one() -> None:
    assert b"nobody" in members(initramfs.build())["etc/passwd"]["data"]
    users = "root:x:0:0::/:/bin/sh\n"
    found = members(initramfs.build(files={"/etc/passwd": File(users)}))
    assert found["etc/passwd"]["data"] == users.encode()


@needs_busybox
def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InitramfsError, match=r"nothing: cannot read it: No such file"):
        initramfs.build(files={"/etc/passwd": File(tmp_path / "nothing")})


@needs_busybox
@pytest.mark.skipif(shutil.which("cpio") is None, reason="needs the package cpio")
def test_cpio_can_read_it() -> None:
    listing = subprocess.run(
        ["cpio", "-it", "--quiet"], input=initramfs.build(), capture_output=True, check=True
    )
    assert b"guest/agent" in listing.stdout.split()


def test_libraries_of_a_program_are_included() -> None:
    shell = Path("/bin/sh").resolve()
    libraries = initramfs.shared_libraries(shell)
    assert any(path.name.startswith("ld-") for path in libraries)
    tree = Tree()
    tree.program(shell, "usr/bin/sh")
    for library in libraries:
        assert tree.entries[str(library).strip("/")].data == library.read_bytes()


def test_script_has_no_libraries(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert initramfs.shared_libraries(script) == []


def test_missing_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InitramfsError, match=r"nothing: cannot read it: No such file"):
        Tree().program(tmp_path / "nothing", "usr/bin/nothing")
    with pytest.raises(InitramfsError, match=r"nothing: cannot read it: No such file"):
        initramfs.shared_libraries(tmp_path / "nothing")


def test_missing_busybox_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InitramfsError, match="install the package busybox-static"):
        initramfs.build()
