"""Writing a log to a stream that cannot go back: a dry run first finds what the FormatWriter changes later.

A FormatWriter appends, and some go back at the end to fill in late facts: the position of the index, the duration of a
frame. Bytes that have been sent cannot be changed. So the same FormatWriter writes the same log twice: first to a
DryRun, which keeps only sizes and these changes, then to a StreamOut, which applies each change in its turn.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from logreel.dataclass import dataclass
from logreel.errors import LogError, UnsupportedError
from logreel.io.append_file import Appender, Piece
from logreel.io.source import SPOOL_BYTES

#: Bytes sent at once.
PIECE = 128 << 10
#: Greatest size in bytes of a log that its DryRun keeps, so that it is not written twice.
KEPT = 1 << 20

Take = Callable[[bytes], object]
Make = Callable[[Appender], object]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Edit:
    """A change: the *size* bytes appended at *place* become *content*, which may have another size."""

    place: int
    size: int
    content: bytes


def _do_nothing() -> None:
    """Do nothing: the default of ``go_on``."""


def send(name: str, take: Take, make: Make, forward: bool) -> int:
    """Write a log to *take*, piece by piece, and return its size.

    make     writes the log to an Appender; called several times, always with the same result
    forward  True: *make* never changes bytes that it has appended, so that they are sent while it runs; False: they
             are sent by its second run
    """
    edits: list[Edit] = []
    if not forward:
        dry_run = DryRun(name, make=make)
        make(dry_run)
        content = dry_run.content
        if content is not None:
            take(content)
            return len(content)
        edits = dry_run.edits
    out = StreamOut(name, take, edits, make=make)
    make(out)
    return out.tell()


class _Forward(Appender):
    """An Appender whose bytes cannot be read again; ``again`` produces them by writing the log again.

    go_on  called between pieces of work; raises to cancel it
    make   writes the same log to another Appender
    """

    readable = False

    def __init__(self, name: str, go_on: Callable[[], None] = _do_nothing, make: Make | None = None) -> None:
        self.name, self._go_on, self._make = name, go_on, make

    def check(self) -> None:
        """Raise the error of ``go_on``, if it cancels the work."""
        self._go_on()

    def commit(self) -> None:
        """Do nothing: bytes are accepted immediately."""

    def flush(self, sync: bool = False) -> None:
        """Do nothing: bytes are accepted immediately."""
        self.check()

    def put(self, piece: Piece) -> None:
        """Append bytes."""
        self.write(piece)

    def lend(self, size: int) -> memoryview:
        """Return *size* bytes of memory, to be filled and passed to ``give``."""
        return memoryview(bytearray(size))

    def give(self, piece: Piece) -> None:
        """Append bytes."""
        self.write(piece)

    def again(self, take: Take, upto: int) -> None:
        """Pass the bytes up to *upto* to *take* again, in pieces, by writing the log again."""
        if self._make is None:
            raise UnsupportedError(
                "cannot be sent while it is written: it has to be read again", path=self.name
            )
        with suppress(_Enough):
            self._make(_Again(self.name, self._go_on, take, upto))

    def finish(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing."""


class _Enough(Exception):
    """Raised to end writing when enough bytes have been passed on."""


class _Again(_Forward):
    """An Appender that passes the first *size* bytes to *take*."""

    #: Bytes after *size* are not needed, so nothing has to be read back.
    readable = True

    def __init__(self, name: str, go_on: Callable[[], None], take: Take, size: int) -> None:
        super().__init__(name, go_on)
        self._take, self._size, self._at = take, size, 0

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._at

    def write(self, piece: Piece) -> None:
        """Pass bytes on, up to *size*."""
        self.check()
        view = memoryview(piece).cast("B")[: self._size - self._at]
        self._take(bytes(view))
        self._at += len(view)
        if self._at == self._size:
            raise _Enough


class DryRun(_Forward):
    """An Appender that keeps what a StreamOut of the same log needs.

    edits    later changes, by place
    content  the log itself if it has at most KEPT bytes, else None
    """

    def __init__(self, name: str, go_on: Callable[[], None] = _do_nothing, make: Make | None = None) -> None:
        super().__init__(name, go_on, make)
        self._edits: dict[int, Edit] = {}
        self._kept: bytearray | None = bytearray()
        self._size = self._moved = 0

    @property
    def edits(self) -> list[Edit]:
        """Later changes, by place."""
        return sorted(self._edits.values(), key=lambda edit: edit.place)

    @property
    def content(self) -> bytes | None:
        """The final log if it is small, else None."""
        if self._kept is None:
            return None
        for edit in reversed(self.edits):
            self._kept[edit.place : edit.place + edit.size] = edit.content
        return bytes(self._kept)

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._size + self._moved

    def write(self, piece: Piece) -> None:
        """Append bytes."""
        self.check()
        view = memoryview(piece).cast("B")
        self._size += len(view)
        if self._size > KEPT:
            self._kept = None
        if self._kept is not None:
            self._kept += view

    def patch(self, place: int, piece: Piece) -> None:
        """Record that the bytes at *place* are overwritten."""
        self._change(Edit(place, len(piece), bytes(piece)))

    def splice(self, place: int, size: int, piece: Piece) -> None:
        """Record that *size* bytes at *place* are replaced by *piece* of any length."""
        self._change(Edit(place, size, bytes(piece)))
        self._moved += len(piece) - size

    def _change(self, edit: Edit) -> None:
        self.check()
        end = edit.place + edit.size
        clash = any(
            one.place < end
            and edit.place < one.place + one.size
            and (one.place, one.size) != (edit.place, edit.size)
            for one in self._edits.values()
        )
        # After bytes have moved, earlier places are not valid any more.
        if self._moved or clash or not 0 <= edit.place <= end <= self._size:
            raise UnsupportedError(
                "cannot be sent while it is written: it is changed too often", path=self.name
            )
        self._edits[edit.place] = edit


class TooLargeError(Exception):
    """More bytes than a MemoryOut keeps."""


class MemoryOut(_Forward):
    """An Appender that keeps a log in memory; raises TooLargeError for more than *room* bytes."""

    readable = True

    def __init__(self, name: str, room: int) -> None:
        super().__init__(name)
        self._kept, self._room = bytearray(), room

    @property
    def unfinished(self) -> bytes:
        """The bytes so far."""
        return bytes(self._kept)

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return len(self._kept)

    def write(self, data: Piece) -> None:
        """Append bytes."""
        view = memoryview(data).cast("B")
        if len(self._kept) + len(view) > self._room:
            raise TooLargeError
        self._kept += view

    def patch(self, place: int, data: Piece) -> None:
        """Overwrite the bytes at *place*."""
        self.splice(place, len(data), data)

    def splice(self, place: int, size: int, data: Piece) -> None:
        """Replace *size* bytes at *place* by *data* of any length."""
        self._kept[place : place + size] = data

    def again(self, take: Take, upto: int) -> None:
        """Pass the bytes up to *upto* to *take*."""
        take(bytes(self._kept[:upto]))

    def discard(self) -> None:
        """Give the memory back."""
        self._kept.clear()


@contextmanager
def written_apart(
    write: Callable[[str, Appender | None], T], suffix: str, folder: str | None = None
) -> Iterator[tuple[T, bytes | str]]:
    """Write a log that is not the output and yield its bytes; the path of a file in *folder* if there are many.

    As a stream that is read, it is kept in memory up to SPOOL_BYTES. The file is removed after the block.

    write  writes the log to the Appender, else to the path; called again for a file
    """
    name, memory = f"log{suffix}", MemoryOut(f"log{suffix}", SPOOL_BYTES)
    try:
        done = write(name, memory)
    except TooLargeError:
        memory.discard()
    else:
        yield done, memory.unfinished
        return
    with tempfile.TemporaryDirectory(prefix=".logreel-" if folder else "logreel-", dir=folder) as place:
        path = os.path.join(place, name)
        yield write(path, None), path


class StreamOut(_Forward):
    """An Appender that sends a log in order, piece by piece.

    take   called with bytes; its errors end the work
    edits  of a DryRun of the same log; without it no later changes are allowed
    """

    def __init__(
        self,
        name: str,
        take: Take,
        edits: Iterable[Edit] = (),
        go_on: Callable[[], None] = _do_nothing,
        make: Make | None = None,
    ) -> None:
        super().__init__(name, go_on, make)
        self._take = take
        self._due = {edit.place: edit for edit in edits}
        self._edits = deque(sorted(self._due.values(), key=lambda edit: edit.place))
        self._waiting = bytearray()
        #: Offset of the next byte to be sent, number of replaced bytes to drop, and shift of bytes after a splice.
        self._sent = self._dropped = self._moved = 0

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._sent + len(self._waiting) + self._moved

    def write(self, piece: Piece) -> None:
        """Append bytes."""
        view = memoryview(piece).cast("B")
        if len(self._waiting) + len(view) < PIECE:
            self._waiting += view
            return
        self._send()
        whole = len(view) // PIECE * PIECE
        for at in range(0, whole, PIECE):
            self._pass(view[at : at + PIECE])
        self._waiting += view[whole:]

    def patch(self, place: int, piece: Piece) -> None:
        """Check that the dry run announced this change, which has been applied in its turn."""
        self._check_announced(place, len(piece))

    def splice(self, place: int, size: int, piece: Piece) -> None:
        """Check that the dry run announced this change, which has been applied in its turn."""
        self._check_announced(place, size)
        self._moved += len(piece) - size

    def _check_announced(self, place: int, size: int) -> None:
        edit = self._due.get(place)
        if edit is None or edit.size != size:
            raise LogError("was changed by another program while it was sent", path=self.name)

    def finish(self) -> None:
        """Send the remaining bytes."""
        self._send()
        if self._edits or self._dropped:
            raise LogError("was changed by another program while it was sent", path=self.name)

    def leave(self) -> None:
        """Stop sending."""
        self._waiting.clear()

    def discard(self) -> None:
        """Stop sending."""
        self.leave()

    def flush(self, sync: bool = False) -> None:
        """Send the bytes written so far."""
        self.check()
        self._send()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, bytearray()
        self._pass(memoryview(waiting))

    def _pass(self, view: memoryview) -> None:
        """Send bytes with the changes that fall among them."""
        out = bytearray()
        while len(view):
            if self._dropped:
                step = min(self._dropped, len(view))
                self._dropped -= step
            elif self._edits and self._edits[0].place == self._sent:
                edit = self._edits.popleft()
                out += edit.content
                self._dropped = edit.size
                continue
            else:
                step = min(len(view), self._edits[0].place - self._sent) if self._edits else len(view)
                out += view[:step]
            self._sent += step
            view = view[step:]
        if out:
            self._take(bytes(out))
