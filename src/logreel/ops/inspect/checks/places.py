"""Where in the file a message lies, and which of many spans lie over one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from logreel.index.ranges import places
from logreel.io.arrays import I64
from logreel.io.chunks import FILE, SYNTHETIC
from logreel.log.log import Channel

Item = TypeVar("Item")


def positions(ch: Channel, rows: I64) -> list[tuple[int, int]]:
    """Chunk and place in it of the messages at *rows* (ascending): tuples that sort as the messages lie."""
    chunk, offset, _ = places(ch.log.index, ch.number, rows)
    return list(zip(chunk.tolist(), offset.tolist(), strict=True))


def offset_of(ch: Channel, row: int) -> int | None:
    """Where in the file one message lies, or the chunk that it is packed in; None for one that the reader made."""
    ((chunk, offset),) = positions(ch, np.array([row], np.int64))
    if chunk == SYNTHETIC:
        return None
    return offset if chunk == FILE else ch.log.index.chunks.place_of(chunk)


def group_overlapping(
    items: Iterable[Item], first: Callable[[Item], Any], last: Callable[[Item], Any]
) -> Iterator[list[Item]]:
    """Groups of spans that have a place in common, as few as there can be: first(x) < place <= last(x)."""
    group: list[Item] = []
    for item in sorted(items, key=last):
        if group and not first(item) < last(group[0]):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def topics_text(topics: Iterable[str]) -> str:
    """A few names for a sentence."""
    names = list(dict.fromkeys(topics))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
