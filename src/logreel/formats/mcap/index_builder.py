"""Building of the index (block table, times, sizes); index records and chunks are read when they are first needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from logreel.dataclass import dataclass, replace
from logreel.errors import Finding, Problem, UnsupportedError
from logreel.formats.mcap.chunks import compare_plain, data_section_problem, size_limit, unpack
from logreel.formats.mcap.reader import (
    Buffers,
    ChunkMessages,
    FoundFile,
    Messages,
    read,
    read_inside,
    read_messages,
)
from logreel.formats.mcap.records import (
    ENTRY,
    HEAD,
    INDEX,
    MESSAGE_HEAD,
    PUBLISH_TIME,
    SEQUENCE,
    BadRecord,
    Chunk,
    Statistics,
)
from logreel.index.block_table import MISSING_SIZE, Blocks
from logreel.index.channel_index import ChannelRules, FieldAt, LoadedValues, StoredValues
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64, distinct
from logreel.io.source import FILE, Buffer, Chunks, Source
from logreel.kernels import mcap
from logreel.limits import beyond
from logreel.log.scan import Noted

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Numbers of each message before its payload.
SIDE_COLUMNS = {"publish_time": FieldAt(-PUBLISH_TIME, 8), "sequence": FieldAt(-SEQUENCE, 4)}


class IndexBuilder:
    """All messages by block and channel; ``index`` returns the MessageIndex.

    number    channel number of each channel id
    unnamed   messages met in chunks that their index does not name, which are therefore not delivered
    left_out  problems that report only such messages, each with its text for after a full read

    Raises UnsupportedError for more entries of the block table (channels × chunks) than the limits allow.
    """

    def __init__(self, source: Source, file: FoundFile, number: Mapping[int, int], chunks: Chunks) -> None:
        self._source, self._file, self._chunks = source, file, chunks
        self._parts, self._ids = file.parts, np.array(sorted(number, key=number.__getitem__), np.int64)
        if len(self._parts) * (len(number) + 1) > source.limits.index_entries:
            text = f"{len(number)} channels in {len(self._parts)} chunks are beyond {beyond('index_entries')}"
            raise UnsupportedError(text, path=source.name)
        self.unnamed = 0
        self.left_out: dict[Problem, str] = {}
        self._lock = RLock()
        self._to_read = np.array([part.messages is None for part in self._parts], bool)
        self._to_place = self._to_read.copy()
        #: Whether sizes and offsets of all messages are known, so that nothing is left to be resolved.
        self._is_placed = not self._to_place.any()
        #: Channel number by id; the last one is that of all greater ids.
        self._column = np.full(int(self._ids.max(initial=-1)) + 2, -1, np.int64)
        self._column[self._ids] = np.arange(len(number))
        counts = self._counts([part.counts() for part in self._parts])
        start = np.zeros((len(self._parts), len(number) + 1), np.int64)
        start[:, 1:] = np.cumsum(counts, axis=1)
        start += np.concatenate([[0], np.cumsum(counts.sum(axis=1))])[:-1, None].astype(np.int64)
        n = int(counts.sum())
        # Pages of these arrays take no memory before they are written.
        self._entry, self._time, self._size = (
            np.zeros(n, np.uint32),
            np.zeros(n, np.int64),
            np.zeros(n, np.uint32),
        )
        # Without compressed chunks, all offsets are offsets in the file.
        # Chunks of a remote file are fetched one by one.
        plain = all(file_chunk.is_plain for file_chunk in file.chunks) and not chunks.in_ranges
        base = np.array([part.base + plain * file.chunks[part.chunk].data for part in self._parts], np.int64)
        self._end = base + np.array([part.end - part.base for part in self._parts], np.int64)
        chunk = np.array([FILE if plain else part.chunk for part in self._parts], np.int32)
        self._blocks = Blocks(base, chunk, start, self._entry)
        for row, part in enumerate(self._parts):
            if part.messages is not None:
                self._put(row, part.messages)

    def _counts(self, by_id: list[I64]) -> I64:
        """Return int64[part, channel], numbers of messages, from rows of id and number; unknown ids are reported."""
        counts = np.zeros((len(self._parts), len(self._ids)), np.int64)
        row = np.repeat(np.arange(len(by_id)), [len(by_channel) for by_channel in by_id])
        counted = np.concatenate([np.zeros((0, 2), np.int64), *by_id])
        column = self._columns_of(counted[:, 0])
        for k in np.flatnonzero((column < 0) & (counted[:, 1] > 0)).tolist():
            text = f"{counted[k, 1]} messages of channel {counted[k, 0]}, which nothing describes"
            self._file.note("undeclared", self._parts[row[k]].pos, 0, True, text)
        known = column >= 0
        counts[row[known], column[known]] = counted[known, 1]
        return counts

    def _columns_of(self, ids: I64) -> I64:
        """Return int64[k]: the numbers of channels, -1 for ids that nothing describes."""
        columns: I64 = self._column[np.minimum(ids, len(self._column) - 1)]
        return columns

    def index(self, cheap: bool) -> MessageIndex:
        """Return the MessageIndex; *cheap*: decompressing all chunks takes a fraction of a second."""
        loaded = LoadedValues(self._time, self._load, self._spans()) if self._chunks.in_ranges else None
        rules = [
            ChannelRules(
                loaded or partial(self._times, channel=c), StoredValues(self._size), side_columns=SIDE_COLUMNS
            )
            for c in range(len(self._ids))
        ]
        return MessageIndex(self._chunks, self._blocks, rules, None, self._resolve, cheap)

    def compare_checksums(self, rows: I64) -> None:
        """Compare the checksums of the parts *rows* that are not compressed; others are compared when they are read."""
        if self._chunks.in_ranges:
            return
        file, parts = self._file, [self._parts[row] for row in rows.tolist()]
        chunks = list({part.chunk: file.chunks[part.chunk] for part in parts}.values())
        if any(not chunk.crc for chunk in chunks):
            # Messages outside of chunks, or of chunks that were read record by record.
            chunks += file.every
            if not any(chunk.crc for chunk in file.every):
                problem = data_section_problem(self._source, file.data_end)
                if problem is not None and problem not in file.problems:
                    file.problems.append(problem)
        compare_plain(self._source, chunks, file.problems)

    def bounds(self) -> tuple[int | None, int | None]:
        """Return the earliest and the latest time in ns, None and None without messages.

        For chunks that were not read, the times that they state are used.
        """
        times = list[int]()
        for part in self._parts:
            if part.messages is not None:
                times += [int(part.messages.time.min()), int(part.messages.time.max())]
            elif part.indexes[:, 1].any():
                chunk = self._file.chunks[part.chunk]
                times += [chunk.start, chunk.end]
        return (min(times), max(times)) if times and len(self._time) else (None, None)

    def _times(self, index: MessageIndex, channel: int) -> I64:
        if not self._is_placed:
            with self._lock:
                self._read_indexes()
        return index.entry_values(channel, self._time)

    def _spans(self) -> I64:
        """Return int64[b, 2]: first and last time of each block, ns, as its chunk states them."""
        chunks = [self._file.chunks[part.chunk] for part in self._parts]
        return np.array([(chunk.start, chunk.end) for chunk in chunks], np.int64).reshape(-1, 2)

    def _load(self, rows: I64) -> None:
        with self._lock:
            self._read_indexes(rows)

    # --------------------------------------------------------------------------------------------- filling

    def _span(self, row: int) -> slice:
        start = self._blocks.start
        return slice(int(start[row, 0]), int(start[row, -1]))

    def _put(self, row: int, messages: Messages) -> None:
        """Fill in messages that were read; expected messages that are missing get the chunk's start as their time."""
        start, ids = self._blocks.start[row], self._ids
        order = np.argsort(messages.key, kind="stable")
        keys = messages.key[order]
        lo, hi = np.searchsorted(keys, ids, side="left"), np.searchsorted(keys, ids, side="right")
        for c in np.flatnonzero(start[1:] > start[:-1]).tolist():
            at, room = int(start[c]), int(start[c + 1] - start[c])
            rows = order[lo[c] : hi[c]][:room]
            taken, rest = slice(at, at + len(rows)), slice(at + len(rows), at + room)
            self._entry[taken], self._time[taken], self._size[taken] = (
                messages.entry[rows],
                messages.time[rows],
                messages.size[rows],
            )
            self._size[rest], self._time[rest] = MISSING_SIZE, self._file.chunks[self._parts[row].chunk].start

    def _read_indexes(self, rows: I64 | None = None) -> None:
        """Read the message index records of the chunks *rows*, or of all, whose index was not read before."""
        rows = np.flatnonzero(self._to_read) if rows is None else rows[self._to_read[rows]]
        if not len(rows):
            return
        self._to_read[rows] = False
        indexes = [self._parts[row].indexes for row in rows.tolist()]
        all_indexes = np.concatenate([np.zeros((0, 3), np.int64), *indexes])
        row, column = (
            np.repeat(rows, [len(entries) for entries in indexes]),
            self._columns_of(all_indexes[:, 0]),
        )
        size, first = (self._end - self._blocks.base)[row], self._blocks.start[row, column]
        table = np.column_stack([all_indexes[:, 2], all_indexes[:, 0], all_indexes[:, 1], size, first, row])
        table = table[(column >= 0) & (all_indexes[:, 1] > 0)]
        good = np.zeros(len(table), np.uint8)
        self._source.fetch(table[:, 0], table[:, 0] + INDEX + table[:, 2] * ENTRY)
        data = self._source.span(0, 0) if self._chunks.in_ranges else self._source.data
        mcap.read_index_entries(data, np.ascontiguousarray(table[:, :5]), self._time, self._entry, good)
        for k in np.flatnonzero(good == 2).tolist():
            # Some writers sort the entries by time; messages of a channel are ordered by their place in the file.
            span = slice(int(table[k, 4]), int(table[k, 4] + table[k, 2]))
            order = np.argsort(self._entry[span], kind="stable")
            self._entry[span], self._time[span] = self._entry[span][order], self._time[span][order]
            if (np.diff(self._entry[span].astype(np.int64)) == 0).any():
                # The index names a message twice: the chunk has to be read.
                good[k] = 0
        for row in distinct(table[good == 0, 5]).tolist():
            self._replace(row)

    def _read_chunk(self, row: int) -> Messages:
        """Return the messages of a chunk, found by reading it."""
        part = self._parts[row]
        file = FoundFile()
        data = self._chunks[int(self._blocks.chunk[row])]
        base, end = int(self._blocks.base[row]), self._end_of(row, data)
        inside = Source(data[base:end], "")
        read_inside(inside, part.chunk, part.pos, file)
        return read_messages(file.parts)

    def _end_of(self, row: int, data: Buffer) -> int:
        """Return where a part ends in *data*: a decompressed chunk may be larger than its index states."""
        return min(int(self._end[row]), len(data)) if self._blocks.chunk[row] == FILE else len(data)

    def _replace(self, row: int) -> None:
        """Fill in the messages of a chunk whose index is damaged by reading the chunk."""
        messages = self._read_chunk(row)
        self._put(row, messages)
        self._to_place[row] = False
        self._report_index(row, len(messages.key))

    def _report_index(self, row: int, read_count: int) -> None:
        """Report that the index of a chunk does not fit its messages, of which *read_count* were read."""
        span = self._span(row)
        met = int((self._size[span] != MISSING_SIZE).sum())
        missing, more = span.stop - span.start - met, read_count - met
        text = "the index of a chunk does not fit its messages: they were read instead"
        text += f"; {missing} that it names are not there" if missing else ""
        self.unnamed += max(0, more)
        text += f"; it leaves out {more} of them" if more else ""
        self._note(row, bool(missing or more), text, more > 0 and not missing)

    def _note(self, row: int, lost: bool, text: str, left_out: bool) -> None:
        """Add a problem of a chunk's index; *left_out*: it reports only messages that the index does not name."""
        full_text = f"{text}; recovering the log delivers them" if left_out else text
        problem = Problem("index", self._parts[row].pos, 0, lost, full_text)
        self._file.problems.append(problem)
        if left_out:
            self.left_out[problem] = f"{text}, which were read"

    # -------------------------------------------------------------------------------------------- resolving

    def _resolve(self, rows: I64) -> None:
        """Read sizes of payloads of some blocks and check their offsets, if not done before; thread-safe."""
        if self._is_placed:
            return
        with self._lock:
            if self._to_read.any():
                self._read_indexes(rows if self._chunks.in_ranges else None)
            rows = rows[self._to_place[rows]]
            if not len(rows):
                return
            self._chunks.fetch(self._blocks.chunk[rows].tolist())
            for row in rows.tolist():
                self._to_place[row] = False
                self._locate(row)
            self._is_placed = not self._to_place.any()

    def _locate(self, row: int) -> None:
        """Read sizes of the messages that the index of a chunk names; repair or report an index that does not fit."""
        b, span = self._blocks, self._span(row)
        data = self._chunks[int(b.chunk[row])]
        base, end = int(b.base[row]), self._end_of(row, data)
        live = np.flatnonzero(b.start[row, 1:] > b.start[row, :-1])
        runs = np.empty((len(live), 5), np.int64)
        runs[:, 0], runs[:, 1] = b.start[row, live], b.start[row, live + 1]
        runs[:, 2], runs[:, 3], runs[:, 4] = base, end, self._ids[live]
        good = np.zeros(len(live), np.int64)
        self._size[span] = MISSING_SIZE
        mcap.locate_messages(data, runs, self._entry, self._time, self._size, good)
        if int(good.sum()) < span.stop - span.start:
            self._repair(row)
        elif more := self._count_unnamed(data[base:end], span):
            self.unnamed += more
            self._note(row, True, f"the index of a chunk leaves out {more} of its messages", True)

    def _count_unnamed(self, data: Buffer, span: slice) -> int:
        """Return the number of messages in the bytes between those that the index names."""
        begin = self._entry[span].astype(np.int64) - MESSAGE_HEAD
        ends = begin + MESSAGE_HEAD + self._size[span]
        # Mostly they cover all bytes: each ends where another begins. To sort them takes longer than to find that out.
        if _mixed(np.append(begin, len(data))) == _mixed(np.append(ends, 0)):
            return 0
        order = np.argsort(begin, kind="stable")
        begin, ends = begin[order], ends[order]
        edges = np.concatenate([np.zeros(1, np.int64), ends]), np.append(begin, len(data))
        count = 0
        for k in np.flatnonzero(edges[0] < edges[1]).tolist():
            lo, hi = int(edges[0][k]), int(edges[1][k])
            n = (hi - lo) // MESSAGE_HEAD + 2
            key, time, place, size = (np.empty(n, np.int64) for _ in range(4))
            note = np.empty((hi - lo) // HEAD + 2, np.int64)
            count += mcap.walk(data, lo, hi, key, time, place, size, note, 0)[2]
        return count

    def _repair(self, row: int) -> None:
        """Read a chunk whose index is wrong; its entries are matched with messages of the same channel and time.

        Entries without a message get MISSING_SIZE.
        """
        messages = self._read_chunk(row)
        unmatched: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        rows = zip(
            *(getattr(messages, name).tolist() for name in ("key", "time", "entry", "size")), strict=True
        )
        for key, time, entry, size in rows:
            unmatched[key, time].append((entry, size))
        for places in unmatched.values():
            places.reverse()
        start = self._blocks.start[row]
        for c in np.flatnonzero(start[1:] > start[:-1]).tolist():
            for i in range(int(start[c]), int(start[c + 1])):
                places = unmatched.get((int(self._ids[c]), int(self._time[i])), [])
                self._entry[i], self._size[i] = places.pop() if places else (0, MISSING_SIZE)
        self._report_index(row, len(messages.key))

    def located_messages(self) -> Iterator[tuple[ChunkMessages, Messages]]:
        """Yield the existing messages of each part, with offsets in the content of the chunk."""
        self._resolve(np.arange(len(self._parts)))
        for row, part in enumerate(self._parts):
            start = self._blocks.start[row]
            key = np.repeat(self._ids, start[1:] - start[:-1])
            span = self._span(row)
            existing = np.flatnonzero(self._size[span] != MISSING_SIZE)
            rows = existing + span.start
            yield part, Messages(key[existing], self._time[rows], self._entry[rows], self._size[rows])

    def verify(self) -> Iterator[Finding]:
        """Yield Findings of reading all chunks: damage, an index that does not fit, wrong times."""
        known = len(self._file.problems)
        self._resolve(np.arange(len(self._parts)))
        yield from map(Finding.of, self._file.problems[known:])
        for row, part in enumerate(self._parts):
            chunk, span = self._file.chunks[part.chunk], self._span(row)
            times = self._time[span][self._size[span] != MISSING_SIZE]
            if part.messages is None and len(times):
                edges = int(times.min()), int(times.max())
                if edges != (chunk.start, chunk.end):
                    text = f"a chunk says that its messages are from {chunk.start} to {chunk.end} ns"
                    text += f", they are from {edges[0]} to {edges[1]}"
                    yield Finding("index", "warn", chunk.pos, chunk.stored, text)


def _mixed(numbers: I64) -> int:
    """Return a number that lists have in common if they have the same numbers in any order, and else hardly ever."""
    spread = numbers.astype(np.uint64) * _ODD
    spread ^= spread >> np.uint64(29)
    return int(np.add.reduce(spread * _ODD))


_ODD = np.uint64(0x9E3779B97F4A7C15)
#: All chunks are read if they have at most this many decompressed bytes, which takes about a millisecond.
SMALL = 1 << 18
#: Without statistics, all chunks are read if they have at most this many stored bytes.
UNCOUNTED = 1 << 26


def check_index(source: Source, file: FoundFile, compare: bool) -> None:
    """Compare index and chunks; messages of chunks whose index names others are replaced by those that were read.

    compare  True: also compare with the statistics; raises BadRecord if the index names another number of messages than
             the statistics, adds a problem if all messages were read and are not as many
    """
    indexed = [part for part in file.parts if part.messages is None]
    known = [file.chunks[part.chunk] for part in indexed]
    small = sum(size_limit(source, chunk) for chunk in known) <= SMALL
    # Of a remote file, chunks are fetched when they are needed.
    most = 0 if source.in_ranges else UNCOUNTED
    uncounted = file.statistics is None and sum(chunk.stored for chunk in known) <= most
    differing = [
        part
        for part in indexed
        if (small or uncounted or not part.indexes[:, 1].any()) and _replace_if_different(source, file, part)
    ]
    if differing:
        read_count = sum(len(part.messages.key) for part in differing if part.messages is not None)
        named = sum(int(part.indexes[:, 1].sum()) for part in differing)
        where = "a chunk names" if len(differing) == 1 else f"{len(differing)} chunks name"
        text = f"the index of {where} {named} messages where {read_count} are: they were read instead"
        file.note("index", differing[0].pos, 0, False, text)
    if compare and file.statistics is not None:
        _compare(file, file.statistics)


def _replace_if_different(source: Source, file: FoundFile, part: ChunkMessages) -> bool:
    """Read the messages of a chunk; if its index names others, use those that were read, and return True."""
    data, wrong = unpack(source, file.chunks[part.chunk])
    if wrong:
        # Reported when its messages are read; the index may lead to more of them than reading does.
        return False
    named = {key: n for key, n, _ in part.indexes.tolist() if n}
    if _count(data) == named:
        return False
    inside = FoundFile(schemas=dict(file.schemas), channels=dict(file.channels))
    read_inside(Source(data, source.name), part.chunk, part.pos, inside)
    messages = read_messages(inside.parts)
    if _counted(messages.key) == named:
        return False
    if not len(messages.key):
        return False
    part.messages = messages
    file.schemas, file.channels = inside.schemas, inside.channels
    file.problems += inside.problems
    return True


def _count(data: Buffer) -> dict[int, int] | None:
    """Return the number of messages by channel id in an unpacked chunk; None if it is long, or not all are records."""
    buffers = Buffers(len(data))
    arrays = buffers.key, buffers.time, buffers.data, buffers.size, buffers.note
    why, stop, n, _ = mcap.walk(data, 0, len(data), *arrays, 0)
    return _counted(buffers.key[:n]) if stop == len(data) and why not in (mcap.CUT, mcap.BAD) else None


def _counted(ids: I64) -> dict[int, int]:
    keys, counts = np.unique(ids, return_counts=True)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def _compare(file: FoundFile, statistics: Statistics) -> None:
    ids, by_id = np.concatenate([np.zeros((0, 2), np.int64), *(part.counts() for part in file.parts)]).T
    counts = np.zeros(int(ids.max(initial=-1)) + 1, np.int64)
    np.add.at(counts, ids, by_id)
    counted = {number: int(counts[number]) for number in np.flatnonzero(counts).tolist()}
    said = {number: count for number, count in statistics.counts.items() if count}
    total = int(counts.sum())
    if statistics.messages == total and said in ({}, counted):
        return
    if any(part.messages is None for part in file.parts):
        if statistics.messages != total:
            raise BadRecord(f"it counts {statistics.messages} messages, the index {total}")
        raise BadRecord("its statistics count other messages than the index of the chunks")
    for text in differing(statistics, counted):
        file.note("statistics", 0, 0, False, text)


def differing(statistics: Statistics, counts: Mapping[int, int]) -> Iterator[str]:
    """Yield a sentence for each difference of the statistics from *counts*, the numbers of messages by channel id."""
    total = sum(counts.values())
    if statistics.messages != total:
        yield f"the statistics count {statistics.messages} messages, there are {total}"
    said = {number: count for number, count in statistics.counts.items() if count}
    if said and said != counts:
        number = min(n for n in said.keys() | counts.keys() if said.get(n, 0) != counts.get(n, 0))
        counted = f"the statistics count {said.get(number, 0)} messages of channel {number}"
        yield f"{counted}, there are {counts.get(number, 0)}"


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
    all_records = read(source, trust=False)
    # Definitions of *file* take precedence, so that channels keep their names.
    all_records.schemas, all_records.channels = (
        all_records.schemas | file.schemas,
        all_records.channels | file.channels,
    )
    by_chunk = defaultdict[tuple[int, str], list[I64]](list)
    for part in all_records.parts:
        if part.messages is not None:
            by_chunk[_key(all_records.chunks[part.chunk])].append(
                _places(all_records.chunks[part.chunk], part.messages)
            )
    known = {key: np.sort(np.concatenate(places)) for key, places in by_chunk.items()}
    named = defaultdict[tuple[int, str], list[I64]](list)
    for part, messages in builder.located_messages():
        chunk = file.chunks[part.chunk]
        key, places = _key(chunk), _places(chunk, messages)
        named[key].append(places)
        more = ~_among(places, known.get(key))
        if more.any():
            named_only = Messages(
                *(getattr(messages, name)[more] for name in ("key", "time", "entry", "size"))
            )
            all_records.parts.append(
                ChunkMessages(len(all_records.chunks), part.pos, 0, chunk.size, messages=named_only)
            )
            all_records.chunks.append(chunk)
    all_records.parts.sort(key=lambda part: part.pos)
    have = {attachment.pos for attachment in all_records.attachments}
    all_records.attachments += [attachment for attachment in file.attachments if attachment.pos not in have]
    known_metadata = {_metadata_key(entry) for entry in all_records.metadata}
    all_records.metadata += [entry for entry in file.metadata if _metadata_key(entry) not in known_metadata]
    all_records.statistics = all_records.statistics or file.statistics
    all_records.by_summary = file.by_summary
    # Messages of channels without a definition are reported by the IndexBuilder.
    declared = np.array(sorted(all_records.channels), np.int64)
    led = {key: np.sort(np.concatenate(places)) for key, places in named.items()}
    extra, at = 0, 0
    for part in all_records.parts:
        if part.messages is not None:
            chunk = all_records.chunks[part.chunk]
            places = _places(chunk, part.messages)[np.isin(part.messages.key, declared)]
            missing = int((~_among(places, led.get(_key(chunk)))).sum())
            at = part.pos if missing and not extra else at
            extra += missing
    return FullRead(all_records, extra, at)


def _metadata_key(entry: tuple[str, dict[str, str]]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a metadata record in a form that a set can contain."""
    name, values = entry
    return name, tuple(sorted(values.items()))


def _key(chunk: Chunk) -> tuple[int, str]:
    """Return what offsets of a chunk's messages are relative to: the file, or the decompressed bytes of a chunk."""
    return (-1, "") if chunk.is_plain else (chunk.data, chunk.compression)


def _places(chunk: Chunk, messages: Messages) -> I64:
    return messages.entry.astype(np.int64) + (chunk.data if chunk.is_plain else 0)


def _among(places: I64, known: I64 | None) -> NDArray[np.bool_]:
    """Return bool[n], whether each of *places* is among the *known* ones, which ascend."""
    if known is None:
        return np.zeros(len(places), np.bool_)
    at = np.minimum(np.searchsorted(known, places), len(known) - 1)
    is_known: NDArray[np.bool_] = known[at] == places if len(known) else np.zeros(len(places), np.bool_)
    return is_known


def share_problems(file: FoundFile, builder: IndexBuilder, all_records: FoundFile) -> None:
    """Give both files one list of problems; messages that an index leaves out are no longer reported as lost."""
    noted = Noted()
    for problem in file.problems:
        if problem in builder.left_out:
            problem = replace(problem, lost=False, text=builder.left_out[problem])
        noted.add(all_records.problems, problem)
    file.problems[:] = all_records.problems
    all_records.problems = file.problems
