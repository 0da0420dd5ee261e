"""Requests of attackers to all servers: none of 250 is served, while the requests of the user are."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

import logreel
from logreel.outputs.sinks import sink
from logreel.outputs.sinks.foxglove import Foxglove
from support.harness.serving import TOKEN, running
from support.harness.viewing import viewing
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import tiny

pytest.importorskip("foxglove")

#: Head of a WebSocket handshake, after the first line and Host.
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: foxglove.sdk.v1\r\n"
)
BEARER = f"Authorization: Bearer {TOKEN}\r\n"


class Door(NamedTuple):
    """A server: its port, the path that the user asks for, headers of that request, status of the answer to it."""

    name: str
    port: int
    path: str
    headers: str
    status: int
    in_query: bool


@contextlib.contextmanager
def foxglove() -> Iterator[Foxglove]:
    """Play a bag to Foxglove in a thread."""
    out = sink("foxglove", port="0", token=TOKEN)
    assert isinstance(out, Foxglove)
    opened = threading.Event()
    out.say = lambda text: opened.set()
    with logreel.open(drive()) as log, logreel.Player(log, sink=out) as player:
        player.start()
        assert opened.wait(60)
        yield out


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Door]]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "tiny.ulg").write_bytes(tiny())
    with running(folder) as client, viewing(folder / "tiny.ulg") as page, foxglove() as out:
        yield [
            Door("serve", client.port, "/logs", "", 200, True),
            Door("view", page.port, "/api/logs/0/overview", "", 200, False),
            Door("foxglove", out.port, "/", UPGRADE, 101, True),
        ]


def answered(port: int, request: bytes, seconds: float = 20.0) -> bytes:
    """Return what a server answers up to the end of the connection, or to the end of a head that switches protocols."""
    got = b""
    with (
        contextlib.suppress(ConnectionError),
        socket.create_connection(("127.0.0.1", port), seconds) as stream,
    ):
        with contextlib.suppress(ConnectionError):
            stream.sendall(request)
        while piece := stream.recv(1 << 16):
            got += piece
            if got.startswith(b"HTTP/1.1 101") and b"\r\n\r\n" in got:
                break
    return got


def status(answer: bytes) -> int:
    """Return the status of an answer; 0 if the connection was closed without one."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def request(
    door: Door,
    *,
    method: str = "GET",
    path: str = "",
    host: str = "localhost",
    more: str = BEARER,
    own: str | None = None,
) -> bytes:
    """Return a request that is served unless an argument makes it hostile."""
    own = door.headers if own is None else own
    end = "" if "upgrade" in own.lower() else "Connection: close\r\n"
    named = f"Host: {host}\r\n" if host else ""
    return f"{method} {path or door.path} HTTP/1.1\r\n{named}{more}{own}{end}\r\n".encode("latin-1")


NAMES = (
    "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "localtest.me",
    "10.0.0.1", "192.168.0.1:8765", "[::2]", "localhost@evil.example", "evil.example#localhost", "a b", "",
    "localhost, evil.example", "2130706433", "0x7f000001", "127.1", "localhost:99999999", "localh\xf6st", "lo%63alhost",
    "rebind.evil.example:80",
)  # fmt: skip
ORIGINS = (
    "https://evil.example", "http://evil.example", "null", "https://app.foxglove.dev.evil.example", "http://localhost:1",
    "https://localhost", "http://localhost.evil.example", "chrome-extension://abcdef", "https://foxglove.dev",
    "http://app.foxglove.dev", "https://app.foxglove.dev:444",
    "file:///etc/passwd", "*", "https://app.foxglove.dev, null",
    "http://127.0.0.1:1", "javascript:alert(1)",
)  # fmt: skip
TOKENS = (
    "", "Authorization: Bearer\r\n", "Authorization: Bearer \r\n", f"Authorization: Bearer {TOKEN[:-1]}\r\n",
    f"Authorization: Bearer {TOKEN[: len(TOKEN) // 2]}\r\n", f"Authorization: Bearer {TOKEN}x\r\n",
    f"Authorization: Bearer {TOKEN.upper()}\r\n", f"Authorization: Basic {TOKEN}\r\n", f"Authorization: {TOKEN}\r\n",
    f"Authorization: Bearer {TOKEN} {TOKEN}\r\n", f"{BEARER}Authorization: Bearer wrong\r\n", f"X-{BEARER}",
    f"Cookie: token={TOKEN}\r\n", f"Proxy-{BEARER}", f"Authorization: Bearer {'x' * 5000}\r\n",
)  # fmt: skip
QUERIES = (
    "token=",
    "token=wrong",
    f"token={TOKEN[:-1]}",
    f"token=wrong&token={TOKEN}",
    f"TOKEN={TOKEN}",
    "token[]=x",
)
PATHS = (
    "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "/..%5c..%5cetc", "//etc/passwd",
    "/logs/..%2f..%2f..%2fetc%2fpasswd/slice", "/logs/%2Fetc%2Fpasswd", "/static/../../../pyproject.toml",
    "/static/..%2f..%2fapp.py", "/api/logs/0/../../../etc/passwd", "/%00", "/logs/%00/slice", "/.git/config", "/%ff%fe",
    "/api/logs/-1/overview", "/api/logs/0%2f..%2f1/overview",
)  # fmt: skip
METHODS = ("POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "OPTIONS", "PROPFIND", "get", "BREW")
BAD_HEADS: tuple[Callable[[bytes], bytes], ...] = (
    lambda good: good.replace(b"Host: ", b"Host : "),
    lambda good: good.replace(b"Host: localhost\r\n", b"Host: localhost\r\nHost: evil.example\r\n"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\nContent-Length: -1\r\n\r\n"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: xchunked\r\n\r\n"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked, identity\r\n\r\n"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\nX: a\x00b\r\n\r\n"),
    lambda good: good.replace(b"HTTP/1.1", b"HTP/1.1"),
    lambda good: good.replace(b"HTTP/1.1", b"HTTP/1.1\r\nevil"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\nX: " + b"x" * (64 << 10) + b"\r\n\r\n"),
    lambda good: good.replace(b"\r\n\r\n", b"\r\n" + b"X: y\r\n" * 4000 + b"\r\n"),
    lambda good: good.replace(b"GET /", b"GET /?" + b"x" * (32 << 10), 1),
    lambda good: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n",
    lambda good: b"\x00" * (20 << 10),
)  # fmt: skip


def hostile(door: Door) -> Iterator[tuple[str, bytes]]:
    """Yield a name and the bytes of each hostile request to a server."""
    for host in NAMES:
        yield f"Host {host}", request(door, host=host)
    for origin in ORIGINS:
        yield f"Origin {origin}", request(door, more=f"{BEARER}Origin: {origin}\r\n")
        asks = f"Origin: {origin}\r\nAccess-Control-Request-Method: GET\r\n"
        if door.name != "foxglove":
            yield f"preflight {origin}", request(door, method="OPTIONS", more=asks)
    for token in TOKENS:
        yield f"token {token}", request(door, more=token)
    for query in QUERIES:
        yield f"query {query}", request(door, path=f"{door.path}?{query}", more="")
    for path in PATHS:
        yield f"path {path}", request(door, path=path)
    for method in METHODS:
        yield f"method {method}", request(door, method=method)
    for n, change in enumerate(BAD_HEADS):
        yield f"head {n}", change(request(door))
    if not door.in_query:
        yield "token where it is not taken", request(door, path=f"{door.path}?token={TOKEN}", more="")
    if door.name == "foxglove":
        whole = UPGRADE.splitlines(keepends=True)
        for line in whole:
            yield f"no {line}", request(door, own=UPGRADE.replace(line, ""))
        yield "other version", request(door, own=UPGRADE.replace("13", "8"))
        yield "short key", request(door, own=UPGRADE.replace("dGhlIHNh", ""))
        yield "body", request(door, own=UPGRADE + "Content-Length: 5\r\n") + b"hello"
        yield "chunks", request(door, own=UPGRADE + "Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n"
        yield "second request", request(door) + request(door)
        yield "folded protocol", request(door, own=UPGRADE.replace("foxglove.sdk.v1", "a\r\n b: c"))
    else:
        yield "handshake without token", request(door, more="", own=UPGRADE)
        yield (
            "smuggled",
            request(door, more="Content-Length: 4\r\nTransfer-Encoding: chunked\r\n")
            + b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        )


def test_none_of_250_hostile_requests_is_served(doors: list[Door]) -> None:
    asked, served = [], []
    for door in doors:
        assert status(answered(door.port, request(door))) == door.status, "the request of the user"
        for name, data in hostile(door):
            asked.append((door.name, name))
            answer = answered(door.port, data)
            if not (status(answer) == 0 or 400 <= status(answer) < 600) or b"sensor" in answer:
                served.append((door.name, name, answer[:80]))
        assert status(answered(door.port, request(door))) == door.status, (
            "the request of the user, afterwards"
        )
    assert served == []
    assert len(set(asked)) == len(asked) >= 250
