# SPDX-License-Identifier: GPL-2.0-only
"""scxstats with a mock scheduler."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

META = {
    "ClusterStats": {
        "name": "ClusterStats",
        "top": "true",
        "user": {"_om_prefix": "t_"},
        "fields": {
            "runs": {
                "datum": "u64",
                "desc": 'Times \\ that "a" task ran',
                "user": {"_counter": "true"},
            },
            "total": {"datum": "u64", "user": {"_counter": "true"}},
            "busy": {"datum": "float", "desc": "CPU time used"},
            "name": {"datum": "string"},
            "cpus": {"array": "u64", "user": {"_om_skip": "true"}},
            "nodes": {"dict": {"key": "u64", "datum": {"struct": "NodeStats"}}},
        },
    },
    "NodeStats": {
        "name": "NodeStats",
        "user": {"_om_prefix": "n_", "_om_label": "node"},
        "fields": {
            "load": {"datum": "float", "desc": "Load"},
            "doms": {"dict": {"key": "u64", "datum": {"struct": "DomainStats"}}},
        },
    },
    "DomainStats": {
        "name": "DomainStats",
        "user": {"_om_prefix": "d_", "_om_label": "domain"},
        "fields": {"load": {"datum": "float", "desc": "Load"}},
    },
}
#: Keys may be arbitrary strings.
ODD = 'a "b"\\\n} 1'
STATS = {
    "runs": 7,
    "total": 8,
    "busy": 12.5,
    "name": "text",
    "cpus": [1],
    "nodes": {
        "0": {"load": 1.5, "doms": {"0": {"load": 0.5}, ODD: {"load": 1.0}}},
        "1": {"load": -2.0, "doms": {}},
    },
}
EXPECTED = {
    ("t_runs_total", ()): 7,
    ("t_total", ()): 8,
    ("t_busy", ()): 12.5,
    ("n_load", (("node", "0"),)): 1.5,
    ("n_load", (("node", "1"),)): -2,
    ("d_load", (("domain", "0"), ("node", "0"))): 0.5,
    ("d_load", (("domain", ODD), ("node", "0"))): 1,
}

#: Timeout of operations that normally finish much earlier.
TIMEOUT_S = 60


def answer(request: dict) -> object:
    """The answers of a scheduler that works."""
    return {"errno": 0, "args": {"resp": META if request["req"] == "stats_meta" else STATS}}


class Scheduler:
    """Serves statistics at `path`. `answer` returns the answer to a request."""

    def __init__(self, path: Path, answer: Callable[[dict], object] = answer) -> None:
        self.answer = answer
        self.connections: list[socket.socket] = []
        self.socket = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        self.socket.bind(str(path))
        self.socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        # The loop ends when the socket is shut down.
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rw") as lines:
            for line in lines:
                print(json.dumps(self.answer(json.loads(line))), file=lines, flush=True)

    def close(self) -> None:
        """Closes all sockets, as the end of a killed process does: the socket file remains."""
        for connection in [self.socket, *self.connections]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@pytest.fixture
def program(rust_programs: Path) -> Path:
    return rust_programs / "scxstats"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stats"


@pytest.fixture
def scheduler(path: Path) -> Iterator[Scheduler]:
    with closing(Scheduler(path)) as scheduler:
        yield scheduler


def run(program: Path, *args: str | Path, **options) -> subprocess.CompletedProcess[str]:
    options = {"stdout": subprocess.PIPE} | options
    return subprocess.run(
        [program, *args], stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, **options
    )


def assert_fails(status: int, program: Path, *args: str | Path, **options) -> str:
    """Asserts that the program fails with the status and a message of one line. Returns the
    message."""
    done = run(program, *args, **options)
    assert (done.returncode, done.stdout or "") == (status, "")
    assert re.fullmatch(r"scxstats: .+\n", done.stderr), done.stderr
    return done.stderr


def families(text: str) -> list:
    """The metric families of a text, parsed by the Python client of Prometheus."""
    reason = "needs the Python package prometheus_client"
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason=reason)
    return list(parser.text_string_to_metric_families(text))


def samples(text: str) -> dict[tuple[str, tuple], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(text)
        for sample in family.samples
    }


def test_output_is_valid_for_prometheus(program: Path, path: Path, scheduler: Scheduler) -> None:
    done = run(program, "--openmetrics", "--path", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n# EOF\n")
    assert samples(done.stdout) == EXPECTED
    found = {family.name: (family.type, family.documentation) for family in families(done.stdout)}
    assert found == {
        "t_runs": ("counter", 'Times \\ that "a" task ran'),
        "t": ("counter", ""),
        "t_busy": ("gauge", "CPU time used"),
        "n_load": ("gauge", "Load"),
        "d_load": ("gauge", "Load"),
    }


def test_text_output(program: Path, path: Path, scheduler: Scheduler) -> None:
    done = run(program, "--path", path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["t_busy", "12.5"] in lines
    assert ["d_load", "node=0", "domain=0", "0.5"] in lines


def test_json_is_passed_through(program: Path, path: Path, scheduler: Scheduler) -> None:
    assert json.loads(run(program, "--json", "--path", path).stdout) == STATS


def test_totals_once_and_differences_with_watch(program: Path, path: Path) -> None:
    asked = []

    def noting(request: dict) -> object:
        asked.append(request)
        return answer(request)

    with closing(Scheduler(path, noting)):
        run(program, "--path", path)
        assert [request.get("args") for request in asked] == [None, {"total": "true"}]
        asked.clear()
        with watching(program, path) as watch:
            watch.stdout.readline()
    assert not any("args" in request for request in asked)


@contextmanager
def running(program: Path, *args: str | Path) -> Iterator[subprocess.Popen[str]]:
    """The program runs until the end of the block. Then it is interrupted, and must end with status
    0."""
    pipe = subprocess.PIPE
    with subprocess.Popen([program, *args], stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()


def watching(program: Path, path: Path):
    return running(program, "--watch", "0.1", "--json", "--path", path)


def test_watch_continues_across_restarts(program: Path, path: Path) -> None:
    """scxstats prints one line when the scheduler has ended, and one line when statistics are
    available again."""
    with watching(program, path) as watch:
        assert "waiting for statistics" in watch.stderr.readline()
        for _ in range(2):
            with closing(Scheduler(path)):
                assert json.loads(watch.stdout.readline()) == STATS
                assert watch.stderr.readline() == f"scxstats: {path}: statistics are back\n"
            assert "waiting for statistics" in watch.stderr.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_succeeds(
    program: Path, path: Path, scheduler: Scheduler, number: signal.Signals
) -> None:
    with watching(program, path) as watch:
        watch.stdout.readline()
        watch.send_signal(number)
        assert watch.wait(TIMEOUT_S) == 0


@contextmanager
def listening(program: Path, path: Path) -> Iterator[tuple[str, int, int]]:
    """Host and port of the server, and its pid."""
    with running(program, "--openmetrics", "--listen", "127.0.0.1:0", "--path", path) as server:
        said = server.stderr.readline()
        host, port = re.fullmatch(r"scxstats: http://(.+):(\d+)/metrics\n", said).groups()
        yield host, int(port), server.pid


@pytest.fixture
def server(program: Path, path: Path) -> Iterator[tuple[str, int, int]]:
    with listening(program, path) as server:
        yield server


def get(server: tuple[str, int, int], url: str = "/metrics") -> tuple[str, str]:
    """The content type and the text of the answer."""
    with urllib.request.urlopen(f"http://{server[0]}:{server[1]}{url}", timeout=TIMEOUT_S) as got:
        return got.headers["Content-Type"], got.read().decode()


def test_served_metrics_are_valid_for_prometheus(scheduler: Scheduler, server: tuple) -> None:
    kind, text = get(server)
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert samples(text) == EXPECTED
    assert get(server, "/metrics?name=x")[1] == text
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(server, "/else")


def test_each_scrape_connects_to_the_running_scheduler(path: Path, server: tuple) -> None:
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError, match="503") as error:
            get(server)
        assert b"no scheduler" in error.value.read()
        with closing(Scheduler(path)):
            assert "t_busy{} 12.5\n" in get(server)[1]


def exchange(server: tuple, request: bytes) -> bytes:
    """The answer to a request, up to the end of the connection."""
    with socket.create_connection(server[:2], timeout=TIMEOUT_S) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\xff" * 100, 400),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET /" + b"x" * (1 << 20), 431),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000, 431),
        (b"GET / HTTP/1.1\r\na: " + b"b" * (1 << 20), 431),
    ],
    ids=["tls", "http-0.9", "bytes", "post", "long-line", "headers", "long-header"],
)
def test_wrong_requests_get_an_error(
    scheduler: Scheduler, server: tuple, request_: bytes, status: int
) -> None:
    assert exchange(server, request_).startswith(b"HTTP/1.1 %d " % status)
    assert "t_busy{} 12.5\n" in get(server)[1]


def number_of(what: str, pid: int) -> int:
    """The number of threads (task) or file descriptors (fd) of a process."""
    return len(list(Path(f"/proc/{pid}/{what}").iterdir()))


def test_silent_clients_do_not_block_others(scheduler: Scheduler, server: tuple) -> None:
    get(server)
    before = number_of("task", server[2])
    silent = [socket.create_connection(server[:2], timeout=TIMEOUT_S) for _ in range(40)]
    try:
        silent[0].send(b"GET /met")
        # There are more silent clients than threads. The next client is served when silent clients
        # time out.
        assert "t_busy{} 12.5\n" in get(server)[1]
        assert number_of("task", server[2]) == before
        # The server also closes the connection of an endless request.
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() < began + TIMEOUT_S:
                silent[-1].send(b"x")
                time.sleep(0.1)
    finally:
        for client in silent:
            client.close()


def test_it_waits_for_free_file_descriptors(
    program: Path, path: Path, scheduler: Scheduler
) -> None:
    with listening(program, path) as server:
        in_use = number_of("fd", server[2])
        limit = ["prlimit", "--pid", str(server[2]), f"--nofile={in_use}:"]
        if subprocess.run(limit, capture_output=True).returncode != 0:
            pytest.skip("needs prlimit")
        # Each thread that is blocked in accept4() has already reserved the descriptor of its next
        # client, so accept4() fails only with more clients than threads.
        with ExitStack() as clients:
            for _ in range(40):
                client = socket.create_connection(server[:2], timeout=TIMEOUT_S)
                clients.enter_context(client).sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            time.sleep(0.3)
        subprocess.run([*limit[:-1], "--nofile=100:"], check=True)
        assert "t_busy{} 12.5\n" in get(server)[1]


def test_default_address_is_local(program: Path, path: Path) -> None:
    """The first line on stderr names the address, whether or not the port is in use."""
    command = [program, "--openmetrics", "--listen", "--path", path]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert "127.0.0.1:9988" in server.stderr.readline()
        finally:
            server.kill()


def test_address_in_use_is_reported_in_one_line(program: Path, server: tuple) -> None:
    address = f"{server[0]}:{server[1]}"
    line = assert_fails(1, program, "--openmetrics", "--listen", address)
    assert address in line
    assert "in use" in line


def test_missing_scheduler_is_reported_in_one_line(program: Path, path: Path) -> None:
    for args in ([], ["--json"], ["--openmetrics"]):
        line = assert_fails(1, program, *args, "--path", path)
        assert line.count("No such file") == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: {"errno": 22, "args": {"resp": "not that"}},
        lambda _: {"errno": 0, "args": {"resp": {}}},
        lambda _: {"errno": 0, "args": {"resp": 1}},
        lambda _: "neither",
    ],
    ids=["refused", "nothing", "number", "text"],
)
def test_invalid_answers_are_reported_in_one_line(
    program: Path, path: Path, answer: Callable[[dict], object]
) -> None:
    with closing(Scheduler(path, answer)), listening(program, path) as server:
        assert_fails(1, program, "--path", path)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            get(server)


@pytest.mark.parametrize(
    "args",
    [
        ["--listen"],
        ["--openmetrics", "--listen", "9988"],
        ["--openmetrics", "--json"],
        ["--openmetrics", "--watch", "1"],
        ["--watch", "0"],
        ["--watch", "-1"],
        ["--watch", "nan"],
        ["--path"],
        ["--no-such-option"],
        ["stray"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_status_2(program: Path, args: list[str]) -> None:
    assert_fails(2, program, *args)


PRINTING = [["--help"], ["--version"], ["--generate", "man"], ["--generate", "zsh"], []]


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_closed_pipe_is_not_an_error(
    program: Path, path: Path, scheduler: Scheduler, args: list[str]
) -> None:
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    try:
        done = run(program, *args, "--path", path, stdout=writing_end)
    finally:
        os.close(writing_end)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_full_disk_is_reported_in_one_line(
    program: Path, path: Path, scheduler: Scheduler, args: list[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        assert_fails(1, program, *args, "--path", path, stdout=full)
