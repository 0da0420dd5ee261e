"""Clients that send half requests, take nothing, or ask with expensive expressions keep nobody else out."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import logreel
from logreel.errors import UsageError
from logreel.ops.edit.recipe import new_topics
from logreel.outputs.http import server as connection
from logreel.outputs.http.server import CONNECTIONS
from support.harness.serving import TOKEN, Client, received, running
from support.samples.ulog.builder import Builder, flight


@pytest.fixture
def client(tmp_path: Path):
    (tmp_path / "flight.ulg").write_bytes(flight(1))
    with running(tmp_path) as client:
        yield client


def closed_within(stream: socket.socket, seconds: float) -> bool:
    """Return whether the server closes a connection."""
    stream.settimeout(seconds)
    with contextlib.suppress(ConnectionError):
        while stream.recv(1 << 16):
            pass
    return True


def test_half_requests_are_closed_and_shut_nobody_out(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 1.0)
    heads = [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
    ]
    streams = [socket.create_connection((client.host, client.port)) for _ in range(60)]
    try:
        for n, stream in enumerate(streams):
            stream.sendall(heads[n % 3])
        assert client.ask("/logs").status == 200
        assert all(closed_within(stream, 60) for stream in streams)
    finally:
        for stream in streams:
            stream.close()
    assert client.ask("/logs").status == 200


def test_half_requests_of_one_client_give_way_to_its_whole_ones(client: Client) -> None:
    streams = []
    try:
        for n in range(connection.PER_CLIENT * 2):
            stream = socket.create_connection((client.host, client.port))
            stream.sendall(b"GET /logs HTTP/1.1\r\nHost: localhost\r\n"[: n % 30])
            streams.append(stream)
        # Without waiting for the time of a head.
        assert client.ask("/logs").status == 200
        assert len(client.service._server._server.server_state.connections) <= connection.PER_CLIENT + 1
        assert closed_within(streams[0], 60)
    finally:
        for stream in streams:
            stream.close()


def test_one_client_cannot_have_all_connections(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection.PER_CLIENT < CONNECTIONS
    monkeypatch.setattr(connection, "PER_CLIENT", 20)
    streams = [client.raw("/logs") for _ in range(20)]
    try:
        for stream in streams:
            assert stream.recv(100).startswith(b"HTTP/1.1 200")
        with socket.create_connection((client.host, client.port)) as refused:
            refused.settimeout(60)
            assert refused.recv(100).startswith(b"HTTP/1.1 503")
    finally:
        for stream in streams:
            stream.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            if client.ask("/logs").status == 200:
                return
        time.sleep(0.05)
    raise AssertionError("connections that were closed still count")


def test_a_client_that_takes_nothing_is_dropped(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SLOW_SECONDS", 0.5)
    dropped, give_up = threading.Event(), connection.LimitedConnection.give_up

    def noted(self: connection.LimitedConnection) -> None:
        give_up(self)
        dropped.set()

    monkeypatch.setattr(connection.LimitedConnection, "give_up", noted)
    # More than the system keeps for a connection.
    out = (
        Builder(start_us=1)
        .flags()
        .format("blob:uint64_t timestamp;uint8_t[60000] data;")
        .subscribe("blob", 0)
    )
    for n in range(300):
        out.data(0, struct.pack("<Q", n) + bytes(60000))
    (tmp_path / "long.ulg").write_bytes(out.bytes())
    path = client.path("long.ulg")
    size = (tmp_path / "long.ulg").stat().st_size
    stream = client.raw(path, buffer=4096)
    assert dropped.wait(60)
    assert len(received(stream)) < size
    assert client.ask("/logs").status == 200


def test_an_expensive_expression_is_answered_at_once(tmp_path: Path) -> None:
    path = tmp_path / "flight.ulg"
    path.write_bytes(flight(1))
    log = logreel.open(path)
    before = time.process_time()
    for pattern in ("re:(a+)+$", "re:(v|ve|veh|e|h)*(i|c|l|e|_|a|t)*x", "re:(.*)*(.*)*(.*)*!"):
        with pytest.raises(logreel.TopicError):
            log.match(pattern)
        with pytest.raises(logreel.TopicError):
            log.match(f"type={pattern}")
    assert time.process_time() - before < 20
    assert [ch.topic for ch in log.match("re:vehicle_att.tude")] == ["vehicle_attitude"]
    for wrong in ("re:(", "re:a)(b", r"re:(a)\1", "re:(?=a)"):
        with pytest.raises(logreel.UsageError, match="not a regular expression"):
            log.match(wrong)


@pytest.mark.parametrize("pieces", [1, 40])
def test_the_head_limit_is_16_kib_however_the_head_arrives(client: Client, pieces: int) -> None:
    for extra, expected in ((0, b"200"), (1, b"431")):
        head = f"GET /logs?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n".encode()
        head = head.replace(b"X: ", b"X: " + b"x" * ((16 << 10) + extra - len(head)))
        with socket.create_connection((client.host, client.port)) as stream:
            stream.settimeout(60)
            step = -(-len(head) // pieces)
            for at in range(0, len(head), step):
                stream.sendall(head[at : at + step])
                time.sleep(0.002)
            assert stream.recv(100).split()[1] == expected


def test_patterns_of_a_recipe_take_linear_time() -> None:
    """Recipes and contracts may come from others; Python's expressions would take years for some."""
    topics = ["/" + "a" * 60, "/b", "/b" * 400]
    before = time.process_time()
    for old in (
        "re:/(a+)+$!",
        "re:/(a|aa)*(a|aa)*(a|aa)*!",
        "/" + "*a" * 12 + "!",
        "*" * 200 + "!",
        "*a*b*a*b*a*b*a*b!",
    ):
        with pytest.raises(logreel.TopicError):
            new_topics(topics, {old: "x"})
    assert not any(fnmatchcase(topic, "*b" * 30 + "!") for topic in topics)
    assert time.process_time() - before < 20


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("/robot*/imu", "/{}/{}", UsageError),
        ("/robot*/imu", "/{}x{1}{0}", "/1x1/robot1/imu"),
        ("/r?bot[0-9]/*", "/{3}.{2}.{1}", "/imu.1.o"),
        ("re:/(robot)([0-9])(/x)?/(?P<what>.+)", "/{4}{1}{2}<{3}>", "/imurobot1<>"),
        ("re:/" + "(.)" * 10, "{9}", "m"),
        ("re:/" + "(.)" * 10, "{10}", UsageError),
        (r"re:(/)\1", "x", UsageError),
        ("re:(", "x", UsageError),
        ("/[]", "x", logreel.TopicError),
    ],
)
def test_groups_of_patterns_fill_new_names(old: str, new: str, expected: str | type[Exception]) -> None:
    if isinstance(expected, str):
        assert new_topics(["/robot1/imu"], {old: new}) == {"/robot1/imu": expected}
        return
    with pytest.raises(expected):
        new_topics(["/robot1/imu"], {old: new})


def test_a_usual_port_is_taken_if_it_is_free() -> None:
    with connection.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert connection.free_or_any("127.0.0.1", port) == 0
    assert connection.free_or_any("127.0.0.1", port) == port
