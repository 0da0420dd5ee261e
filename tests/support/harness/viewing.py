"""A viewer on a local port in a thread of this process, and a client from the standard library."""

from __future__ import annotations

import contextlib
import http.client
import json
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa

from logreel.outputs.view import Viewer
from support.harness.serving import LONG, TOKEN, Reply


class Page:
    """Client of one viewer; asks what the page of a browser asks."""

    def __init__(self, viewer: Viewer, told: list[str]) -> None:
        self.viewer, self.told = viewer, told
        self.port = int(viewer.url.rstrip("/").rpartition(":")[2])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)

    def ask(
        self,
        path: str,
        method: str = "GET",
        token: str | None = TOKEN,
        body: bytes | None = None,
        **headers: str,
    ) -> Reply:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, names, answer.read())

    def get(self, what: str, log: str | None = "0", **given: Any) -> Reply:
        """Return the answer to a request about a log, or about the session for log=None."""
        at = f"/api/logs/{log}/{what}" if log is not None else f"/api/{what}"
        query = urlencode({name.rstrip("_"): value for name, value in given.items()}, doseq=True)
        return self.ask(f"{at}?{query}" if query else at)

    def json(self, what: str, log: str | None = "0", **given: Any) -> Any:
        reply = self.get(what, log, **given)
        assert reply.status == 200, reply.body
        return reply.json

    def arrow(self, what: str, **given: Any) -> pa.Table:
        reply = self.get(what, **given)
        assert reply.status == 200, reply.body
        return pa.ipc.open_stream(reply.body).read_all()


def streams(body: bytes) -> list[pa.Table]:
    """Return the tables of an answer with several streams."""
    found, at = [], 0
    while at < len(body):
        (size,) = struct.unpack_from("<I", body, at)
        found.append(pa.ipc.open_stream(body[at + 4 : at + 4 + size]).read_all())
        at += 4 + size
    return found


@contextlib.contextmanager
def viewing(*logs: Any, **options: Any) -> Iterator[Page]:
    """Yield a client of a viewer that runs until the end of the block; nothing may go wrong inside of the viewer."""
    told: list[str] = []
    with Viewer(logs, **{"token": TOKEN, "tell": told.append, **options}) as viewer:
        yield Page(viewer, told)
    assert not told


def parsed_events(body: bytes) -> list[Any]:
    """Return the events of a piece of a stream of events."""
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
