"""Reading of the index of a bag of version 2.0: the summary at its end and the index records after each chunk.

The index is used if it is complete and consistent; else all records are read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import Chunk
from logreel.formats.rosbag.encryption import decrypted_record
from logreel.formats.rosbag.found import FoundFile, IndexedMessages, Summary, add_connection, chunk_of
from logreel.formats.rosbag.index_builder import ascending_runs, run_starts
from logreel.formats.rosbag.index_check import check_outer_chunks
from logreel.formats.rosbag.reader import skip_damage
from logreel.formats.rosbag.records import BadRecord, Record, find_record, read_record
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import rosbag

#: Bytes of an entry of an index record.
ENTRY = 12


def read_index(source: Source, head: Record, bag: FoundFile) -> None:
    """Add all messages to *bag* by the index; raise BadRecord if it is missing or contradicts the file."""
    if bag.is_early:
        raise BadRecord("it is of a development version")
    at = head.u32(b"index_pos")
    if at == 0:
        raise BadRecord("the recorder did not write one")
    if not head.end <= at <= source.size:
        raise BadRecord(f"it is said to be at {at}")
    source.span(at, source.size)
    pos, pairs, span = _summary(source, at, bag)
    stated = head.u32(b"conn_count"), head.u32(b"chunk_count")
    if (len(bag.connections), len(pos)) != stated:
        raise BadRecord(
            f"{stated[0]} connections and {stated[1]} chunks are stated, {len(pos)} chunks are described"
        )
    if source.in_ranges and bag.cipher is None:
        # The records after each chunk are read when its messages are needed.
        bag.summary = _summary_of(source, head.end, at, bag, pos, pairs, span)
        return
    if source.in_ranges:
        # Of an encrypted bag, all of it.
        _ = source.data
    bag.index = replace(_read_chunk_indexes(source, head.end, at, bag, pos, pairs), span=span)


def _summary(source: Source, at: int, bag: FoundFile) -> tuple[I64, I64, I64]:
    """Read connections and chunk infos up to the end of the file.

    Returns int64[k] offsets of the chunks, in file order; int64[m, 3] chunk number, connection and number of messages
    where there are any, ordered by chunk and connection; int64[k, 2] first and last time of the chunks in ns.
    """
    places: list[int] = []
    spans: list[tuple[int, int]] = []
    parts: list[I64] = []
    while at < source.size:
        record, inside, after = _record(source, at, bag)
        if after > source.size:
            raise BadRecord("it is cut")
        if record.op == records.OP_CONNECTION:
            add_connection(inside, record, bag)
        elif record.op == records.OP_CHUNK_INFO:
            counts = np.frombuffer(source.read(record.data, record.size // 8 * 8), "<u4").reshape(-1, 2)
            rows = np.full((len(counts), 3), len(places), np.int64)
            rows[:, 1:] = counts
            parts.append(rows)
            bag.problems += _wrong_info(record, len(counts))
            places.append(min(record.u32(b"chunk_pos"), source.size))
            spans.append((record.time(b"start_time"), record.time(b"end_time")))
        at = after
    pos = np.array(places, np.int64)
    order = np.argsort(pos, kind="stable")
    pairs = np.concatenate([np.zeros((0, 3), np.int64), *parts])
    pairs = pairs[pairs[:, 2] > 0]
    pairs[:, 0] = np.argsort(order)[pairs[:, 0]]
    return pos[order], _sorted(pairs, bag), np.array(spans, np.int64).reshape(-1, 2)[order]


def _wrong_info(record: Record, entries: int) -> list[Problem]:
    """Return the problems of what a chunk info states of itself: its version, and its number of *entries*."""
    wrong = []
    if (version := record.u32(b"ver")) != 1:
        wrong.append(f"the version {version}, there is only 1")
    if (count := record.u32(b"count")) != entries:
        wrong.append(f"{count} connections, it has {entries}")
    return [Problem("index", record.pos, 0, False, f"a chunk info states {text}") for text in wrong]


def _record(source: Source, pos: int, bag: FoundFile) -> tuple[Record, Source, int]:
    """Return the summary's record at *pos*, the bytes that contain it (decrypted), and the offset of the next one."""
    try:
        record = read_record(source, pos, source.size)
    except BadRecord:
        if bag.cipher is None:
            raise
        inside, after = decrypted_record(source, pos, bag.cipher)
        return read_record(inside, 0, inside.size), inside, after
    return record, source, record.end


def _sorted(runs: I64, bag: FoundFile) -> I64:
    """Return rows of chunk, connection, … ordered by chunk, in a chunk by the order of *bag.connections*."""
    numbers = np.array(list(bag.connections), np.int64)
    by_number = np.argsort(numbers)
    at = np.searchsorted(numbers, runs[:, 1], sorter=by_number)
    if (at == len(numbers)).any() or (numbers[by_number[at]] != runs[:, 1]).any():
        raise BadRecord("it does not describe all connections")
    return runs[np.lexsort((by_number[at], runs[:, 0]))]


def _read_chunk_indexes(
    source: Source, first: int, summary: int, bag: FoundFile, pos: I64, pairs: I64
) -> IndexedMessages:
    """Read the index records after each chunk, and compare them with the summary.

    first    offset of the first record after the file header
    summary  offset of the summary
    pos      int64[k]     offsets of the chunks
    pairs    int64[m, 3]  chunk number, connection and number of messages according to the summary
    """
    chunk, runs = chunk_indexes(source, bag, pos, pairs)
    chunks = [
        Chunk(at, data, stored, rosbag.COMPRESSIONS[packing], size, bag.cipher)
        for at, (data, stored, packing, size, _) in zip(pos.tolist(), chunk.tolist(), strict=True)
    ]
    for one in chunks:
        if one.is_plain and one.size != one.stored:
            raise BadRecord(f"the chunk at {one.pos} states two sizes")
        bag.count(one)
    _check_gaps(source, np.append(first, chunk[:, 4]), np.append(pos, summary), bag)
    check_outer_chunks(source, chunks, np.bincount(pairs[:, 0], pairs[:, 2], len(pos)).astype(np.int64))
    bag.chunks = chunks
    return entries(source, pos, chunk, runs, all(one.is_plain for one in chunks))


def chunk_indexes(source: Source, bag: FoundFile, pos: I64, pairs: I64) -> tuple[I64, I64]:
    """Read the headers of the chunks at *pos* and of their index records.

    pairs  int64[m, 3]  number in *pos*, connection and number of messages according to the summary

    Returns int64[k, 5]: offset of the data, stored bytes, compression, decompressed bytes, offset behind the index
    records; and int64[m, 4]: *pairs* with the offsets of the entries. Raises BadRecord for a difference.
    """
    many = np.bincount(pairs[:, 0], minlength=len(pos)).astype(np.int64)
    chunk, found = np.zeros((len(pos), 5), np.int64), np.zeros((len(pairs), 3), np.int64)
    # Of a remote bag, the caller has fetched these bytes.
    why, k = rosbag.read_chunk_headers(source.span(0, 0), pos, many, chunk, found)
    if why != rosbag.OK:
        raise BadRecord(
            {
                rosbag.NO_CHUNK: f"there is no chunk of a known compression at {pos[k]}",
                rosbag.CUT: f"the chunk at {pos[k]} is cut",
            }.get(why, f"the index of the chunk at {pos[k]} is incomplete")
        )
    runs = _sorted(np.column_stack([np.repeat(np.arange(len(pos)), many), found]), bag)
    if not np.array_equal(runs[:, :3], pairs):
        row = int(np.flatnonzero((runs[:, :3] != pairs).any(axis=1))[0])
        raise BadRecord(f"the index of the chunk at {pos[pairs[row, 0]]} does not fit the summary")
    return chunk, runs


def _summary_of(
    source: Source, first: int, at: int, bag: FoundFile, pos: I64, pairs: I64, span: I64
) -> Summary:
    """Return the summary of a remote bag after a look at its first chunk; raise BadRecord if it is impossible.

    first  offset of the first record after the file header
    at     offset of the summary
    """
    end = np.append(pos[1:], at)
    if len(pos) and (pos[0] < first or (pos >= end).any()):
        raise BadRecord("its chunks are not where they can be")
    if not len(pos) and first < at:
        raise BadRecord("it names no chunk")
    if len(pos):
        _check_gaps(source, np.array([first]), pos[:1], bag)
        bag.count(chunk_of(read_record(source, int(pos[0]), source.size), bag))
        bag.chunk_count = len(pos)
    empty = np.flatnonzero(np.bincount(pairs[:, 0], pairs[:, 2], len(pos)) == 0)
    if len(empty):
        raise BadRecord(f"it names no message of the chunk at {pos[empty[0]]}")
    return Summary(pos, end, pairs, span)


def _check_gaps(source: Source, pos: I64, end: I64, bag: FoundFile) -> None:
    """Report bytes that are no records in the gaps *pos* … *end* around the chunks.

    Raises BadRecord if chunks overlap or a gap contains a record.
    """
    if (pos > end).any():
        raise BadRecord(f"chunks overlap at {end[pos > end][0]}")
    for a, b in zip(pos[pos < end].tolist(), end[pos < end].tolist(), strict=True):
        if find_record(source, a - 1, b) < b:
            raise BadRecord(f"it does not name what stands at {a}")
        skip_damage(source, a, b, bag.problems, False)


def entries(source: Source, pos: I64, chunk: I64, runs: I64, plain: bool) -> IndexedMessages:
    """Read the entries of the index records: time and offset of each message; raise BadRecord for impossible ones.

    chunk, runs  what ``chunk_indexes`` returned
    """
    count = runs[:, 2]
    n = int(count.sum())
    time, entry = np.empty(n, np.int64), np.empty(n, np.uint32)
    outside = rosbag.read_index_entries(
        source.span(0, 0), np.column_stack([count, runs[:, 3], chunk[runs[:, 0], 3]]), time, entry
    )
    if outside < len(runs):
        raise BadRecord(f"the index of the chunk at {pos[runs[outside, 0]]} points outside of it")
    start = run_starts(count)
    # Writers sort the entries by time; messages of a channel are ordered by their place in the file.
    for k in np.flatnonzero(~ascending_runs(entry, start)).tolist():
        span = slice(int(start[k]), int(start[k + 1]))
        order = np.argsort(entry[span], kind="stable")
        entry[span], time[span] = entry[span][order], time[span][order]
        if (entry[span][1:] == entry[span][:-1]).any():
            raise BadRecord(f"the index of the chunk at {pos[runs[k, 0]]} names a message twice")
    # Kernels need contiguous arrays.
    data, size = chunk[:, 0].copy(), chunk[:, 3].copy()
    return IndexedMessages(pos, data, size, plain, runs[:, :3], time, entry)
