"""Comparison of the message index with chunks and statistics; chunks whose index is incomplete are read.

An index may name no message, or only some. The statistics count them independently: if both agree, the index is
trusted, except in small files, whose chunks are read anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from logreel.formats.mcap.chunks import size_limit, unpack
from logreel.formats.mcap.found import ChunkMessages, FoundFile, Messages, read_messages
from logreel.formats.mcap.reader import read_inside
from logreel.formats.mcap.records import BadRecord, Statistics
from logreel.io.source import Source

#: All chunks are read if they have at most this many decompressed bytes, which takes about a millisecond.
SMALL = 1 << 18
#: Without statistics, all chunks are read if they have at most this many stored bytes.
UNCOUNTED = 1 << 26


def check_index(source: Source, file: FoundFile, compare: bool) -> None:
    """Compare index and chunks; messages of chunks whose index names others are replaced by those that were read.

    compare  True: also compare with the statistics; raises BadRecord if the index names another number of messages than
             the statistics, adds a problem if all messages were read and are not as many
    """
    indexed = [part for part in file.parts if part.found is None]
    known = [file.chunks[part.chunk] for part in indexed]
    small = sum(size_limit(source, one) for one in known) <= SMALL
    # Of a remote file, chunks are fetched when they are needed.
    most = 0 if source.in_ranges else UNCOUNTED
    uncounted = file.statistics is None and sum(one.stored for one in known) <= most
    differing = [
        part
        for part in indexed
        if (small or uncounted or not part.indexes[:, 1].any()) and _replace_if_different(source, file, part)
    ]
    if differing:
        there = sum(len(part.found.key) for part in differing if part.found is not None)
        named = sum(int(part.indexes[:, 1].sum()) for part in differing)
        where = "a chunk names" if len(differing) == 1 else f"{len(differing)} chunks name"
        text = f"the index of {where} {named} messages where {there} are: they were read instead"
        file.note("index", differing[0].pos, 0, False, text)
    if compare and file.statistics is not None:
        _compare(file, file.statistics)


def _replace_if_different(source: Source, file: FoundFile, part: ChunkMessages) -> bool:
    """Read the messages of a chunk; if its index names others, use those that were read, and return True."""
    data, wrong = unpack(source, file.chunks[part.chunk])
    if wrong:
        # Reported when its messages are read; the index may lead to more of them than reading does.
        return False
    inside = FoundFile(schemas=dict(file.schemas), channels=dict(file.channels))
    read_inside(Source(data, source.name), part.chunk, part.pos, inside)
    found = read_messages(inside.parts)
    if _counted(found) == {key: n for key, n, _ in part.indexes.tolist() if n}:
        return False
    if not len(found.key):
        return False
    part.found = found
    file.schemas, file.channels = inside.schemas, inside.channels
    file.problems += inside.problems
    return True


def _counted(found: Messages) -> dict[int, int]:
    keys, counts = np.unique(found.key, return_counts=True)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def _compare(file: FoundFile, statistics: Statistics) -> None:
    counts, by_part = np.zeros(1 << 16, np.int64), [part.counts() for part in file.parts]
    np.add.at(counts, *np.concatenate([np.zeros((0, 2), np.int64), *by_part]).T)
    there = {number: int(counts[number]) for number in np.flatnonzero(counts).tolist()}
    said = {number: count for number, count in statistics.counts.items() if count}
    total = int(counts.sum())
    if statistics.messages == total and said in ({}, there):
        return
    if any(part.found is None for part in file.parts):
        if statistics.messages != total:
            raise BadRecord(f"it counts {statistics.messages} messages, the index {total}")
        raise BadRecord("its statistics count other messages than the index of the chunks")
    for text in differing(statistics, there):
        file.note("statistics", 0, 0, False, text)


def differing(statistics: Statistics, there: Mapping[int, int]) -> Iterator[str]:
    """Yield a sentence for each difference of the statistics from *there*, the numbers of messages by channel id."""
    total = sum(there.values())
    if statistics.messages != total:
        yield f"the statistics count {statistics.messages} messages, there are {total}"
    said = {number: count for number, count in statistics.counts.items() if count}
    if said and said != there:
        number = min(n for n in said.keys() | there.keys() if said.get(n, 0) != there.get(n, 0))
        counted = f"the statistics count {said.get(number, 0)} messages of channel {number}"
        yield f"{counted}, there are {there.get(number, 0)}"
