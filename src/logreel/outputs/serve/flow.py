"""From the thread that makes bytes to the event loop that sends them: a few pieces ahead, never more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Semaphore

from logreel.io.two_pass import DryRun, Edit, StreamOut
from logreel.outputs.sending import Sending

#: Pieces that wait to be sent at most.
AHEAD = 4
#: Seconds after which others that wait for the same log have their turn.
TURN = 0.02


class Gone(Exception):
    """Whoever asked does not want it any more."""


class Flow:
    """One answer on its way; made in the event loop.

    turn   the lock of the log, held by the thread that works and let go while it waits
    check  raises what ends the work, for instance when the file was changed

    size   bytes of the whole answer, where that is known when the first of them comes
    """

    def __init__(self, turn: Lock, check: Callable[[], None]) -> None:
        self._turn, self._check = turn, check
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._room = Semaphore(AHEAD)
        self._gone, self._since = False, 0.0
        self.size: int | None = None

    # ------------------------------------------------------------------------------------- in the thread

    def run(self, sending: Sending, sized: bool) -> None:
        """Make everything; *sized*: learn its size first. What goes wrong comes out of ``next``."""
        last: Exception | None = None
        try:
            with self._turn:
                self._since = time.monotonic()
                self._make(sending, sized)
                self._go_on()
        except Gone:
            return
        except Exception as error:
            # A traceback would keep what the thread was working with.
            last = error.with_traceback(None)
        self._give(last)

    def _make(self, sending: Sending, sized: bool) -> None:
        edits: list[Edit] = []
        if sized or not sending.forward:
            dry_run = DryRun(sending.name, self._go_on, sending.make)
            sending.make(dry_run)
            edits = dry_run.edits
            self.size = dry_run.tell()
            content = dry_run.content
            if content is not None:
                self._take(content)
                return
        sending.make(StreamOut(sending.name, self._take, edits, self._go_on, sending.make))

    def _go_on(self) -> None:
        """Between two pieces of work: whether to go on, and whether somebody else has waited long enough."""
        if self._gone:
            raise Gone
        self._check()
        if time.monotonic() - self._since > TURN:
            self._turn.release()
            time.sleep(0.0005)
            self._turn.acquire()
            self._since = time.monotonic()

    def _take(self, piece: bytes) -> None:
        if not self._room.acquire(blocking=False):
            self._turn.release()
            try:
                self._room.acquire()
            finally:
                self._turn.acquire()
                self._since = time.monotonic()
        self._go_on()
        self._give(piece)

    def _give(self, what: bytes | Exception | None) -> None:
        # When the loop is closed nobody waits any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.put_nowait, what)

    # ----------------------------------------------------------------------------------- in the event loop

    async def next(self) -> bytes | None:
        """The next piece, None at the end; raises what went wrong, Gone after ``stop``."""
        if self._gone:
            raise Gone
        piece = await self._queue.get()
        if isinstance(piece, Exception):
            raise piece
        self._room.release()
        return piece

    def stop(self) -> None:
        """End the work; the thread notices before its next piece."""
        if not self._gone:
            self._gone = True
            self._room.release()
            self._queue.put_nowait(Gone())
