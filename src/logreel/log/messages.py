"""Read messages one by one, and read lazily what the file says of itself; both check that the file is unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from logreel.index.order import ranges_in_one_chunk

if TYPE_CHECKING:
    from logreel.index.block_table import Selection
    from logreel.index.message_index import MessageIndex

T = TypeVar("T")
C = TypeVar("C")


class _CheckedProperty(cached_property[T]):
    """A cached property of a Log, whose value is not kept if the file was truncated while it was read."""

    def __get__(self, log: Any, owner: type[Any] | None = None) -> Any:
        """Return the value; raises FileChangedError, also in place of an error that the change may have caused."""
        if log is None:
            return self
        try:
            value = super().__get__(log, owner)
            log.check_unchanged()
        except Exception:
            log.__dict__.pop(self.attrname, None)
            log.check_unchanged()
            raise
        return value


if TYPE_CHECKING:
    checked_property = cached_property
else:
    checked_property = _CheckedProperty


def rows_of(
    index: MessageIndex, channels: Mapping[int, C], selections: Iterable[Selection]
) -> Iterator[tuple[int, C, memoryview, int]]:
    """Yield time, channel, payload and offset of the messages of *selections*; *channels*: by number.

    Raises FileChangedError before and after a batch of messages whose bytes the file does not have any more.
    """
    views: dict[int, memoryview] = {}
    chunks = index.chunks
    for picked in selections:
        offset, end = picked.offset, picked.offset + picked.size
        for lo, hi in ranges_in_one_chunk(picked.chunk):
            chunk = int(picked.chunk[lo])
            if chunk not in views:
                # Each view may keep an unpacked chunk in memory.
                views = {chunk: chunks.view(chunk), **dict(list(views.items())[:3])}
            view, some = views[chunk], slice(lo, hi)
            places = offset[some].tolist()
            rows = zip(
                picked.time[some].tolist(),
                [channels[number] for number in picked.channel[some].tolist()],
                [view[a:b] for a, b in zip(places, end[some].tolist(), strict=True)],
                places,
                strict=True,
            )
            chunks.check_pages()
            yield from rows
    chunks.check()


def message_at(
    index: MessageIndex, number: int, channel: C, row: int
) -> tuple[int, C, memoryview, int] | None:
    """Return what ``rows_of`` yields for one message of the channel *number*; None where only that can tell."""
    try:
        found = index.message_at(number, row)
        if found is None:
            return None
        time, chunk, offset, size = found
        data = index.chunks.view(chunk)[offset : offset + size]
    finally:
        # An error may come from a file that was truncated.
        index.chunks.check()
    return time, channel, data, offset
