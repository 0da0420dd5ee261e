"""What one viewer shows: its logs, options and caches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from logreel.errors import NotFoundError
from logreel.log.log import Log
from logreel.meaning.layouts import KeptLayouts
from logreel.meaning.meshes import MeshFolder
from logreel.outputs.http.routes import Flows
from logreel.outputs.view.limits import HEARTBEAT
from logreel.outputs.view.tiles import open_tiles
from logreel.outputs.view.view_log import ViewLog
from logreel.schemas.catalogue import data_folder

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


#: Events that wait for one page; if it does not take them, the oldest are dropped.
WAITING = 256


class Events:
    """Sends events to all pages that listen."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pages: dict[asyncio.Queue[str | None], asyncio.AbstractEventLoop] = {}
        self._closed = False

    def send(self, event: dict[str, Any]) -> None:
        """Send one event; can be called from any thread."""
        self._to_all(f"data: {json.dumps(event)}\n\n")

    def close(self) -> None:
        """End the streams of all pages."""
        self._closed = True
        self._to_all(None)

    def _to_all(self, what: str | None) -> None:
        with self._lock:
            pages = list(self._pages.items())
        for queue, loop in pages:
            # RuntimeError: the event loop is closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_put, queue, what)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the stream of events from now on."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(WAITING)
        with self._lock:
            self._pages[queue] = asyncio.get_running_loop()
        headers = [(b"content-type", b"text/event-stream")]
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            # A first comment, so that the page knows that it is listened to.
            text: str | None = ": hello\n\n"
            while text is not None and not self._closed and not gone.done():
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                text = await _next(queue, gone)
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            with self._lock:
                del self._pages[queue]


def _put(queue: asyncio.Queue[str | None], what: str | None) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(what)


async def _next(queue: asyncio.Queue[str | None], gone: asyncio.Task[None]) -> str | None:
    """Return the next event, a comment if there is none for a while, None when the page has gone."""
    get = asyncio.ensure_future(queue.get())
    done, _ = await asyncio.wait((get, gone), timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
    if get in done:
        return get.result()
    get.cancel()
    return None if gone in done else ": still here\n\n"


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _discard(text: str) -> None:
    """Discard *text*."""


class Session:
    """The logs of a viewer and its options; created before the first request.

    sources  paths, or open Logs
    follow   whether the logs are watched for growth
    layout   a layout to begin with, as JSON data; None: the charts of the first log
    tiles    path or address of map tiles; None: none
    meshes   folder with the files of meshes that descriptions of robots name; None: none
    leaves   whether other machines can see the page: then it shows encrypted logs only with *decrypt*
    tell     called with sentences about files that could not be sent whole
    prepare  called with each log once it is open, in a thread of its own

    flows    the files that are being sent
    layouts  those that the person keeps
    leaves   as above
    """

    def __init__(
        self,
        sources: Sequence[Openable | Log],
        *,
        follow: bool = False,
        layout: Mapping[str, Any] | None = None,
        tiles: str | None = None,
        meshes: str | None = None,
        definitions: Definitions = (),
        decrypt: bool = False,
        leaves: bool = False,
        tell: Callable[[str], None] = _discard,
        prepare: Callable[[ViewLog], None] | None = None,
    ) -> None:
        self.flows, self.tell, self.leaves = Flows(), tell, leaves
        self.follow, self.layout = follow, layout
        folder = None if leaves else data_folder()
        why = "other machines can see this viewer: it writes nothing" if leaves else "LOGREEL_DATA is off"
        self.layouts = KeptLayouts(None if folder is None else folder / "layouts.json", why)
        self.map_tiles = None if tiles is None else open_tiles(tiles)
        self.meshes = None if meshes is None else MeshFolder(Path(meshes))
        self.events = Events()
        self.logs = [
            ViewLog(str(i), source, self.events.send, definitions, follow, decrypt, leaves, prepare)
            for i, source in enumerate(sources)
        ]

    def log(self, id: str) -> ViewLog:
        """Return a log by its id; raises NotFoundError."""
        for opened in self.logs:
            if opened.id == id:
                return opened
        raise NotFoundError("log", id, [opened.id for opened in self.logs])

    def close(self) -> None:
        """End the streams of events and of files, and close the logs."""
        self.flows.stop()
        self.events.close()
        for opened in self.logs:
            opened.close()
