"""Bounded queue from the thread that writes a slice to the event loop that sends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Semaphore
from typing import Protocol

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

    def _put_piece(self, piece: bytes) -> None:
        if not self._room.acquire(blocking=False):
            self._lock.release()
            try:
                self._room.acquire()
            finally:
                self._lock.acquire()
                self._since = time.monotonic()
        self._check_in()
        self._give(piece)

    def _give(self, what: bytes | Exception | None) -> None:
        # RuntimeError: the event loop is closed, so no coroutine waits for the piece.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.put_nowait, what)

    # ----------------------------------------------------------------------------------- in the event loop

    async def next(self) -> bytes | None:
        """Return the next piece, None at the end; raises errors of the thread, Disconnected after ``stop``."""
        if self._stopped:
            raise Disconnected
        piece = await self._queue.get()
        if isinstance(piece, Exception):
            raise piece
        self._room.release()
        return piece

    def stop(self) -> None:
        """End the work; the thread stops before its next piece."""
        if not self._stopped:
            self._stopped = True
            self._room.release()
            self._queue.put_nowait(Disconnected())
