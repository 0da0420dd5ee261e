"""Continuation of a bag: its records stay as they are, new records follow, and the index is that of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from logreel.errors import LogError, UnsupportedError, UsageError
from logreel.formats.rosbag import reader_v1, reader_v2
from logreel.formats.rosbag.definitions import Channels, Connection, Definitions
from logreel.formats.rosbag.records import U64, read_record
from logreel.formats.rosbag.schema_maker import NewConnection, declare
from logreel.formats.rosbag.writer import (
    CHUNK_BYTES,
    MAGIC,
    V1_ENTRY,
    BagV11Writer,
    BagV12Writer,
    BagV20Writer,
    OldHeader,
    OldIndex,
    OldSummary,
    typical_limit,
)
from logreel.io.append_file import Appender
from logreel.io.source import FILE, Source
from logreel.log.log import Channel, Log
from logreel.write.format_writer import FormatWriter


def append(
    out: Appender,
    log: Log,
    *,
    version: str | None = None,
    compression: str = "none",
    chunk_bytes: int | None = None,
    indexed: bool | None = None,
) -> FormatWriter:
    """Return the writer that continues the bag *log*.

    version, indexed  must be those of the bag; None: these
    compression       version 2.0: of the new chunks, ``none``, ``bz2`` or ``lz4``
    chunk_bytes       version 2.0: as for a new bag; None: as in the bag, at least 768 KiB

    Raises UnsupportedError for encrypted bags and versions that are not written, LogError for a bag without a valid
    index, since only its recovery finds what it contains.
    """
    if version not in (None, log.version):
        raise UsageError(f"version {version!r}; the bag is of version {log.version}", path=log.name)
    if "encryptor" in log.metadata:
        raise UnsupportedError(
            "is encrypted: only bags that are not can be continued",
            path=log.name,
            hint="copy it by logreel.slice, opened with decrypt=True, and append to the copy",
        )
    source = Source(log.index.chunks[FILE], log.name)
    if log.version == "2.0":
        return _append_v20(out, log, source, compression, chunk_bytes)
    if log.version not in ("1.1", "1.2"):
        raise UnsupportedError(
            f"a bag of version {log.version} cannot be continued, only one of 1.1, 1.2 or 2.0",
            path=log.name,
            hint="copy it by logreel.slice, which writes version 2.0, and append to the copy",
        )
    if compression != "none" or chunk_bytes is not None:
        raise UsageError(f"a bag of version {log.version} has neither compression nor chunks", path=log.name)
    if log.version == "1.2":
        return _append_v12(out, log, source, indexed)
    return _append_v11(out, log, source)


def _declared(ch: Channel) -> NewConnection:
    """Return a channel of the old bag; types and checksums that cannot be written are kept."""
    return declare(ch.topic, ch.schema, ch.metadata, [])


def _refuse(log: Log, why: str) -> NoReturn:
    raise LogError(
        why,
        path=log.name,
        hint="make a complete bag of it by logreel.recover, and append to that",
    )


def _check_width(log: Log, header: OldHeader) -> None:
    """Refuse a bag whose header has no room for the offset of an index anywhere in the file."""
    start, end = header.places[b"index_pos"]
    if end - start < U64.size:
        _refuse(log, f"its header has only {end - start} bytes for the offset of the index")


# ---------------------------------------------------------------------------------------------- version 2.0


def _append_v20(
    out: Appender, log: Log, source: Source, compression: str, chunk_bytes: int | None
) -> BagV20Writer:
    old = reader_v2.read(source)
    if old.index is None:
        _refuse(log, next((p.text for p in old.problems if p.code == "index"), "has no header"))
    head = read_record(source, len(MAGIC), source.size)
    end = head.u32(b"index_pos")
    for problem in old.problems:
        # Zeros before the summary are left out.
        if problem.code == "zeros" and problem.offset + problem.size == end:
            end = problem.offset
    header = OldHeader.read(source, head)
    _check_width(log, header)
    if chunk_bytes is None:
        chunk_bytes = max(CHUNK_BYTES, typical_limit([chunk.size for chunk in old.chunks]))
    out.keep_old(end)
    writer = BagV20Writer(out, compression, chunk_bytes, OldSummary.read(source, head, header, old.chunks))
    numbers = _connections_of(source, list(old.connections.values()))
    for ch in log.channels.values():
        writer.continue_channel(ch.topic, ch.schema, _declared(ch), numbers[ch.number])
    return writer


def _connections_of(source: Source, connections: Sequence[Connection]) -> list[list[int]]:
    """Return the connection numbers of each channel, as the reader assigns them."""
    channels = Channels(Definitions(source, []))
    by_channel: list[list[int]] = []
    for connection in connections:
        channel = channels.add(connection)
        by_channel += [[]] * (channel == len(by_channel))
        by_channel[channel] = [*by_channel[channel], connection.key]
    return by_channel


# ------------------------------------------------------------------------------------- versions 1.1 and 1.2


def _append_v11(out: Appender, log: Log, source: Source) -> BagV11Writer:
    out.keep_old(source.size)
    writer = BagV11Writer(out, continues=True)
    for ch in log.channels.values():
        writer.continue_channel(ch.topic, ch.schema, _declared(ch), fresh=False)
    return writer


def _append_v12(out: Appender, log: Log, source: Source, indexed: bool | None) -> BagV12Writer:
    reader = reader_v1.read(source)
    index, connections = reader.index, reader.connections()
    old = None
    if index.stated is not None:
        if not index.stated or (index.definitions and not index.records):
            _refuse(log, "its recorder did not complete it: its header names no index")
        findings = index.findings(source, reader.parts, connections)
        wrong = next((finding for finding in findings if finding.code == "index"), None)
        if wrong is not None:
            _refuse(log, f"its index does not fit its messages: {wrong.text}")
        head = read_record(source, reader_v1.FIRST_RECORD, source.size)
        raw = {r.text(b"topic"): source.read(r.pos, r.end - r.pos) for r in index.records}
        entries = {r.text(b"topic"): source.data[r.data : r.end].view(V1_ENTRY) for r in index.records}
        header = OldHeader.read(source, head)
        _check_width(log, header)
        old = OldIndex(header, {topic: r.pos for topic, r in index.definitions.items()}, raw, entries)
    elif index.records:
        _refuse(log, "it has an index, and no header that says where")
    if indexed not in (None, old is not None):
        raise UsageError(f"indexed {indexed}; the bag is {'' if old else 'not '}indexed", path=log.name)
    out.keep_old(source.size if index.stated is None else index.stated)
    writer = BagV12Writer(out, old is not None, continues=True, old=old)
    known = set[str]()
    for ch in log.channels.values():
        declared = _declared(ch)
        # Readers look up definitions by topic; a second type of a topic is declared again.
        fresh = declared.topic in known or declared.topic not in index.definitions
        known.add(declared.topic)
        writer.continue_channel(ch.topic, ch.schema, declared, fresh)
    return writer
