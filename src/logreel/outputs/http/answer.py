"""Answers of HTTP services: a slice that is streamed while it is written, and one sentence for a request that failed.

A stream is aborted if it cannot be completed, so that no client takes a part for the whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock, Semaphore, Thread
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from logreel.errors import LogError, NotFoundError, UsageError
from logreel.io.append_file import Appender
from logreel.io.two_pass import DryRun, Edit, StreamOut

#: Maximum number of pieces that wait to be sent.
AHEAD = 4
#: Seconds after which a thread releases the lock of the log for others.
TURN = 0.02


class Disconnected(Exception):
    """Raised when the client has disconnected."""


class Stream(Protocol):
    """What can be sent; see SliceStream."""

    name: str
    media: str
    skipped: list[str]

    @property
    def forward(self) -> bool: ...

    def write(self, out: Appender) -> None: ...


class Flow:
    """One response on its way; created in the event loop.

    lock   lock of the log, held by the thread while it works and released while it waits
    check  called between pieces; raises to end the work, e.g. when the file has changed

    size   bytes of the whole response, if known when the first piece arrives; else None
    """

    def __init__(self, lock: Lock, check: Callable[[], None]) -> None:
        self._lock, self._check = lock, check
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._room = Semaphore(AHEAD)
        self._stopped, self._since = False, 0.0
        self.size: int | None = None

    # ------------------------------------------------------------------------------------- in the thread

    def run(self, stream: Stream, sized: bool) -> None:
        """Write the slice; *sized*: determine its size first. Errors are raised by ``next``."""
        last: Exception | None = None
        try:
            with self._lock:
                self._since = time.monotonic()
                self._write(stream, sized)
                self._check_in()
        except Disconnected:
            return
        except Exception as error:
            # A traceback would keep the data of the thread alive.
            last = error.with_traceback(None)
        self._give(last)

    def _write(self, stream: Stream, sized: bool) -> None:
        edits: list[Edit] = []
        if sized or not stream.forward:
            dry_run = DryRun(stream.name, self._check_in, stream.write)
            stream.write(dry_run)
            edits = dry_run.edits
            self.size = dry_run.tell()
            content = dry_run.content
            if content is not None:
                self._put_piece(content)
                return
        stream.write(StreamOut(stream.name, self._put_piece, edits, self._check_in, stream.write))

    def _check_in(self) -> None:
        """Raise Disconnected or the error of *check*; release the lock for a moment if it was held for TURN seconds."""
        if self._stopped:
            raise Disconnected
        self._check()
        if time.monotonic() - self._since > TURN:
            self._lock.release()
            time.sleep(0.0005)
            self._lock.acquire()
            self._since = time.monotonic()

    def _put_piece(self, data: bytes) -> None:
        if not self._room.acquire(blocking=False):
            self._lock.release()
            try:
                self._room.acquire()
            finally:
                self._lock.acquire()
                self._since = time.monotonic()
        self._check_in()
        self._give(data)

    def _give(self, what: bytes | Exception | None) -> None:
        # RuntimeError: the event loop is closed, so no coroutine waits for the piece.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.put_nowait, what)

    # ----------------------------------------------------------------------------------- in the event loop

    async def next(self) -> bytes | None:
        """Return the next piece, None at the end; raises errors of the thread, Disconnected after ``stop``."""
        if self._stopped:
            raise Disconnected
        data = await self._queue.get()
        if isinstance(data, Exception):
            raise data
        self._room.release()
        return data

    def stop(self) -> None:
        """End the work; the thread stops before its next piece."""
        if not self._stopped:
            self._stopped = True
            self._room.release()
            self._queue.put_nowait(Disconnected())


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


class StreamAnswer:
    """ASGI application that sends a slice, or another stream.

    lost, skipped  for the headers: places where the logs lost data, logs that are left out
    logs           number of logs that are read
    """

    def __init__(
        self,
        cached: Locked,
        stream: Stream,
        flows: Flows,
        tell: Tell,
        lost: int,
        skipped: int = 0,
        logs: int = 1,
    ) -> None:
        self._cached, self._stream, self._flows, self._tell = cached, stream, flows, tell
        self._lost, self._skipped, self._logs = lost, skipped, logs

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
        self._flows.add(flow, self._logs)
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
        data = await flow.next()
        headers = self.headers(0 if data is None else flow.size)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            while data is not None:
                body = {"type": "http.response.body", "body": data, "more_body": True}
                await asyncio.wait_for(send(body), PATIENCE)
                data = await flow.next()
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


class ErrorAnswers:
    """Exception handlers of one service.

    tell      called with a sentence about an error of the service itself
    nothing   sentence for an address that does not exist
    broken    sentence for an error of the service itself
    statuses  status of further LogErrors, by class
    """

    def __init__(
        self, tell: Tell, nothing: str, broken: str, statuses: Mapping[type[LogError], int] | None = None
    ) -> None:
        self._tell, self._nothing, self._broken = tell, nothing, broken
        self._statuses = dict(statuses or {})

    @property
    def handlers(self) -> Any:
        """Handlers by class, as Starlette takes them."""
        return dict.fromkeys((LogError, OSError, HTTPException, Exception), self._failed)

    async def _failed(self, request: Request, error: Exception) -> Response:
        headers = None
        match error:
            case HTTPException():
                status, headers = error.status_code, error.headers
                text = self._nothing if status == 404 else error.detail
            case UsageError():
                status, text = 400, error.text
            case NotFoundError() | FileNotFoundError():
                status, text = 404, getattr(error, "text", "the file is gone")
            case LogError():
                known = (code for error_type, code in self._statuses.items() if isinstance(error, error_type))
                status, text = next(known, 422), error.text
            case _:
                status, text = 500, self._broken
                self._tell(f"{request.url.path}: {error!r}")
        return JSONResponse({"error": text}, status, headers)
