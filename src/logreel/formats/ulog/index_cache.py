"""Store what reading found in an index sidecar, and restore it; every stored value is checked against the log."""

from __future__ import annotations

import bisect
from dataclasses import asdict
from typing import Any

import numpy as np

from logreel.errors import CHANGED, DefinitionError, Problem
from logreel.formats.ulog import records
from logreel.formats.ulog.definitions import Definitions, parse_format
from logreel.formats.ulog.found import Found, Topic
from logreel.formats.ulog.reader import read
from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD, BadRecord
from logreel.index.block_table import Blocks
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.io.source import Source
from logreel.kernels import block_table
from logreel.log.scan import Saved


def save(found: Found) -> Saved:
    """Return *found* as plain data and arrays, from which ``restore`` builds it."""
    plain = {
        "version": found.version,
        "begin": found.begin,
        "topics": [[t.name, t.instance, t.segment, t.raw] for t in found.topics],
        "segments": found.segments,
        "segment_us": found.segment_us,
        "own_definitions": found.own_definitions,
        "appended": found.appended,
        "problems": [asdict(p) for p in found.problems],
    }
    arrays = {
        "base": found.blocks.base,
        "start": found.blocks.start,
        "entry": found.blocks.entry,
        "parsed": np.array(found.parsed, np.int64),
        "notes": found.notes,
    }
    return Saved(plain, arrays)


def restore(source: Source, saved: Saved) -> Found | None:
    """Return what was saved, or None if anything in it does not fit the log."""
    try:
        return _restore(source, saved.plain, saved.arrays)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, BadRecord, DefinitionError):
        return None


def _restore(source: Source, plain: dict[str, Any], arrays: Any) -> Found | None:
    base, start, entry, parsed, notes = (arrays[k] for k in ("base", "start", "entry", "parsed", "notes"))
    if (entry.dtype, entry.ndim) != (np.uint32, 1) or start.shape != (len(base), len(plain["topics"]) + 1):
        return None
    if any(a.dtype != np.int64 for a in (base, start, parsed, notes)) or any(
        a.ndim != 1 for a in (base, parsed, notes)
    ):
        return None
    if not (_are_records(source, parsed, records.PARSED) and _are_records(source, notes, records.NOTED)):
        return None
    segments, segment_us = ([int(n) for n in plain[key]] for key in ("segments", "segment_us"))
    own = [bool(b) for b in plain["own_definitions"]]
    if not (len(segments) == len(segment_us) == len(own)) or segments[0] != 0 or segments != sorted(segments):
        return None
    definitions = _definitions(source, parsed, segments, own)
    topics = [
        _topic(str(n), int(i), int(s), definitions[int(s) - 1], bool(r)) for n, i, s, r in plain["topics"]
    ]
    if not all(0 <= t.instance < 256 and 1 <= t.segment <= len(segments) for t in topics):
        return None
    least = [0 if t.raw else _least(t) for t in topics]
    if (np.diff(base) < 0).any() or len({t.channel_name for t in topics}) < len(topics):
        return None
    if not block_table.is_valid_table(
        start, base, entry, np.array([*least, 0], np.int64), DATA_HEAD, source.size
    ):
        return None
    blocks = Blocks(base, np.full(len(base), FILE, np.int32), start, entry)
    problems = [
        Problem(str(p["code"]), int(p["offset"]), int(p["size"]), bool(p["lost"]), str(p["text"]))
        for p in plain["problems"]
    ]
    return Found(
        int(plain["version"]),
        int(plain["begin"]),
        topics,
        blocks,
        parsed.tolist(),
        notes,
        segments,
        segment_us,
        own,
        [int(n) for n in plain["appended"]],
        problems,
    )


class IndexComparison:
    """Compares bytes of a log with the digests of when its index was made, before messages in them are used.

    Where they differ, the problems of the log as it is now are added to *found.problems*; damage of which the log
    itself shows nothing is a problem ``changed``, too.
    """

    def __init__(self, source: Source, found: Found) -> None:
        self._source, self._found = source, found
        #: Damage that the log shows now, once it was looked for.
        self._lost: list[Problem] | None = None

    def blocks(self, rows: I64) -> None:
        """Compare the blocks *rows* of the block table."""
        if self._source.digests is not None:
            base = np.append(self._found.blocks.base, self._source.size)
            self._compare(base[rows], base[rows + 1])

    def records(self, positions: I64) -> None:
        """Compare the records at *positions*."""
        if self._source.digests is not None and len(positions):
            size = self._source.data[positions].astype(np.int64)
            size |= self._source.data[positions + 1].astype(np.int64) << 8
            self._compare(positions, positions + HEAD + size)

    def _compare(self, start: I64, stop: I64) -> None:
        digests = self._source.digests
        for offset, size in digests.changed(start, stop) if digests is not None else ():
            if self._lost is None:
                self._lost = [problem for problem in read(self._source).problems if problem.lost]
                known = set(self._found.problems)
                self._found.problems.extend(problem for problem in self._lost if problem not in known)
                self._found.problems.append(CHANGED)
            if not any(p.offset < offset + size and p.offset + p.size > offset for p in self._lost):
                text = f"some of {size} bytes are not what they were when the index was made"
                self._found.problems.append(Problem("changed", offset, size, True, text))


def _are_records(source: Source, positions: I64, letters: bytes) -> bool:
    """Return whether a whole record of one of the kinds *letters* with a valid size is at each of the *positions*."""
    if not len(positions):
        return True
    if positions.min() < FILE_HEADER or positions.max() > source.size - HEAD:
        return False
    data, table = source.data, records.noted_table()
    size = data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8
    kind = data[positions + 2]
    if (positions + HEAD + size > source.size).any():
        return False
    row = table[kind]
    least, low, high = row["least"], row["first_least"], row["first_most"]
    # Unknown kinds are noted too, and may be empty; their row of the table is zero.
    known = row["action"] != 0
    first = data[np.minimum(positions + HEAD, source.size - 1)]
    fits = (
        (size >= least) & (first >= low) & (first <= high) & np.isin(kind, np.frombuffer(letters, np.uint8))
    )
    return bool((fits | ~known).all() and (np.diff(positions) > 0).all())


def _definitions(source: Source, parsed: I64, segments: list[int], own: list[bool]) -> list[Definitions]:
    """Parse the definitions that hold in each segment."""
    found = [Definitions()]
    for fresh in own[1:]:
        found.append(Definitions() if fresh else found[-1])
    for at in parsed.tolist():
        size = int.from_bytes(source.read(at, 2), "little")
        payload = source.read(at + HEAD, size)
        if source.data[at + 2] == ord("F"):
            found[bisect.bisect_right(segments, at) - 1].add(parse_format(payload))
        elif chr(source.data[at + 2]) in "IPMQ":
            records.match_key(
                payload, int(chr(source.data[at + 2]) in "MQ"), chr(source.data[at + 2]) in "PQ"
            )
    return found


def _topic(name: str, instance: int, segment: int, definitions: Definitions, raw: bool) -> Topic:
    if raw:
        return Topic(name, instance, segment, definitions, None, True)
    return Topic(name, instance, segment, definitions, definitions.extent(name).stamp, False)


def _least(topic: Topic) -> int:
    return topic.definitions.extent(topic.name).least
