"""What the bytes of a log file are: messages by topic, record headers, chunks, definitions, indexes, damage."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import UsageError
from logreel.index.block_table import MISSING_SIZE
from logreel.index.gather import load
from logreel.io.arrays import I64
from logreel.io.source import FILE, Buffer
from logreel.log.joined_log import JoinedLog
from logreel.log.log import Log
from logreel.log.scan import Brief
from logreel.log.times import Time
from logreel.ops.rewrite.selected_log import sliced_log
from logreel.ops.selection import Selection
from logreel.registry.format import CHUNK_HEADERS, StoredRecord
from logreel.registry.open import as_open_log
from logreel.registry.registry import storage_of

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable

#: Kinds of bytes besides records.
DAMAGE, OTHER = "damage", "other"


@dataclass(frozen=True, slots=True)
class TopicUsage:
    """The bytes of a topic.

    payload_bytes  payloads, not compressed
    record_bytes   payloads with their record headers, not compressed
    stored_bytes   bytes of the file. A compressed chunk is divided among the topics in proportion to *record_bytes*
    """

    topic: str
    messages: int
    payload_bytes: int
    record_bytes: int
    stored_bytes: int

    @property
    def ratio(self) -> float | None:
        """Uncompressed bytes per stored byte; None if nothing is stored."""
        return self.record_bytes / self.stored_bytes if self.stored_bytes else None


@dataclass(frozen=True, slots=True)
class ChunkUsage:
    """The bytes of a chunk.

    offset        place of its record in the file
    compression   name, ``none`` if it is not compressed; empty if unknown
    messages      number of messages in it
    size          bytes of its content, not compressed
    stored_bytes  bytes of its content in the file; 0 if these count as damage or other bytes
    """

    offset: int
    compression: str
    messages: int
    size: int
    stored_bytes: int

    @property
    def ratio(self) -> float | None:
        """Uncompressed bytes per stored byte; None if nothing is stored."""
        return self.size / self.stored_bytes if self.stored_bytes else None


@dataclass(frozen=True, slots=True, repr=False)
class Usage(Brief):
    """What the bytes of a log file are.

    size    bytes of the file: the sum of the ``stored_bytes`` of all topics and of the values of *other*
    topics  those with messages in the file, the largest first
    other   bytes of the file that are no message, by kind, the largest first
    chunks  in the order of the file; empty for a format without chunks
    """

    path: str
    format: str
    size: int
    topics: tuple[TopicUsage, ...]
    other: Mapping[str, int]
    chunks: tuple[ChunkUsage, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``du --json``."""
        share = 1 / self.size if self.size else 0.0
        names = ("topic", "messages", "payload_bytes", "record_bytes", "stored_bytes", "ratio")
        fields = ("offset", "compression", "messages", "size", "stored_bytes", "ratio")
        return {
            "path": self.path,
            "format": self.format,
            "size": self.size,
            "topics": [
                {**{name: getattr(usage, name) for name in names}, "share": usage.stored_bytes * share}
                for usage in self.topics
            ],
            "other": [
                {"kind": content, "stored_bytes": count, "share": count * share}
                for content, count in self.other.items()
            ],
            "chunks": [{name: getattr(usage, name) for name in fields} for usage in self.chunks],
        }


def du(
    log: Openable | Log,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    where: str | Iterable[str] = (),
    segment: int | None = None,
) -> Usage:
    """Return what the bytes of a log file are; reads the whole file and unpacks all chunks.

    log  an open Log of one file, or anything that ``logreel.open`` takes
    topics, exclude, start, end, where, segment  count the bytes of the log that ``slice`` would write for these

    Of formats that do not say how their records lie, what stands before every payload counts as its record header.
    Raises UsageError for a log of several files.
    """
    with as_open_log(log) as opened:
        if isinstance(opened, JoinedLog):
            raise UsageError(
                "these are several files",
                path=opened.name,
                hint="call du for each of them",
            )
        with sliced_log(opened, Selection(topics, exclude, start, end, where, segment)) as part:
            return _Counting(part).usage()


@dataclass(slots=True)
class _Space:
    """Bytes in which messages lie: those of the file, or of an unpacked chunk.

    record  bytes of records of messages, by channel
    other   bytes of other records, by kind
    """

    data: Buffer
    rows: list[int]
    record: Counter[int]
    other: Counter[str]
    messages: int = 0


@dataclass(slots=True)
class _PlainChunk:
    offset: int
    data: int
    size: int
    messages: int = 0


class _Counting:
    """The count of the bytes of one log."""

    def __init__(self, log: Log) -> None:
        self._log, self._index = log, log.index
        self._channels = [
            ch.number for ch in log.channels.values() if not self._index.rules[ch.number].is_synthetic
        ]
        self._runs = {number: self._index.table.run(number) for number in self._channels}
        self._storage = storage_of(log)
        self._least: dict[int, int] = {}
        if not self._states_heads():
            self._least = self._least_heads()
        self._damage = _merged(
            [(p.offset, p.offset + p.size) for p in log.problems if p.lost and p.size > 0 and p.offset >= 0]
        )
        self._messages, self._payload = Counter[int](), Counter[int]()
        self._record, self._stored, self._other = Counter[int](), Counter[int](), Counter[str]()
        self._packed: list[tuple[int, StoredRecord]] = []
        self._plain: list[_PlainChunk] = []

    def usage(self) -> Usage:
        """Count all bytes, and return the result."""
        rows = self._rows()
        file = self._space(FILE, rows.pop(FILE, []))
        self._stored.update(file.record)
        self._other.update(file.other)
        numbers = {self._index.chunks.place_of(chunk): chunk for chunk in rows}
        chunks = [ChunkUsage(c.offset, "none", c.messages, c.size, c.size) for c in self._plain]
        for offset, record in self._packed:
            number = numbers.pop(offset, None)
            messages, size = 0, 0
            self._other[CHUNK_HEADERS] += record.size - record.content
            if number is None:
                self._other["chunks without messages"] += record.content
            else:
                space = self._space(number, rows[number])
                messages, size = space.messages, len(space.data)
                parts = _divided(
                    record.content, dict[int | str, int]([*space.record.items(), *space.other.items()])
                )
                for name, part in parts.items():
                    if isinstance(name, str):
                        self._other[name] += part
                    else:
                        self._stored[name] += part
            chunks.append(ChunkUsage(offset, record.compression, messages, size, record.content))
        for offset, number in numbers.items():
            # A chunk in damaged bytes, or in a format that does not describe its records: counted as such in the file.
            space = self._space(number, rows[number])
            chunks.append(ChunkUsage(offset, "", space.messages, len(space.data), 0))
        by_number = {ch.number: topic for topic, ch in self._log.channels.items()}
        topics = [
            TopicUsage(by_number[n], self._messages[n], self._payload[n], self._record[n], self._stored[n])
            for n in self._channels
            if self._messages[n]
        ]
        return Usage(
            self._log.name,
            self._log.format,
            self._log.size,
            tuple(sorted(topics, key=lambda usage: (-usage.stored_bytes, usage.topic))),
            {content: count for content, count in self._other.most_common() if count},
            tuple(sorted(chunks, key=lambda usage: usage.offset)),
        )

    def _space(self, chunk: int, rows: list[int]) -> _Space:
        """Count the bytes of the file or of an unpacked chunk; *rows*: blocks of messages in it, in their order."""
        space = _Space(self._index.chunks[chunk], rows, Counter(), Counter())
        cursor = 0
        for channel, start, head, size in self._groups(space):
            end = start + size
            # What an earlier message has taken does not count again, so that the sum is right for damaged files, too.
            before = np.maximum.accumulate(np.concatenate([[cursor], end]))
            begin = np.maximum(start - head, before[:-1])
            used = np.maximum(end, begin) - begin
            for gap in np.flatnonzero(begin > before[:-1]).tolist():
                self._gap(space, chunk, int(before[gap]), int(begin[gap]))
            cursor = int(before[-1])
            self._count(space, channel, size, used)
            if chunk == FILE and self._plain:
                places = np.searchsorted([plain.data for plain in self._plain], start, side="right") - 1
                for place, count in zip(*np.unique(places[places >= 0], return_counts=True), strict=True):
                    self._plain[place].messages += int(count)
        if cursor < len(space.data):
            self._gap(space, chunk, cursor, len(space.data))
        return space

    def _count(self, space: _Space, channel: I64, size: I64, used: I64) -> None:
        """Add messages to the counts of their channels."""
        space.messages += len(channel)
        for counts, weights in ((self._messages, None), (self._payload, size), (self._record, used)):
            sums = np.bincount(channel, weights)
            counts.update({n: int(sums[n]) for n in np.flatnonzero(sums).tolist()})
            if weights is used:
                space.record.update({n: int(sums[n]) for n in np.flatnonzero(sums).tolist()})

    def _groups(self, space: _Space) -> Iterator[tuple[I64, I64, I64, I64]]:
        """Yield messages by their place: int64[n] channel, payload start, bytes before it, payload size."""
        columns: list[tuple[I64, I64, I64, I64]] = []
        end = 0
        for row in space.rows:
            if columns and int(self._index.table.base[row]) >= end:
                yield _in_order(columns)
                columns = []
            loaded = load(self._index, [row])
            for number, (first, last) in self._runs.items():
                if first[row] == last[row]:
                    continue
                payloads = loaded.payload_range(self._index, number)
                is_stored = payloads.size != MISSING_SIZE
                start, size = payloads.offset[is_stored], payloads.size[is_stored].astype(np.int64)
                if len(start):
                    head = self._heads(number, space.data, start, size)
                    columns.append((np.full(len(start), number), start, head, size))
                    end = max(end, int((start + size).max()))
        if columns:
            yield _in_order(columns)

    def _heads(self, channel: int, data: Buffer, start: I64, size: I64) -> I64:
        if channel in self._least:
            return np.full(len(start), self._least[channel])
        head = 0 if self._storage is None else self._storage.head
        return head(data, start, size) if callable(head) else np.full(len(start), head)

    def _states_heads(self) -> bool:
        """Return whether the format finds the record headers of this log, by the first messages."""
        for chunk, rows in self._rows().items():
            for _, _, head, _ in self._groups(_Space(self._index.chunks[chunk], rows, Counter(), Counter())):
                return bool(head.any())
        return True

    def _least_heads(self) -> dict[int, int]:
        """Return by channel the least number of bytes between a payload and what is before it.

        A channel with one message may have other records before that, so it gets the least number of all.
        """
        least: dict[int, int] = {}
        for chunk, rows in self._rows().items():
            cursor = 0
            space = _Space(self._index.chunks[chunk], rows, Counter(), Counter())
            for channel, start, _, size in self._groups(space):
                gaps = start - np.concatenate([[cursor], (start + size)[:-1]])
                for number in np.unique(channel).tolist():
                    here = int(gaps[channel == number].min())
                    least[number] = max(min(here, least.get(number, here)), 0)
                cursor = int((start + size).max())
        smallest = min(least.values(), default=0)
        return {n: head if self._index.count(n) > 1 else smallest for n, head in least.items()}

    def _rows(self) -> dict[int, list[int]]:
        """Return the numbers of the blocks with messages, in their order in each chunk."""
        table = self._index.table
        rows: dict[int, list[int]] = {}
        used = np.zeros(len(table.base), np.bool_)
        for first, last in self._runs.values():
            used |= last > first
        order = np.lexsort((table.base, table.chunk))
        for row in order[used[order]].tolist():
            rows.setdefault(int(table.chunk[row]), []).append(row)
        return rows

    def _gap(self, space: _Space, chunk: int, at: int, end: int) -> None:
        """Count bytes between messages: damage, other records, and what is neither."""
        # Of a damaged chunk there may be less than the index leads to.
        end = min(end, len(space.data))
        for is_damage, first, last in self._parts(at, end) if chunk == FILE else [(False, at, end)]:
            if is_damage:
                space.other[DAMAGE] += last - first
                continue
            place = first
            for record in self._storage.records(space.data, first, last) if self._storage else ():
                if chunk == FILE and record.compression == "none":
                    self._plain.append(_PlainChunk(place, place + record.head, record.content))
                    space.other[record.kind] += record.size
                elif chunk == FILE and record.compression:
                    self._packed.append((place, record))
                else:
                    space.other[record.kind] += record.size
                place += record.size
            if place < last:
                space.other[OTHER] += last - place

    def _parts(self, at: int, end: int) -> Iterator[tuple[bool, int, int]]:
        """Yield the parts of an interval of the file, and whether each is damage."""
        for first, last in self._damage[max(bisect_right(self._damage, (at, at)) - 1, 0) :]:
            if first >= end:
                break
            if last <= at:
                continue
            if first > at:
                yield False, at, first
            yield True, max(first, at), min(last, end)
            at = min(last, end)
        if at < end:
            yield False, at, end


def _in_order(parts_by_channel: list[tuple[I64, I64, I64, I64]]) -> tuple[I64, I64, I64, I64]:
    columns = [np.concatenate(parts) for parts in zip(*parts_by_channel, strict=True)]
    order = np.argsort(columns[1], kind="stable")
    channel, start, head, size = (column[order] for column in columns)
    return channel, start, head, size


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of intervals as disjoint ones, ascending."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _divided(total: int, weights: Mapping[int | str, int]) -> dict[int | str, int]:
    """Return whole parts of *total* in proportion to *weights*, whose sum is *total*."""
    weight_sum = sum(weights.values())
    if not weight_sum:
        return {OTHER: total}
    parts = {name: total * weight // weight_sum for name, weight in weights.items()}
    # The largest remainders get what is left.
    rest = total - sum(parts.values())
    for name in sorted(weights, key=lambda name: -(total * weights[name] % weight_sum))[:rest]:
        parts[name] += 1
    return parts
