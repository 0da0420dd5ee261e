"""Reading of all whole records of a file, independent of its index, for ``recover`` and ``check``."""

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
from logreel.log.scan import Noted

if TYPE_CHECKING:
    from logreel.formats.mcap.index_builder import IndexBuilder


@dataclass(frozen=True, slots=True)
class FullRead:
    """All messages found by reading every record, together with those found by the index.

    file   content of the file with both
    extra  number of messages that the index does not lead to
    at     file offset of the first chunk with such messages
    """

    file: FoundFile
    extra: int
    at: int


def read_all(source: Source, file: FoundFile, builder: IndexBuilder) -> FullRead:
    """Read every record in file order, and add the messages of *file* that only its index leads to.

    Both are needed: reading skips damaged bytes, where the index may still name messages, and finds messages that no
    index names.
    """
    whole = reader.read(source, trust=False)
    # Definitions of *file* take precedence, so that channels keep their names.
    whole.schemas, whole.channels = whole.schemas | file.schemas, whole.channels | file.channels
    there = defaultdict[tuple[int, str], list[I64]](list)
    for part in whole.parts:
        if part.found is not None:
            there[_key(whole.chunks[part.chunk])].append(_places(whole.chunks[part.chunk], part.found))
    known = {key: np.sort(np.concatenate(places)) for key, places in there.items()}
    named = defaultdict[tuple[int, str], list[I64]](list)
    for part, found in builder.located_messages():
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
    known_metadata = {_metadata_key(one) for one in whole.metadata}
    whole.metadata += [one for one in file.metadata if _metadata_key(one) not in known_metadata]
    whole.statistics = whole.statistics or file.statistics
    whole.by_summary = file.by_summary
    # Messages of channels without a definition are reported by the IndexBuilder.
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


def _metadata_key(one: tuple[str, dict[str, str]]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a metadata record in a form that a set can contain."""
    name, values = one
    return name, tuple(sorted(values.items()))


def _key(chunk: Chunk) -> tuple[int, str]:
    """Return what offsets of a chunk's messages are relative to: the file, or the decompressed bytes of a chunk."""
    return (-1, "") if chunk.is_plain else (chunk.data, chunk.compression)


def _places(chunk: Chunk, found: Messages) -> I64:
    return found.entry.astype(np.int64) + (chunk.data if chunk.is_plain else 0)


def _among(places: I64, known: I64 | None) -> NDArray[np.bool_]:
    """Return bool[n], whether each of *places* is among the *known* ones, which ascend."""
    if known is None:
        return np.zeros(len(places), np.bool_)
    at = np.minimum(np.searchsorted(known, places), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == places if len(known) else np.zeros(len(places), np.bool_)
    return found


def share_problems(file: FoundFile, builder: IndexBuilder, whole: FoundFile) -> None:
    """Give both files one list of problems; messages that an index leaves out are no longer reported as lost."""
    noted = Noted()
    for one in file.problems:
        if one in builder.left_out:
            one = replace(one, lost=False, text=builder.left_out[one])
        noted.add(whole.problems, one)
    file.problems[:] = whole.problems
    whole.problems = file.problems
