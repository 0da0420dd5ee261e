"""A service on a local port in a thread of this process, and a client from the standard library."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from logreel.outputs.serve import Service

TOKEN = "a-token-of-the-tests"
#: Seconds that anything may take.
LONG = 300.0


class Reply(NamedTuple):
    """Reply to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Client:
    """Client of one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        parts = urlsplit(service.url)
        self.host, self.port = parts.hostname or "", parts.port or 0
        self.log_lines: list[str] = []

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=LONG)

    def ask(self, path: str, method: str = "GET", token: str | None = TOKEN, **headers: str) -> Reply:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, headers=given)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, names, answer.read())

    def ids(self) -> dict[str, str]:
        """Return the id of each log by its name."""
        return {one["name"]: one["id"] for one in self.ask("/logs").json["logs"]}

    def path(self, name: str, **wish: Any) -> str:
        """Return the URL path of a slice; values of parameters may be lists."""
        return f"/logs/{self.ids()[name]}/slice?{urlencode(wish, doseq=True)}"

    def slice(self, name: str, **wish: Any) -> Reply:
        return self.ask(self.path(name, **wish))

    def raw(self, path: str, version: str = "1.1", extra: str = "", buffer: int = 0) -> socket.socket:
        """Return a connection with a sent request for a slice, of which nothing was read yet."""
        connection = socket.socket()
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.settimeout(LONG)
        connection.connect((self.host, self.port))
        head = f"GET {path} HTTP/{version}\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{extra}\r\n"
        connection.sendall(head.encode())
        return connection


def received(connection: socket.socket) -> bytes:
    """Return all bytes up to the end of the connection."""
    found = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            found += piece
    connection.close()
    return bytes(found)


@contextlib.contextmanager
def running(*paths: Any, **options: Any) -> Iterator[Client]:
    """Yield a client of a service that runs until the end of the block."""
    log_lines: list[str] = []
    service = Service(paths, **{"token": TOKEN, "tell": log_lines.append, **options})
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        client = Client(service)
        client.log_lines = log_lines
        yield client
    finally:
        service.stop()
        thread.join(LONG)
    assert not thread.is_alive()


def workers() -> list[threading.Thread]:
    """Return the threads that write slices."""
    return [one for one in threading.enumerate() if one.name == "logreel-slice"]


def eventually(happens: Callable[[], Any]) -> bool:
    """Return whether a condition becomes true within LONG seconds."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        if happens():
            return True
        time.sleep(0.01)
    return False
