"""HTTP response with a slice: streamed while it is written, and aborted if it cannot be completed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from threading import Lock, Thread
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from logreel.errors import LogError
from logreel.outputs.serve.flow import Disconnected, Flow, Stream
from logreel.outputs.serve.log_cache import LogsTogether

#: Maximum number of slices sent at the same time; further requests get 503.
MOST = 64
#: Maximum number of logs that they read, where a slice joins several.
LOGS = 400
#: Seconds without progress after which a client is given up.
PATIENCE = 60.0
Tell = Callable[[str], None]


class Locked(Protocol):
    """Logs that are read by one thread at a time; *check* raises if they must not be read any more."""

    @property
    def lock(self) -> Lock: ...

    def check(self) -> None: ...


class Flows:
    """The responses that are being sent."""

    def __init__(self) -> None:
        self._all: dict[Flow, int] = {}
        self._closed = False

    def add(self, flow: Flow, logs: int = 1) -> None:
        """Register a response that reads so many *logs*; raises HTTPException 503 if there are too many."""
        is_full = bool(self._all) and sum(self._all.values()) + logs > LOGS
        if self._closed or len(self._all) >= MOST or is_full:
            text = f"{len(self._all)} slices are being sent already: try again later"
            raise HTTPException(503, text, {"Retry-After": "1"})
        self._all[flow] = logs

    def drop(self, flow: Flow) -> None:
        """Stop and unregister a response."""
        flow.stop()
        self._all.pop(flow, None)

    def stop(self) -> None:
        """Abort all responses, and accept no more."""
        self._closed = True
        for flow in self._all:
            flow.stop()


class Answer:
    """ASGI application that sends a slice, or another stream.

    lost, skipped  for the headers: places where the logs lost data, logs that are left out
    """

    def __init__(
        self,
        cached: Locked,
        stream: Stream,
        flows: Flows,
        tell: Tell,
        lost: int,
        skipped: int = 0,
    ) -> None:
        self._cached, self._stream, self._flows, self._tell = cached, stream, flows, tell
        self._lost, self._skipped = lost, skipped

    def headers(self, size: int | None) -> list[tuple[bytes, bytes]]:
        """Return the headers of the response; *size* in bytes, None if unknown."""
        known = {
            "content-type": self._stream.media,
            "content-disposition": f'attachment; filename="{self._stream.name}"',
            "logreel-lost": str(self._lost),
            "logreel-skipped": str(len(self._stream.skipped) + self._skipped),
        }
        if size is not None:
            known["content-length"] = str(size)
        return [(name.encode(), value.encode()) for name, value in known.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.headers(None)})
            await send({"type": "http.response.body", "body": b""})
            return
        flow = Flow(self._cached.lock, self._cached.check)
        self._flows.add(flow, len(self._cached) if isinstance(self._cached, LogsTogether) else 1)
        # HTTP 1.0 has no chunks, so the client needs Content-Length to detect an aborted response.
        sized = scope["http_version"] == "1.0"
        Thread(target=flow.run, args=(self._stream, sized), name="logreel-slice", daemon=True).start()
        watcher = asyncio.create_task(_watch(receive, flow))
        try:
            await self._send(flow, send)
        except Disconnected:
            pass
        finally:
            watcher.cancel()
            self._flows.drop(flow)

    async def _send(self, flow: Flow, send: Send) -> None:
        # An error before the first piece is raised, and becomes an error response.
        piece = await flow.next()
        headers = self.headers(0 if piece is None else flow.size)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            while piece is not None:
                body = {"type": "http.response.body", "body": piece, "more_body": True}
                await asyncio.wait_for(send(body), PATIENCE)
                piece = await flow.next()
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            self._tell(f"{self._stream.name}: broken off: nothing was taken for {PATIENCE:.0f} s")
        except Disconnected:
            raise
        except Exception as error:
            # Returning without the end of the body closes the connection, which the client detects.
            why = error.text if isinstance(error, LogError) else repr(error)
            self._tell(f"{self._stream.name}: broken off: {why}")


async def _watch(receive: Receive, flow: Flow) -> None:
    """Stop the flow when the client disconnects."""
    with contextlib.suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
        flow.stop()
