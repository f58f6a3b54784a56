# SPDX-License-Identifier: GPL-2.0-only
"""The messages between host and guest: framing, escaping, and validation."""

import subprocess

import pytest
from vm import protocol
from vm.protocol import Ended, Pong, Ready, Started

SCRIPTS = [
    "true",
    "",
    "echo one\necho two\n",
    "  leading and trailing blanks  ",
    r"printf '%s\n' \\ \101 %b %%",
    "tab\there, bell \a, del \x7f",
    "grüße — ‰",
    "undecodable \udcff\udc80 bytes",
    "cat <<'E'\n$HOME `x` \"y\"\nE",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_survive_encoding(script: str) -> None:
    line = protocol.escape(script)
    assert line.isascii()
    assert line.isprintable()
    shell = subprocess.run(
        ["sh", "-c", 'read -r verb rest; printf "%b" "$rest"'],
        input=f"start {line}\n".encode(),
        capture_output=True,
        check=True,
    )
    assert shell.stdout == script.lstrip(" ").encode("utf-8", "surrogateescape") + b"\n"


def test_requests_are_lines() -> None:
    assert protocol.start("a.b", "x\ny") == rb"start a.b files root x\0012y\0012" + b"\n"
    assert protocol.start("n", "", output="stream", user="nobody").startswith(
        b"start n stream nobody "
    )
    assert protocol.signal(-12, 9) == b"signal -12 9\n"
    assert protocol.fetch(Ended("n", 0, 3, 4)) == b"fetch n 3 4\n"
    assert protocol.forget("n") == b"forget n\n"
    assert protocol.read("n", "/proc/*/stat") == b"read n /proc/*/stat\n"
    assert protocol.log("n") == b"log n\n"
    assert protocol.ping() == b"ping\n"


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "-n", "a\nb"])
def test_unsafe_names_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="job name"):
        protocol.start(name, "true")


def test_nul_and_invalid_users_are_rejected() -> None:
    with pytest.raises(ValueError, match="NUL"):
        protocol.start("n", "a\0b")
    with pytest.raises(ValueError, match="no user"):
        protocol.start("n", "true", user="no body")


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
def test_events_arrive_in_arbitrary_pieces(piece: int) -> None:
    stream = b"ready\nstarted job 42\npong\nended job 137 10 0\n"
    decoder = protocol.Decoder()
    events = [
        event
        for start in range(0, len(stream), piece)
        for event in decoder.feed(stream[start : start + piece])
    ]
    assert events == [Ready(), Started("job", 42), Pong(), Ended("job", 137, 10, 0)]


@pytest.mark.parametrize("line", [b"", b"hello", b"started x", b"started x y", b"ended x 1 2"])
def test_noise_is_quoted_in_the_error(line: bytes) -> None:
    with pytest.raises(protocol.ProtocolError, match="the guest's agent sent"):
        protocol.Decoder().feed(line + b"\n")
