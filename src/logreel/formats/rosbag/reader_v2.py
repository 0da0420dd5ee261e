"""Reading of bags of version 2.0: by the index if it is consistent, else record by record.

The development versions of April 2010 (1.3, and 2.0 with topic_count) are read too: their messages name their topic,
and they have definition records instead of connections. Their index is not used.
"""

from __future__ import annotations

from collections.abc import Iterable

from logreel.dataclass import replace
from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import Chunk, cipher_of, decrypted_record, problem_of, unpack
from logreel.formats.rosbag.definitions import Connection
from logreel.formats.rosbag.reader import (
    ChunkMessages,
    FoundFile,
    Reader,
    Region,
    add_connection,
    add_definition,
    after_padding,
    chunk_of,
    read_region,
    refuse_nested,
    skip_damage,
    wrong_header,
)
from logreel.formats.rosbag.records import (
    BadRecord,
    Record,
    read_record,
)
from logreel.formats.rosbag.summary import ENTRY, read_index
from logreel.io.source import FILE, Source
from logreel.log.scan import UndecidedError


def read(source: Source) -> FoundFile:
    """Return the content of a bag of version 2.0; raise UnsupportedError if it cannot be decrypted."""
    first, end = source.head.find(b"\n") + 1, source.size
    try:
        head = read_record(source, first, end)
    except BadRecord as error:
        text = f"the bag header cannot be read: {error}"
        bag = FoundFile(problems=[Problem("header", min(first, end), 0, False, text)])
        ReaderV2(source, bag, skip_damage(source, first, end, bag.problems, error.cut)).finish()
        return _in_file_offsets(bag)
    bag = FoundFile(
        problems=wrong_header(head), is_early=b"topic_count" in head.fields, cipher=cipher_of(source, head)
    )
    try:
        read_index(source, head, bag)
    except BadRecord as error:
        problem = Problem("index", head.pos, 0, False, f"the index is not used: {error}")
        bag = FoundFile(problems=[*wrong_header(head), problem], is_early=bag.is_early, cipher=bag.cipher)
        ReaderV2(source, bag, after_padding(source, head, bag.problems)).finish()
    return _in_file_offsets(bag)


def _in_file_offsets(bag: FoundFile) -> FoundFile:
    """Return *bag*; if no chunk is compressed or encrypted, its messages get offsets in the file."""
    if all(chunk.is_plain for chunk in bag.chunks):
        for part in bag.parts:
            _move_to_file(part, bag)
    return bag


def _move_to_file(part: ChunkMessages, bag: FoundFile) -> None:
    """Give the messages of a chunk that is not compressed offsets in the file."""
    at = bag.chunks[part.chunk].data
    part.chunk, part.base, part.end = FILE, part.base + at, part.end + at


# --------------------------------------------------------------------------------------------------- by reading

FOREIGN_OPS = (1 << 64) - 1 - (1 << records.OP_MESSAGE) - (1 << records.OP_CONNECTION)


class ReaderV2(Reader):
    """Reads all records of a bag of version 2.0 from *pos* on, and adds what they say to *bag*."""

    def __init__(self, source: Source, bag: FoundFile, pos: int) -> None:
        super().__init__(source)
        self.bag, self.pos, self.problems = bag, pos, bag.problems
        #: Offset at which the last uncompressed records ended.
        self._region_end = -1
        #: Offset that ``feed`` came to, when the rest is read.
        self._fed = -1
        #: Headers of chunks that had no size when they were read: the recorder had not finished them yet.
        self._unfinished: list[int] = []

    def finish(self) -> None:
        """See ``Reader``."""
        self._fed = self.pos
        for pos in self._unfinished:
            if not read_record(self._source, pos, self._source.size).size:
                self.problems.append(_unfinished_chunk(pos))
        super().finish()

    def _after(self, pos: int) -> int:
        source, end, bag = self._source, self._source.size, self.bag
        if pos == self._region_end == self._fed and (after := self._after_messages(pos)) > pos:
            # Damage that stopped ``feed`` among uncompressed records lies between them.
            return after
        record = read_record(source, pos, end)
        if record.op == records.OP_CHUNK:
            return self._after_chunk(record)
        if record.op == records.OP_INDEX and b"count" in record.fields:
            return self._after_index(record)
        if record.op in (records.OP_MESSAGE, records.OP_CONNECTION):
            return self._after_messages(pos)
        if record.end > end:
            raise BadRecord("its data is cut", cut=True)
        refuse_nested(source, record)
        _add_declaration(record, source, bag)
        return record.end

    def _skip(self, pos: int, error: BadRecord) -> int:
        return _encrypted_connection(self._source, pos, self.bag) or super()._skip(pos, error)

    def _after_chunk(self, record: Record) -> int:
        chunk, end = chunk_of(record, self.bag), self._source.size
        if not self._is_final and chunk.is_plain:
            # Recorders state its size when they finish it, but its records can be read before.
            if chunk.stored == 0:
                self._unfinished.append(chunk.pos)
            self.bag.count(chunk)
            self._region_end = -1
            return chunk.data
        if not self._is_final and (not record.size or record.end > end):
            raise BadRecord("its data is not complete", cut=True)
        return _read_chunk(self._source, record, end, self.bag)

    def _after_index(self, record: Record) -> int:
        source, end = self._source, self._source.size
        if self._is_final:
            return after_index(source, record, end)
        by_count = _end_by_count(record)
        if by_count == record.end:
            if record.end > end:
                raise BadRecord("its data is cut", cut=True)
            return record.end
        for after in (by_count, record.end):
            if _begins(source, after, end):
                return after
        raise UndecidedError

    def _after_messages(self, pos: int) -> int:
        """Read uncompressed records, in a chunk or not, as one chunk; return the offset of their end."""
        source, end, bag = self._source, self._source.size, self.bag
        # Those that follow the ones that were read before belong to the same chunk.
        begin = bag.chunks.pop().data if bag.chunks and pos == self._region_end else pos
        region = Region(
            source, len(bag.chunks), pos, end, FOREIGN_OPS, named=bag.named, grows=not self._is_final
        )
        parts, stop = read_region(
            region, lambda record, inside: _add_declaration(record, inside, bag), bag.problems
        )
        if begin < pos or stop > pos:
            bag.chunks.append(Chunk(begin, begin, stop - begin, "none", stop - begin))
        if stop == pos and not self._is_final:
            record = read_record(source, pos, end)
            raise BadRecord("its data is cut" if record.end > end else "it does not fit", record.end > end)
        for part in parts:
            part.base, part.end = part.base - begin, part.end - begin
        bag.parts += parts
        self._region_end = stop
        return stop

    def take_parts(self) -> list[ChunkMessages]:
        """See ``Reader``."""
        parts, self.bag.parts = self.bag.parts, []
        for part in parts:
            if self.bag.chunks[part.chunk].is_plain:
                _move_to_file(part, self.bag)
        return parts

    def connections(self) -> Iterable[Connection]:
        """See ``Reader``."""
        return self.bag.connections.values()


def _add_declaration(record: Record, inside: Source, bag: FoundFile) -> None:
    """Add the connection or definition of a record to *bag*."""
    if record.op == records.OP_CONNECTION:
        add_connection(inside, record, bag, salvage=True)
    elif record.op == records.OP_DEFINITION and bag.is_early:
        add_definition(record, bag)


def _unfinished_chunk(pos: int) -> Problem:
    return Problem("unfinished", pos, 0, False, "a chunk that the recorder did not finish")


def _encrypted_connection(source: Source, pos: int, bag: FoundFile) -> int:
    """Add the encrypted connection at *pos* to *bag*; return the offset of the next record, 0 if there is none."""
    if bag.cipher is None:
        return 0
    try:
        inside, after = decrypted_record(source, pos, bag.cipher)
        add_connection(inside, read_record(inside, 0, inside.size), bag)
    except BadRecord:
        return 0
    return after


def after_index(source: Source, record: Record, end: int) -> int:
    """Return the offset of the record after an index record; raise BadRecord if the index record is cut."""
    by_count = _end_by_count(record)
    for after in (by_count, record.end):
        if after == end or _begins(source, after, end):
            return after
    if by_count > end:
        raise BadRecord("its data is cut", cut=True)
    return by_count


def _end_by_count(record: Record) -> int:
    # C Turtle stated a data size that is too large; the count is right, unless it is damaged.
    return record.data + record.u32(b"count") * ENTRY


def _begins(source: Source, pos: int, end: int) -> bool:
    """Return whether the header of a record is at *pos*."""
    try:
        read_record(source, pos, end)
    except BadRecord:
        return False
    return True


def _read_chunk(source: Source, record: Record, end: int, bag: FoundFile) -> int:
    """Read a compressed or encrypted chunk; return the offset of the next record."""
    chunk = chunk_of(record, bag)
    if chunk.stored == 0:
        bag.problems.append(_unfinished_chunk(chunk.pos))
    bag.count(chunk)
    if chunk.is_plain:
        # Its records are read like records outside of chunks; the stated size may be wrong.
        return chunk.data
    stored = min(chunk.stored or end, end - chunk.data)
    existing = replace(chunk, stored=stored)
    unpacked = unpack(source, existing)
    problem = problem_of(existing, unpacked)
    if problem is not None:
        bag.problems.append(problem)
    inside = Source(unpacked.data, source.name)
    region = Region(inside, len(bag.chunks), 0, inside.size, where=chunk.pos, named=bag.named)
    bag.chunks.append(existing)
    parts, _ = read_region(region, lambda record, inside: _add_declaration(record, inside, bag), bag.problems)
    bag.parts += parts
    return chunk.data + unpacked.used
