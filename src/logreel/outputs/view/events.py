"""Events for the pages of the viewer: server-sent events, from any thread to all pages."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from threading import Lock
from typing import Any

from starlette.types import Receive, Scope, Send

from logreel.outputs.view.limits import HEARTBEAT

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
