"""A log that is sent on while it is written: what its FormatWriter changes later is found out by a dry run.

A FormatWriter appends, and some go back at the end to fill in what they could not know before: where the index is,
how long a
frame lasted. What has been sent cannot be changed. So the same FormatWriter writes the same log twice: first for a
DryRun,
which keeps nothing but sizes and these changes, then for a StreamOut, which makes them when their turn comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from logreel.errors import LogError, UnsupportedError
from logreel.io.append_file import Appender, Piece

#: Bytes that are sent at once.
PIECE = 128 << 10
#: What a log may have at most to be kept by its DryRun, so that it need not be written twice.
KEPT = 1 << 20

Take = Callable[[bytes], None]
Make = Callable[[Appender], object]


@dataclass(frozen=True, slots=True)
class Edit:
    """*size* bytes at *place*, as they were appended, are *content* in the end, which may be of another size."""

    place: int
    size: int
    content: bytes


def _nothing() -> None:
    """Nobody has to be asked whether to go on."""


class _Forward(Appender):
    """Takes bytes that cannot be read again; they are made again where somebody has to see them.

    go_on  called between pieces of work; raises what ends it
    make   writes the same log to another Appender
    """

    readable = False

    def __init__(self, name: str, go_on: Callable[[], None] = _nothing, make: Make | None = None) -> None:
        self.name, self._go_on, self._make = name, go_on, make

    def check(self) -> None:
        """Raise what ends the work."""
        self._go_on()

    def commit(self) -> None:
        """Everything is taken as it comes."""

    def flush(self, sync: bool = False) -> None:
        """Everything is taken as it comes."""
        self.check()

    def put(self, piece: Piece) -> None:
        """Take bytes."""
        self.write(piece)

    def lend(self, size: int) -> memoryview:
        """So many bytes of memory to be filled and given."""
        return memoryview(bytearray(size))

    def give(self, piece: Piece) -> None:
        """Take bytes."""
        self.write(piece)

    def again(self, take: Take, upto: int) -> None:
        """Give *take* the bytes up to *upto* once more, piece by piece, by making them."""
        if self._make is None:
            raise UnsupportedError(
                "cannot be sent while it is written: it has to be read again", path=self.name
            )
        with suppress(_Enough):
            self._make(_Again(self.name, self._go_on, take, upto))

    def finish(self) -> None:
        """Nothing is left to do."""

    def leave(self) -> None:
        """Nothing is left to do."""

    def discard(self) -> None:
        """Nothing is left to do."""


class _Enough(Exception):
    """All that somebody wanted to see was made."""


class _Again(_Forward):
    """Gives *take* the first *size* bytes."""

    #: Nothing has to be known of what comes behind them.
    readable = True

    def __init__(self, name: str, go_on: Callable[[], None], take: Take, size: int) -> None:
        super().__init__(name, go_on)
        self._take, self._size, self._at = take, size, 0

    def tell(self) -> int:
        """Where the next byte will stand."""
        return self._at

    def write(self, piece: Piece) -> None:
        """Give bytes away, as far as they are wanted."""
        self.check()
        view = memoryview(piece).cast("B")[: self._size - self._at]
        self._take(bytes(view))
        self._at += len(view)
        if self._at == self._size:
            raise _Enough


class DryRun(_Forward):
    """Takes a log and keeps what a StreamOut of the same has to know.

    edits    what is changed later, by place
    content  the log itself, where it has at most KEPT bytes; else None
    """

    def __init__(self, name: str, go_on: Callable[[], None] = _nothing, make: Make | None = None) -> None:
        super().__init__(name, go_on, make)
        self._edits: dict[int, Edit] = {}
        self._kept: bytearray | None = bytearray()
        self._size = self._moved = 0

    @property
    def edits(self) -> list[Edit]:
        """What is changed later, by place."""
        return sorted(self._edits.values(), key=lambda edit: edit.place)

    @property
    def content(self) -> bytes | None:
        """The log as it is in the end, if it is small."""
        if self._kept is None:
            return None
        for edit in reversed(self.edits):
            self._kept[edit.place : edit.place + edit.size] = edit.content
        return bytes(self._kept)

    def tell(self) -> int:
        """Where the next byte will stand."""
        return self._size + self._moved

    def write(self, piece: Piece) -> None:
        """Take bytes."""
        self.check()
        view = memoryview(piece).cast("B")
        self._size += len(view)
        if self._size > KEPT:
            self._kept = None
        if self._kept is not None:
            self._kept += view

    def patch(self, place: int, piece: Piece) -> None:
        """Write over bytes."""
        self._change(Edit(place, len(piece), bytes(piece)))

    def splice(self, place: int, size: int, piece: Piece) -> None:
        """Put *piece*, of any length, in the place of *size* bytes."""
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
        # Where bytes moved, places do not mean any more what they meant before.
        if self._moved or clash or not 0 <= edit.place <= end <= self._size:
            raise UnsupportedError(
                "cannot be sent while it is written: it is changed too often", path=self.name
            )
        self._edits[edit.place] = edit


class StreamOut(_Forward):
    """Sends a log on, piece by piece, in order.

    take   called with bytes; what it raises ends the work
    edits  of a DryRun of the same log; without it nothing may be changed later
    """

    def __init__(
        self,
        name: str,
        take: Take,
        edits: Iterable[Edit] = (),
        go_on: Callable[[], None] = _nothing,
        make: Make | None = None,
    ) -> None:
        super().__init__(name, go_on, make)
        self._take = take
        self._due = {edit.place: edit for edit in edits}
        self._edits = deque(sorted(self._due.values(), key=lambda edit: edit.place))
        self._waiting = bytearray()
        #: Where the next byte to be sent was appended, how many follow that were replaced, and how far bytes moved.
        self._sent = self._dropped = self._moved = 0

    def tell(self) -> int:
        """Where the next byte will stand."""
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
        """Nothing is left to do: the change was made when its turn came."""
        self._made(place, len(piece))

    def splice(self, place: int, size: int, piece: Piece) -> None:
        """Nothing is left to do: the change was made when its turn came."""
        self._made(place, size)
        self._moved += len(piece) - size

    def _made(self, place: int, size: int) -> None:
        edit = self._due.get(place)
        if edit is None or edit.size != size:
            raise LogError("was changed by somebody else while it was sent", path=self.name)

    def finish(self) -> None:
        """Send what is left."""
        self._send()
        if self._edits or self._dropped:
            raise LogError("was changed by somebody else while it was sent", path=self.name)

    def leave(self) -> None:
        """Send nothing more."""
        self._waiting.clear()

    def discard(self) -> None:
        """Send nothing more."""
        self.leave()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, bytearray()
        self._pass(memoryview(waiting))

    def _pass(self, view: memoryview) -> None:
        """Send bytes with the changes that are due among them."""
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
