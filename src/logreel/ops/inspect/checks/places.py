"""Positions of messages in the file, and groups of overlapping intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from logreel.index.ranges import places
from logreel.io.arrays import I64
from logreel.io.chunks import FILE, SYNTHETIC
from logreel.log.log import Channel

Item = TypeVar("Item")


def positions(ch: Channel, rows: I64) -> list[tuple[tuple[int, int], int]]:
    """Return file, chunk and offset of the messages at *rows* (ascending), as tuples that sort in file order."""
    chunk, offset, _ = places(ch.log.index, ch.number, rows)
    located = map(ch.log.index.chunks.locate, chunk.tolist())
    return list(zip(located, offset.tolist(), strict=True))


def offset_of(ch: Channel, row: int) -> int | None:
    """Return the file offset of a message, or of its compressed chunk.

    None for a synthetic message, and in a log of several files.
    """
    (((_, chunk), offset),) = positions(ch, np.array([row], np.int64))
    if chunk == SYNTHETIC or ch.members:
        return None
    return offset if chunk == FILE else ch.log.index.chunks.place_of(chunk)


def group_overlapping(
    items: Iterable[Item], first: Callable[[Item], Any], last: Callable[[Item], Any]
) -> Iterator[list[Item]]:
    """Yield the fewest groups of intervals with a common position: first(x) < position <= last(x)."""
    group: list[Item] = []
    for item in sorted(items, key=last):
        if group and not first(item) < last(group[0]):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def topics_text(topics: Iterable[str]) -> str:
    """Return up to three topics and the number of the others, as text."""
    names = list(dict.fromkeys(topics))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
