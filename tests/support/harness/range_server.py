"""A web server on loopback that counts requests and bytes, and can misbehave in the ways that servers do."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """What a server answers, and what it was asked.

    objects   content by path, without the query
    tag       entity tag; None: none is sent
    ranges    False: whole objects are sent whatever is asked
    statuses  statuses to answer with, one a request, before objects are sent; the last one stays if *forever*
    breaks    number of answers that end in the middle
    stalls    True: no answer comes
    asked     ranges that were asked for
    sent      bytes of content that were sent
    """

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    tag: str | None = '"1"'
    ranges: bool = True
    statuses: list[int] = field(default_factory=list)
    forever: bool = False
    breaks: int = 0
    location: str = ""
    stalls: threading.Event | None = None
    asked: list[str | None] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0

    def put(self, name: str, content: bytes) -> str:
        """Serve *content*; return its address."""
        self.objects[f"/{name}"] = content
        return f"{self.url}/{name}"

    def forget(self) -> None:
        """Count from zero again."""
        self.asked.clear()
        self.headers.clear()
        self.sent = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Served
    raw_requestline: bytes
    # Else each answer waits for an acknowledgement of the system.
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def parse_request(self) -> bool:
        """Read a request as sound clients send it: the parser of e-mails that the base class uses takes far longer."""
        self.requestline = self.raw_requestline.decode("latin-1").rstrip("\r\n")
        self.command, self.path, self.request_version = self.requestline.split(" ")
        self.given = dict[str, str]()
        while line := self.rfile.readline(1 << 16).decode("latin-1").strip():
            name, _, value = line.partition(":")
            self.given[name] = value.strip()
        self.close_connection = self.asked_for("Connection").lower() == "close"
        return True

    def asked_for(self, name: str, default: str = "") -> str:
        """Return the value of a header."""
        return next((value for key, value in self.given.items() if key.lower() == name.lower()), default)

    def _answer(self, status: int, content: bytes = b"", headers: dict[str, str] | None = None) -> None:
        lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n" + "".join(f"{line}\r\n" for line in lines)
        self.wfile.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode("latin-1"))
        if self.command == "HEAD":
            return
        if content and self.served.breaks:
            self.served.breaks -= 1
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
            return
        # Before they are sent: a client that has them may ask for the number at once.
        self.served.sent += len(content)
        self.wfile.write(content)

    def do_GET(self) -> None:
        served = self.served
        wanted = self.asked_for("Range")
        served.asked.append(wanted or None)
        served.headers.append(self.given)
        if served.stalls is not None:
            served.stalls.wait(30)
        if served.statuses:
            self._answer(served.statuses[0] if served.forever else served.statuses.pop(0))
            return
        path = self.path.partition("?")[0]
        if served.location and path not in served.objects:
            self._answer(302, headers={"Location": served.location})
            return
        if path not in served.objects:
            self._answer(404)
            return
        data, tag = served.objects[path], {"ETag": served.tag} if served.tag else {}
        if served.tag and self.asked_for("If-Match", served.tag) != served.tag:
            self._answer(412)
            return
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", wanted)
        if not found or not served.ranges:
            self._answer(200, data, tag)
            return
        start, stop = int(found[1]), min(int(found[2]) + 1, len(data))
        if start >= len(data):
            self._answer(416, headers={"Content-Range": f"bytes */{len(data)}"})
            return
        about = {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}", **tag}
        self._answer(206, data[start:stop], about)

    do_HEAD = do_GET  # noqa: N815 - the name is the method of HTTP


@contextmanager
def serving_ranges() -> Iterator[Served]:
    """Serve objects on a free port of loopback until the end of the block."""
    served = Served()
    handler = type("Handler", (_Handler,), {"served": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        if served.stalls is not None:
            served.stalls.set()
        server.shutdown()
        server.server_close()
        thread.join()
