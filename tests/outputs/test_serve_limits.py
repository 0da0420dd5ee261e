"""Clients that send half requests, take nothing, or ask with expensive expressions keep nobody else out."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

import logreel
from logreel.formats.ulog.sample.builder import Builder, flight
from logreel.outputs.http import connection
from logreel.outputs.http.server import CONNECTIONS
from support.harness.serving import Client, received, running


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


def test_one_client_cannot_have_all_connections(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection.PER_CLIENT < CONNECTIONS
    monkeypatch.setattr(connection, "PER_CLIENT", 20)
    streams = [socket.create_connection((client.host, client.port)) for _ in range(20)]
    try:
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
    dropped, give_up = threading.Event(), connection.LimitedConnection._give_up

    def noted(self: connection.LimitedConnection) -> None:
        give_up(self)
        dropped.set()

    monkeypatch.setattr(connection.LimitedConnection, "_give_up", noted)
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
