"""Building of the Scan of an MCAP file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from logreel.dataclass import replace
from logreel.errors import Finding, Problem
from logreel.formats.mcap import reader
from logreel.formats.mcap.chunks import cache, compressions
from logreel.formats.mcap.definitions import Clock, Decoders, channel_infos, from_json, source_facts, unique
from logreel.formats.mcap.index_builder import (
    SIDE_COLUMNS,
    IndexBuilder,
    check_index,
    read_all,
    share_problems,
)
from logreel.formats.mcap.reader import OWN, UNFINISHED, FoundFile, Reader, read_by_summary
from logreel.formats.mcap.records import AttachmentRecord, BadRecord
from logreel.index.channel_index import ChannelRules, StoredValues
from logreel.index.growing_table import GrowingTable
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Chunks, Source
from logreel.log.scan import MADE_OF, Attachment, Change, ChannelInfo, Parameter, Scan

#: Decompressing this many stored bytes takes a fraction of a second.
CHEAP_BYTES = 1 << 28


def scan(source: Source) -> Scan:
    """Return the Scan of an MCAP file; raise UnsupportedError for more channels × chunks than an index can hold."""
    return _scan_of(source, _read(source))


def _read(source: Source) -> FoundFile:
    """Return the content of the file, by its summary if that is complete and consistent."""
    try:
        file = read_by_summary(source) or reader.read(source)
        # Statistics of a damaged file say nothing about its index.
        check_index(source, file, not any(problem.lost for problem in file.problems))
    except BadRecord as error:
        file = reader.read(source, trust=False)
        file.note("index", source.size, 0, False, f"the summary is not used: {error}")
    return file


def _reread(source: Source, file: FoundFile, builder: IndexBuilder) -> Scan:
    """Return the Scan of all whole records; it shares its list of problems with *file*."""
    every_record = read_all(source, file, builder).file
    share_problems(file, builder, every_record)
    return _scan_of(source, every_record)


def _scan_of(source: Source, file: FoundFile) -> Scan:
    file.source = source
    decoders = Decoders(source, file.problems)
    number, channels = channel_infos(file, decoders)
    chunks = Chunks(
        source,
        cache(source, file.chunks, file.problems),
        lambda n: file.chunks[n].size,
        lambda n: file.chunks[n].pos,
        (lambda n: file.chunks[n].data + file.chunks[n].stored) if file.by_summary else None,
    )
    builder = IndexBuilder(source, file, number, chunks)
    index = builder.index(is_cheap(file) and not chunks.in_ranges)
    decoders.look_at(index, number)
    return assemble(
        source,
        file,
        channels,
        index,
        builder.bounds,
        builder.compare_checksums,
        lambda: _verify(source, file, builder),
        lambda: _reread(source, file, builder),
    )


def _verify(source: Source, file: FoundFile, builder: IndexBuilder) -> Iterable[Finding]:
    from logreel.formats.mcap.verify import verify

    return verify(source, file, builder)


def is_cheap(file: FoundFile) -> bool:
    """Return whether decompressing all chunks takes a fraction of a second."""
    return sum(chunk.stored for chunk in file.chunks if not chunk.is_plain) < CHEAP_BYTES


def assemble(
    source: Source,
    file: FoundFile,
    channels: list[ChannelInfo],
    index: MessageIndex,
    bounds: Callable[[], tuple[int | None, int | None]],
    checksums: Callable[[I64], None] | None,
    verify: Callable[[], Iterable[Finding]],
    reread: Callable[[], Scan],
) -> Scan:
    """Return the Scan of what was found; *bounds*: earliest and latest time in ns; others: as in Scan."""
    origin = dict(file.origin or {})
    clock = Clock.read(origin)
    # Channels that a conversion added repeat others: their messages are not those of the log that was converted.
    own = [n for n, info in enumerate(channels) if MADE_OF not in info.metadata]
    start, end = _bounds(clock, bounds, int(index.counts[own].sum()))
    epoch = clock.epoch_until(end)
    offset = clock.offset_in(epoch)
    return Scan(
        version="0",
        epoch=epoch,
        start=start,
        end=end,
        channels=channels,
        index=index,
        problems=file.problems,
        metadata=lambda: _metadata(file, origin),
        attachments=lambda: _attachments(source, file.attachments),
        parameters=lambda: _parameters(origin),
        utc_offset=lambda: offset,
        checksums=checksums,
        verify=verify,
        reread=reread,
        format_state=file,
        converted_from=origin.get("format", ""),
    )


def _bounds(
    clock: Clock, bounds: Callable[[], tuple[int | None, int | None]], messages: int
) -> tuple[int | None, int | None]:
    """Return start and end in ns; those of the log that was converted as long as all of its messages are there."""
    if clock.span is not None and clock.span[2] == messages:
        return clock.span[:2]
    return bounds()


def _metadata(file: FoundFile, origin: Mapping[str, str]) -> Mapping[str, Any]:
    """Return metadata records by name (lists of repeated ones), metadata of the converted log, facts of the file."""
    values: dict[str, Any] = {}
    for name, record in file.metadata:
        if name == OWN:
            continue
        before = values.get(name)
        values[name] = (
            record if before is None else [*(before if isinstance(before, list) else [before]), record]
        )
    facts: dict[str, Any] = {
        "profile": file.profile,
        "library": file.library,
        "chunks": len(file.every),
        "compression": compressions(file.every),
        "indexed": file.by_summary,
    }
    if (stats := file.statistics) is not None:
        facts["statistics"] = {
            "messages": stats.messages,
            "schemas": stats.schemas,
            "channels": stats.channels,
            "attachments": stats.attachments,
            "metadata": stats.metadata,
            "chunks": stats.chunks,
            "start_ns": stats.start,
            "end_ns": stats.end,
        }
    if "mcap" in values:
        facts["metadata"] = values["mcap"]
    if origin:
        facts["converted_from"] = source_facts(origin)
    return values | from_json(origin.get("metadata", "")) | {"mcap": facts}


def _attachments(source: Source, attached: list[AttachmentRecord]) -> list[Attachment]:
    names = unique(entry.name for entry in attached)
    return [
        Attachment(
            name,
            entry.media_type,
            entry.size,
            lambda entry=entry: source.read(entry.data, entry.size),  # type: ignore[misc]
            entry.log_time,
            entry.create_time,
        )
        for name, entry in zip(names, attached, strict=True)
    ]


def _parameters(origin: Mapping[str, str]) -> list[Parameter]:
    made = []
    for stated in from_json(origin.get("parameters", "")).get("parameters", []):
        try:
            changes = tuple(Change(int(time), value) for time, value in stated["changes"])
            made.append(
                Parameter(
                    str(stated["name"]),
                    str(stated["type"]),
                    stated["value"],
                    changes,
                    dict(stated["defaults"]),
                )
            )
        except (KeyError, TypeError, ValueError):
            continue
    return made


class McapGrowing:
    """The Growing of one MCAP file.

    Chunks are decompressed when they are complete; the index of a chunk is not used, because it follows later.
    """

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._file = FoundFile()
        #: Channel number by channel id, in the order in which the channels appeared.
        self._number: dict[int, int] = {}
        self._table = GrowingTable(time=np.int64, size=np.uint32)
        self._first: int | None = None
        self._last: int | None = None
        #: Whether all messages are in the file as they are; None before the first message.
        self._is_plain: bool | None = None

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._reader is None:
            self._reader = Reader(source, trust=False)
            self._file = self._reader.file
        self._file.source = source
        if not self._reader.feed(source) or not self._collect():
            return None
        return self._scan(source, self._reader)

    def _collect(self) -> bool:
        """Move the messages found to the table; return False for unknown channels, and if only some are compressed."""
        file = self._file
        for number in file.channels:
            self._number.setdefault(number, len(self._number))
        column = np.full(1 << 16, -1, np.int64)
        column[list(self._number)] = list(self._number.values())
        self._table.declare(len(self._number))
        while file.parts:
            part = file.parts[0]
            chunk, messages = file.chunks[part.chunk], part.messages
            if messages is None:
                return False
            channel = column[messages.key]
            if (channel < 0).any() or self._is_plain not in (None, chunk.is_plain):
                return False
            self._is_plain = chunk.is_plain
            base, number = (part.base + chunk.data, FILE) if chunk.is_plain else (part.base, part.chunk)
            self._table.add(base, number, channel, messages.entry, time=messages.time, size=messages.size)
            first, last = int(messages.time.min()), int(messages.time.max())
            self._first = first if self._first is None else min(first, self._first)
            self._last = last if self._last is None else max(last, self._last)
            del file.parts[0]
        if self._is_plain:
            # Only those of compressed chunks are needed again.
            file.chunks.clear()
        return True

    def _scan(self, source: Source, reader: Reader) -> Scan:
        """Return the Scan of what was found so far, which does not change when reading goes on."""
        file = replace(
            self._file,
            schemas=dict(self._file.schemas),
            channels=dict(self._file.channels),
            chunks=list(self._file.chunks),
            every=list(self._file.every),
            attachments=list(self._file.attachments),
            metadata=list(self._file.metadata),
            metadata_places=list(self._file.metadata_places),
            problems=[*self._file.problems, *_problems_at_the_end(source, reader)],
            by_summary=reader.has_summary,
        )
        decoders = Decoders(source, file.problems)
        _, channels = channel_infos(file, decoders, self._number)
        chunks = Chunks(
            source,
            cache(source, file.chunks, file.problems),
            lambda n: file.chunks[n].size,
            lambda n: file.chunks[n].pos,
        )
        rules = ChannelRules(
            StoredValues(self._table.column("time")),
            StoredValues(self._table.column("size")),
            side_columns=SIDE_COLUMNS,
        )
        count = len(self._number)
        index = MessageIndex(
            chunks, self._table.blocks(count), [rules] * count, sizes_are_cheap=is_cheap(file)
        )
        decoders.look_at(index, self._number)
        bounds = self._first, self._last
        return assemble(
            source,
            file,
            channels,
            index,
            lambda: bounds,
            None,
            lambda: scan(source).verify(),
            lambda: scan(source),
        )


def _problems_at_the_end(source: Source, reader: Reader) -> list[Problem]:
    problems, left = list[Problem](), source.size - reader.pos
    if left > 0:
        text = f"the last {left} bytes are a record that is not complete yet"
        problems.append(Problem("truncated", reader.pos, left, True, text))
    if not reader.finished:
        problems.append(Problem("unfinished", source.size, 0, False, UNFINISHED))
    return problems
