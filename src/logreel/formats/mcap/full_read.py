"""Everything that is wholly in a file, whatever its index says: for ``recover`` and ``check``."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.formats.mcap import reader
from logreel.formats.mcap.found import ChunkMessages, FoundFile, Messages
from logreel.formats.mcap.records import Chunk
from logreel.io.arrays import I64
from logreel.io.source import Source

if TYPE_CHECKING:
    from logreel.formats.mcap.index_builder import IndexBuilder


@dataclass(frozen=True, slots=True)
class FullRead:
    """What reading all records gives, together with what the index leads to.

    file   the one and the other
    extra  messages that the index does not lead to
    at     where the first chunk lies that has some
    """

    file: FoundFile
    extra: int
    at: int


def read(source: Source, file: FoundFile, collected: IndexBuilder) -> FullRead:
    """Read every record in file order, and add the messages of *file* that only its index leads to.

    After damage neither is the larger set: reading goes on behind it, while an index still names what is inside.
    """
    whole = reader.read(source, trust=False)
    # Channels keep the names under which their messages are read otherwise.
    whole.schemas, whole.channels = whole.schemas | file.schemas, whole.channels | file.channels
    there = defaultdict[tuple[int, str], list[I64]](list)
    for part in whole.parts:
        if part.found is not None:
            there[_key(whole.chunks[part.chunk])].append(_places(whole.chunks[part.chunk], part.found))
    known = {key: np.sort(np.concatenate(places)) for key, places in there.items()}
    named = defaultdict[tuple[int, str], list[I64]](list)
    for part, found in collected.located():
        chunk = file.chunks[part.chunk]
        key, places = _key(chunk), _places(chunk, found)
        named[key].append(places)
        more = ~_among(places, known.get(key))
        if more.any():
            some = Messages(*(getattr(found, name)[more] for name in ("key", "time", "entry", "size")))
            whole.parts.append(ChunkMessages(len(whole.chunks), part.pos, 0, chunk.size, found=some))
            whole.chunks.append(chunk)
    whole.parts.sort(key=lambda part: part.pos)
    have = {one.pos for one in whole.attachments}
    whole.attachments += [one for one in file.attachments if one.pos not in have]
    whole.metadata += [one for one in file.metadata if one not in whole.metadata]
    whole.statistics = whole.statistics or file.statistics
    whole.by_summary = file.by_summary
    # What nothing describes is told by whoever collects the messages.
    declared = np.array(sorted(whole.channels), np.int64)
    led = {key: np.sort(np.concatenate(places)) for key, places in named.items()}
    extra, at = 0, 0
    for part in whole.parts:
        if part.found is not None:
            chunk = whole.chunks[part.chunk]
            places = _places(chunk, part.found)[np.isin(part.found.key, declared)]
            missing = int((~_among(places, led.get(_key(chunk)))).sum())
            at = part.pos if missing and not extra else at
            extra += missing
    return FullRead(whole, extra, at)


def _key(chunk: Chunk) -> tuple[int, str]:
    """What the same places mean the same message in: the file, or a chunk's unpacked bytes."""
    return (-1, "") if chunk.is_plain else (chunk.data, chunk.compression)


def _places(chunk: Chunk, found: Messages) -> I64:
    return found.entry.astype(np.int64) + (chunk.data if chunk.is_plain else 0)


def _among(places: I64, known: I64 | None) -> NDArray[np.bool_]:
    """bool[n]: which *places* are among the *known* ones, which ascend."""
    if known is None:
        return np.zeros(len(places), np.bool_)
    at = np.minimum(np.searchsorted(known, places), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == places if len(known) else np.zeros(len(places), np.bool_)
    return found


def share_problems(file: FoundFile, collected: IndexBuilder, whole: FoundFile) -> None:
    """Have both tell the same problems; what an index leaves out is not lost any more."""
    for one in file.problems:
        if one in collected.left_out:
            one = replace(one, lost=False, text=collected.left_out[one])
        if one not in whole.problems:
            whole.problems.append(one)
    file.problems[:] = whole.problems
    whole.problems = file.problems
