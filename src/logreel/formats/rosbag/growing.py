"""Read a bag while it is written: go on from the last complete record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from logreel.errors import Problem, UnsupportedError
from logreel.formats.rosbag import records
from logreel.formats.rosbag.channels import CONNECTION, Channels, Connection
from logreel.formats.rosbag.chunks import cache
from logreel.formats.rosbag.definitions import Definitions
from logreel.formats.rosbag.encryption import cipher_of
from logreel.formats.rosbag.found import ChunkMessages, FoundFile, chunk_of
from logreel.formats.rosbag.reader import Region, after_padding, read_region, refuse_nested, skip_damage
from logreel.formats.rosbag.reader_text import TEXT_VERSIONS, FoundText, NoRecord
from logreel.formats.rosbag.reader_v1 import FIRST_RECORD, Declared, after_header
from logreel.formats.rosbag.reader_v2 import FOREIGN_OPS, begins, declarations, read_chunk
from logreel.formats.rosbag.records import BadRecord, Record, read_record
from logreel.formats.rosbag.scan_builder import assemble, scan
from logreel.formats.rosbag.summary import ENTRY
from logreel.formats.rosbag.verify_v1 import Index
from logreel.formats.rosbag.version import version_of
from logreel.index.growing_table import GrowingTable
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, StoredValues
from logreel.io.chunks import FILE, Chunks
from logreel.io.source import Source
from logreel.log.scan import Scan

#: Bytes behind damage with which it is judged as in a complete file.
ENOUGH = 1 << 20
#: Bytes of an incomplete record after which its stated size is not believed any more.
PENDING = 1 << 28


class GrowingReader(Protocol):
    """The state of reading a bag of one version.

    pos    offset after the last complete record
    parts  messages found that the table does not have yet
    problems  damage found so far
    """

    pos: int
    parts: list[ChunkMessages]
    problems: list[Problem]

    def read(self, source: Source) -> bool:
        """Read the complete records after ``pos``; return whether all bytes could be judged."""

    def connections(self) -> Iterable[Connection]:
        """Return the connections found so far; later ones follow them."""

    def chunks(self, source: Source, problems: list[Problem]) -> Chunks:
        """Return the buffers of the messages found so far."""

    def facts(self) -> tuple[dict[str, Any], bool, Any]:
        """Return metadata of the log, whether decompressing all is cheap, and ``Scan.format_state``."""


class BagGrowing:
    """The Growing of one bag."""

    def __init__(self) -> None:
        self._version, self._reader = "", None  # type: tuple[str, GrowingReader | None]
        self._table = GrowingTable(time=np.int64, size=np.uint32, turn=np.uint32)
        self._first: int | None = None
        self._last: int | None = None
        #: Channel number of each connection, which must not change.
        self._number: dict[int, int] = {}
        #: Whether the messages are in the file as they are, or in chunks; None before the first message.
        self._is_plain: bool | None = None

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._reader is None:
            version = version_of(source)
            if version is None:
                raise UnsupportedError("the file ends before its version is clear", path=source.name)
            self._version, self._reader = version, _reader_of(version, source)
        reader = self._reader
        if not reader.read(source):
            return None
        problems = [*reader.problems, *_problems_at_the_end(reader, source)]
        channels = Channels(Definitions(source, problems))
        for connection in reader.connections():
            channels.add(connection)
        if not self._collect(reader, channels):
            return None
        metadata, cheap, state = reader.facts()
        side_columns = {CONNECTION: StoredValues(self._table.column("turn"))} if channels.are_several else {}
        time, size = (StoredValues(self._table.column(name)) for name in ("time", "size"))
        rules = [ChannelRules(time, size, side_columns=side_columns)] * len(channels)
        chunks = reader.chunks(source, problems)
        index = MessageIndex(chunks, self._table.blocks(len(channels)), rules, sizes_are_cheap=cheap)
        bounds = self._first, self._last
        found = assemble(
            self._version, channels, index, bounds, problems, metadata, lambda: scan(source).verify()
        )
        return replace(found, format_state=state, reread=lambda: scan(source))

    def _collect(self, reader: GrowingReader, channels: Channels) -> bool:
        """Move the messages found to the table; return False if it cannot hold them.

        That is so for messages without a connection, and for a connection that proved to be of another channel, which
        are damage; and for messages in chunks of which only some are compressed.
        """
        if any(channels.number.get(key) != number for key, number in self._number.items()):
            return False
        self._number = dict(channels.number)
        self._table.declare(len(channels))
        keys = np.array(sorted(self._number), np.int64)
        number = np.array([self._number[key] for key in keys.tolist()], np.int64)
        turn = np.array([channels.turn[key] for key in keys.tolist()], np.uint32)
        while reader.parts:
            part = reader.parts[0]
            at = keys.searchsorted(part.key)
            at[at == len(keys)] = 0
            is_plain = part.chunk == FILE
            if not len(keys) or (keys[at] != part.key).any() or self._is_plain not in (None, is_plain):
                return False
            self._is_plain = is_plain
            self._table.add(
                part.base, part.chunk, number[at], part.entry, time=part.time, size=part.size, turn=turn[at]
            )
            first, last = int(part.time.min()), int(part.time.max())
            self._first = first if self._first is None else min(first, self._first)
            self._last = last if self._last is None else max(last, self._last)
            del reader.parts[0]
        return True


def _reader_of(version: str, source: Source) -> GrowingReader:
    """Return the reader of a bag; raises UnsupportedError if the file ends in its header, and for unknown versions."""
    if version in TEXT_VERSIONS:
        return _Text(source, version)
    if version == "1.2":
        return _V1(source)
    if version == "1.3" or version.split(".")[0] == "2":
        return _V2(source)
    raise UnsupportedError(f"a bag of version {version}", path=source.name)


def _problems_at_the_end(reader: GrowingReader, source: Source) -> list[Problem]:
    left = source.size - reader.pos
    text = f"the last {left} bytes are a record that is not complete yet"
    return [Problem("truncated", reader.pos, left, True, text)] if left > 0 else []


def _header_is_whole(source: Source, pos: int) -> Record | None:
    """Return the record at *pos* if all of it is in the file, None if it is damaged; raise UnsupportedError."""
    try:
        head = read_record(source, pos, source.size)
        is_cut = head.op == records.OP_FILE and head.end > source.size
    except BadRecord as error:
        head, is_cut = None, error.cut
    if is_cut:
        raise UnsupportedError("the file ends inside its header", path=source.name)
    return head


class _V2:
    """Reads a bag of version 2.0."""

    def __init__(self, source: Source) -> None:
        first = source.head.find(b"\n") + 1
        head = _header_is_whole(source, first)
        # An encrypted bag, or one with a damaged header, is rare: these are read from the start each time.
        cipher = None if head is None else cipher_of(source, head)
        self._is_readable = head is not None and cipher is None
        self._bag = FoundFile(is_early=head is not None and b"topic_count" in head.fields)
        self.problems, self.parts = self._bag.problems, self._bag.parts
        self.pos = after_padding(source, head, self.problems) if head is not None else first
        self._on_record = declarations(self._bag)
        self._has_index = False
        #: Bytes of each chunk, and the end of the records read last.
        self._sizes, self._end = list[int](), -1

    def read(self, source: Source) -> bool:
        """See ``GrowingReader``."""
        if not self._is_readable:
            return False
        end = source.size
        # Recorders state where the index begins when they finish the file.
        head = read_record(source, source.head.find(b"\n") + 1, end).fields
        self._has_index = 0 < int.from_bytes(head.get(b"index_pos", b""), "little") < end
        while self.pos < end:
            try:
                after = self._after(source, self.pos, end)
            except BadRecord as error:
                if error.cut:
                    return end - self.pos < PENDING
                if end - self.pos < ENOUGH:
                    return False
                after = skip_damage(source, self.pos, end, self.problems, False, why=str(error))
            if after is None:
                return False
            self.pos = after
        return True

    def _after(self, source: Source, pos: int, end: int) -> int | None:
        """Read the record at *pos*; return the offset of the next one, None if that is not clear.

        Raises BadRecord for damage, and if the record is not complete.
        """
        record = read_record(source, pos, end)
        bag = self._bag
        if record.op in (records.OP_MESSAGE, records.OP_CONNECTION):
            return self._after_messages(source, pos, end)
        if record.op == records.OP_CHUNK:
            chunk = chunk_of(record, bag)
            if chunk.is_plain:
                # Recorders state its size when they finish it, but its records can be read before.
                bag.count(chunk)
                self._end = -1
                return chunk.data
            if not record.size or record.end > end:
                raise BadRecord("its data is not complete", cut=True)
            self._sizes.append(chunk.size)
            return read_chunk(source, record, end, bag, self._on_record)
        if record.op == records.OP_INDEX and b"count" in record.fields:
            by_count = record.data + record.u32(b"count") * ENTRY
            if by_count != record.end:
                return next((at for at in (by_count, record.end) if begins(source, at, end)), None)
        if record.end > end:
            raise BadRecord("its data is cut", cut=True)
        refuse_nested(source, record)
        self._on_record(record, source)
        return record.end

    def _after_messages(self, source: Source, pos: int, end: int) -> int:
        """Read messages and connections outside of compressed chunks; return the offset of their end."""
        region = Region(source, FILE, pos, end, FOREIGN_OPS, named=self._bag.named, grows=True)
        found, stop = read_region(region, self._on_record, self.problems)
        self.parts += found
        if stop == pos:
            record = read_record(source, pos, end)
            raise BadRecord("its data is cut" if record.end > end else "it does not fit", record.end > end)
        if found:
            if self._end != pos:
                self._sizes.append(0)
            self._sizes[-1] += stop - pos
            self._end = stop
        return stop

    def connections(self) -> Iterable[Connection]:
        """See ``GrowingReader``."""
        return self._bag.connections.values()

    def chunks(self, source: Source, problems: list[Problem]) -> Chunks:
        """See ``GrowingReader``."""
        found = list(self._bag.chunks)
        return Chunks(
            source,
            cache(source, found, problems),
            lambda n: found[n].size,
            lambda n: found[n].pos,
        )

    def facts(self) -> tuple[dict[str, Any], bool, Any]:
        """See ``GrowingReader``."""
        bag = self._bag
        metadata: dict[str, Any] = {"chunks": bag.chunk_count, "compression": sorted(bag.compressions)}
        metadata["indexed"] = self._has_index
        return metadata, bag.is_cheap, list(self._sizes)


class _V1:
    """Reads a bag of version 1.2."""

    def __init__(self, source: Source) -> None:
        self.problems, self.parts = list[Problem](), list[ChunkMessages]()
        _header_is_whole(source, FIRST_RECORD)
        self.pos = after_header(source, self.problems, Index())
        self._declared = Declared()

    def read(self, source: Source) -> bool:
        """See ``GrowingReader``."""
        end = source.size
        while self.pos < end:
            region = Region(source, FILE, self.pos, end, grows=True)
            parts, stop = read_region(region, self._on_record, self.problems)
            self._declared.add_messages(source, parts)
            self.parts += parts
            if stop == end:
                self.pos = end
            elif stop == self.pos:
                try:
                    record = read_record(source, stop, end)
                    error = BadRecord("it does not fit", record.end > end)
                except BadRecord as found:
                    error = found
                if error.cut:
                    return end - stop < PENDING
                if end - stop < ENOUGH:
                    return False
                stop = skip_damage(source, stop, end, self.problems, False, why=str(error))
            self.pos = stop
        return True

    def _on_record(self, record: Record, inside: Source) -> None:
        if record.op == records.OP_DEFINITION:
            self._declared.add_definition(record)

    def connections(self) -> Iterable[Connection]:
        """See ``GrowingReader``."""
        return self._declared.connections()

    def chunks(self, source: Source, problems: list[Problem]) -> Chunks:
        """See ``GrowingReader``."""
        return Chunks(source)

    def facts(self) -> tuple[dict[str, Any], bool, Any]:
        """See ``GrowingReader``."""
        return {}, True, None


class _Text:
    """Reads a bag of version 0, 1.0 or 1.1."""

    def __init__(self, source: Source, version: str) -> None:
        self._how, self._bag = TEXT_VERSIONS[version], FoundText(source)
        try:
            self.pos = self._how.begin(self._bag)
        except NoRecord as error:
            raise UnsupportedError("the file ends inside its header", path=source.name) from error
        self.problems, self.parts = self._bag.problems, list[ChunkMessages]()

    def read(self, source: Source) -> bool:
        """See ``GrowingReader``."""
        bag, end = self._bag, source.size
        bag.source = source
        judged = True
        while self.pos < end:
            try:
                self.pos = self._how.read(bag, self.pos)
            except NoRecord as error:
                if error.cut or end - self.pos < ENOUGH:
                    judged = error.cut and end - self.pos < PENDING
                    break
                self.pos = self._how.skip(bag, self.pos, error)
        self.parts += bag.take_parts()
        return judged

    def connections(self) -> Iterable[Connection]:
        """See ``GrowingReader``."""
        return self._bag.connections.values()

    def chunks(self, source: Source, problems: list[Problem]) -> Chunks:
        """See ``GrowingReader``."""
        return Chunks(source)

    def facts(self) -> tuple[dict[str, Any], bool, Any]:
        """See ``GrowingReader``."""
        return {}, True, None
