"""Whether the index explains what is in the chunks; chunks where it does not are read.

An index is what somebody wrote: it may name no message, or a part of them. Statistics count a second time. Where both
agree, chunks are believed to hold what the index says, but for small files, which are quickly read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from logreel.formats.mcap.chunks import most, unpack
from logreel.formats.mcap.found import ChunkMessages, FoundFile, Messages, all_found
from logreel.formats.mcap.reader import read_inside
from logreel.formats.mcap.records import BadRecord, Statistics
from logreel.io.source import Source

#: Unpacked bytes of all chunks that are looked into whatever the index says: that takes about a millisecond.
SMALL = 1 << 18
#: Stored bytes of all chunks that are looked into where no statistics count the messages.
UNCOUNTED = 1 << 26


def settle(source: Source, file: FoundFile, compare: bool) -> None:
    """Read the chunks that their index does not explain.

    compare  look at what the statistics count: raise BadRecord where it is not what an index says, tell where it is
             not what was read
    """
    indexed = [part for part in file.parts if part.found is None]
    known = [file.chunks[part.chunk] for part in indexed]
    small = sum(map(most, known)) <= SMALL
    uncounted = file.statistics is None and sum(one.stored for one in known) <= UNCOUNTED
    differing = [
        part
        for part in indexed
        if (small or uncounted or not part.indexes[:, 1].any()) and _look_into(source, file, part)
    ]
    if differing:
        there = sum(len(part.found.key) for part in differing if part.found is not None)
        named = sum(int(part.indexes[:, 1].sum()) for part in differing)
        where = "a chunk names" if len(differing) == 1 else f"{len(differing)} chunks name"
        text = f"the index of {where} {named} messages where {there} are: they were read instead"
        file.note("index", differing[0].pos, 0, False, text)
    if compare and file.statistics is not None:
        _compare(file, file.statistics)


def _look_into(source: Source, file: FoundFile, part: ChunkMessages) -> bool:
    """Read the messages of a chunk; True, and they are taken, where the index names others."""
    data, wrong = unpack(source, file.chunks[part.chunk])
    if wrong:
        # Told when its messages are asked for; the index may lead to more of them than reading does.
        return False
    inside = FoundFile(schemas=dict(file.schemas), channels=dict(file.channels))
    read_inside(Source(data, source.name), part.chunk, part.pos, inside)
    found = all_found(inside.parts)
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
    counts, told = np.zeros(1 << 16, np.int64), [part.counts() for part in file.parts]
    np.add.at(counts, *np.concatenate([np.zeros((0, 2), np.int64), *told]).T)
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
    """How the statistics differ from the messages *there* by channel."""
    total = sum(there.values())
    if statistics.messages != total:
        yield f"the statistics count {statistics.messages} messages, there are {total}"
    said = {number: count for number, count in statistics.counts.items() if count}
    if said and said != there:
        number = min(n for n in said.keys() | there.keys() if said.get(n, 0) != there.get(n, 0))
        counted = f"the statistics count {said.get(number, 0)} messages of channel {number}"
        yield f"{counted}, there are {there.get(number, 0)}"
