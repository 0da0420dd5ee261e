"""Write BDDF files: declarations of series, data blocks in the order given, and the index at the end.

Blocks of a file that is continued stay as they are, new ones follow, and index and checksum are those of all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, count
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, FileChangedError, LogError, Problem, UsageError
from logreel.formats.bddf import records, schema_maker
from logreel.formats.bddf.index_reader import BadIndex, FooterIndex
from logreel.formats.bddf.payload_decoders import SCHEMA, Signals
from logreel.formats.bddf.reader import BAD, MAX_SERIES, OTHER, SERIES_RULES, IndexBuilder
from logreel.formats.bddf.records import (
    CHECKSUM_NONE,
    CHECKSUM_SHA1,
    DESCRIPTOR,
    DIGEST_AT,
    END,
    JSON,
    MAGIC,
    FileDescriptor,
    FileIndex,
    Header,
    SeriesDeclaration,
    StructType,
    read_descriptor,
    read_header,
)
from logreel.formats.bddf.scan_builder import ScanBuilder
from logreel.formats.bddf.schema_maker import (
    BddfSchemaMaker,
    MemberHashes,
    check_descriptor,
    check_keys,
    declare,
    file_index,
    identity,
    is_message,
)
from logreel.formats.bddf.verify import STEP
from logreel.index.message_index import MessageIndex
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.source import Buffer, Chunks, Source
from logreel.kernels import bddf
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.schemas.protobuf.encoder import number, varint
from logreel.schemas.protobuf.wire import BYTES, BadWire
from logreel.write.format_writer import FormatWriter, Payload, Payloads


class UnexpectedBlock(ValueError):
    """The blocks of a file are not those that were found when it was opened."""


@dataclass(frozen=True, slots=True)
class NonDataBlock:
    """A block that holds no data.

    kind    field number of the message in a descriptor block, 0: an empty one; -1: not a descriptor block
    series  the series that the block declares, or None
    """

    header: Header
    kind: int
    series: SeriesDeclaration | None = None


def non_data_blocks(
    source: Source, builder: IndexBuilder, lost: Sequence[Problem] = ()
) -> Iterator[NonDataBlock]:
    """Yield the blocks of a file that hold no data, the end block last; *builder* gets the data blocks.

    lost  damaged intervals to skip. Raises UnexpectedBlock for other bytes that are not a valid block.
    """
    ends = {p.offset: p.offset + p.size for p in lost}
    pos = len(MAGIC)
    while pos < source.size:
        why, pos = builder.walk(pos, source.size)
        if pos in ends:
            pos = ends.pop(pos)
            continue
        if pos == source.size:
            break
        head = read_header(source, pos, source.size) if why == OTHER else None
        if head is None or (head.next > source.size and head.kind != END):
            raise UnexpectedBlock(f"no sound block at {pos}")
        yield parse_non_data_block(source, head)
        if head.kind == END:
            break
        pos = head.next
    if ends:
        raise UnexpectedBlock(f"no damage at {min(ends)}")


def parse_non_data_block(source: Source, head: Header) -> NonDataBlock:
    """Return the block with header *head*; raises UnexpectedBlock if it is an unreadable descriptor."""
    if head.kind != DESCRIPTOR:
        return NonDataBlock(head, -1)
    start = source.read(head.body, 1)
    if start and start[0] >> 3 == records.SERIES_INDEX:
        # The index of a series can be as large as all other blocks, and its content is not needed.
        return NonDataBlock(head, records.SERIES_INDEX)
    try:
        field, content = read_descriptor(source, head.pos, source.size)
        series = SeriesDeclaration.parse(content) if field == records.SERIES else None
    except BadWire as error:
        raise UnexpectedBlock(str(error)) from None
    return NonDataBlock(head, field, series)


#: Data blocks whose entries are encoded in one call.
BATCH = 1 << 16
#: Bytes of entries kept in memory; if there are more, the file is read again once per this many bytes.
KEPT = 16 << 20
_NO_OUTPUT = np.zeros(0, np.uint8)
Pieces = Iterator[bytes | memoryview]
#: Series, offset of its declaration, bytes of its entries, bytes of its payloads, and the entries.
SeriesEntries = tuple[SeriesDeclaration, int, int, int, Iterable[bytes | memoryview]]
#: Passes all bytes of the file before an offset to a function once more: ``Appender.again``.
Again = Callable[[Callable[[bytes], None], int], None]


class IndexFromFile:
    """Index of a readable file that ends after its last data block."""

    def __init__(self, source: Source) -> None:
        self._data = source.data
        self._series: list[tuple[SeriesDeclaration, int]] = []
        builder = IndexBuilder(source.data)
        try:
            for block in non_data_blocks(source, builder):
                if block.series is not None:
                    builder.declare(block.series.index, len(self._series))
                    self._series.append((block.series, block.header.pos))
        except UnexpectedBlock as error:
            raise LogError(f"was changed by another program: {error}", path=source.name) from None
        table = builder.finish()
        self._index = MessageIndex(Chunks(source), table, [SERIES_RULES] * len(self._series))

    def pieces(self, at: int) -> Pieces:
        """Yield the bytes of the index, which begins at offset *at*; the last piece is the file index block."""
        return index_blocks(at, ((*declared, *self._entries(n)) for n, declared in enumerate(self._series)))

    def _entries(self, channel: int) -> tuple[int, int, Pieces]:
        """Return bytes of the entries, bytes of the payloads, and the entries of a channel."""
        start = self._index.starts(channel)
        batches = [start[lo : lo + BATCH] for lo in range(0, len(start), BATCH)]
        sizes = [bddf.write_index_entries(self._data, batch, _NO_OUTPUT) for batch in batches]
        encoded = (
            encode_entries(self._data, batch, n).data for batch, (n, _) in zip(batches, sizes, strict=True)
        )
        return sum(n for n, _ in sizes), sum(p for _, p in sizes), encoded


class _EntryBuilder:
    """Encodes the entries of all data blocks; *follow* gets the bytes of the file in pieces of any size."""

    def __init__(self) -> None:
        self.series: list[tuple[SeriesDeclaration, int]] = []
        #: Bytes of a block that is not complete yet, and their offset in the file.
        self._rest, self._at = b"", 0

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Take entries of a channel, and the size of their payloads in bytes."""
        raise NotImplementedError

    def follow(self, data: Payload) -> None:
        """Take the next bytes of the file."""
        source = Source(b"".join((self._rest, data)), "what was written")
        pos = min(source.size, max(0, len(MAGIC) - self._at))
        builder = IndexBuilder(source.data)
        for n, (series, _) in enumerate(self.series):
            builder.declare(series.index, n)
        while True:
            why, pos = builder.walk(pos, source.size)
            if why == BAD:
                raise LogError(f"no sound block at {self._at + pos}", path=source.name)
            head = read_header(source, pos, source.size) if why == OTHER else None
            if head is None or head.next > source.size:
                break
            declared = parse_non_data_block(source, head).series
            if declared is not None:
                builder.declare(declared.index, len(self.series))
                self.series.append((declared, self._at + pos))
            pos = head.next
        table = builder.finish()
        index = MessageIndex(Chunks(source), table, [SERIES_RULES] * len(self.series))
        for channel in table.live():
            start = index.starts(channel)
            size, payloads = bddf.write_index_entries(source.data, start, _NO_OUTPUT, self._at)
            self.keep(channel, encode_entries(source.data, start, size, self._at).data, payloads)
        self._rest, self._at = source.read(pos, source.size), self._at + pos


class IndexFromStream(_EntryBuilder):
    """Index of a file that cannot be read again: the same bytes as those of IndexFromFile.

    again  passes all bytes once more, if more than KEPT bytes of entries are needed
    """

    def __init__(self, again: Again) -> None:
        super().__init__()
        self._again = again
        self._size: dict[int, int] = {}
        self._payloads: dict[int, int] = {}
        #: Entries by channel; None: there are more than KEPT bytes of them.
        self._kept: dict[int, list[memoryview]] | None = {}

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Count entries, and keep them while they fit into KEPT bytes."""
        self._size[channel] = self._size.get(channel, 0) + len(entries)
        self._payloads[channel] = self._payloads.get(channel, 0) + payloads
        if sum(self._size.values()) > KEPT:
            self._kept = None
        if self._kept is not None:
            self._kept.setdefault(channel, []).append(entries)

    def pieces(self, at: int) -> Pieces:
        """Yield the bytes of the index, see ``IndexFromFile.pieces``."""
        sizes = [self._size.get(n, 0) for n in range(len(self.series))]
        entries = _PieceReader(self._windows(at, sizes) if self._kept is None else self._all())
        return index_blocks(
            at,
            (
                (*declared, size, self._payloads.get(n, 0), entries.take(size))
                for n, (declared, size) in enumerate(zip(self.series, sizes, strict=True))
            ),
        )

    def _all(self) -> Iterator[memoryview]:
        for _, entries in sorted((self._kept or {}).items()):
            yield from entries

    def _windows(self, end: int, sizes: Sequence[int]) -> Iterator[memoryview]:
        first = list(accumulate(sizes, initial=0))
        for lo in range(0, first[-1], KEPT):
            window = _Window(first, lo)
            self._again(window.follow, end)
            yield from window.pieces()


class _Window(_EntryBuilder):
    """KEPT bytes from byte *lo* on of the entries of all series, concatenated series by series.

    first  offset of the entries of each series in this concatenation
    """

    def __init__(self, first: Sequence[int], lo: int) -> None:
        super().__init__()
        self._next, self._lo = list(first), lo
        self._kept: dict[int, list[memoryview]] = {}

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Keep the part of the entries that lies in the window."""
        at = self._next[channel]
        self._next[channel] += len(entries)
        inside = entries[max(0, self._lo - at) : max(0, self._lo + KEPT - at)]
        if inside:
            # A copy: a view would keep all entries alive.
            self._kept.setdefault(channel, []).append(memoryview(bytes(inside)))

    def pieces(self) -> Iterator[memoryview]:
        """Yield the entries kept, in order."""
        for _, entries in sorted(self._kept.items()):
            yield from entries


class _PieceReader:
    """Reads any number of bytes from a sequence of pieces."""

    def __init__(self, buffers: Iterator[memoryview]) -> None:
        self._pieces, self._rest = buffers, memoryview(b"")

    def take(self, size: int) -> Iterator[memoryview]:
        """Yield the next *size* bytes, piece by piece."""
        while size:
            self._rest = self._rest or next(self._pieces, memoryview(b""))
            if not self._rest:
                raise LogError("comes out differently each time that it is written")
            yield self._rest[:size]
            self._rest, size = self._rest[size:], size - min(size, len(self._rest))


def encode_entries(data: Buffer, start: I64, size: int, base: int = 0) -> Buffer:
    """Return the index entries, *size* bytes, of the blocks at *start* in *data*, which has file offset *base*."""
    out = np.empty(size, np.uint8)
    written, _ = bddf.write_index_entries(data, start, out, base)
    if size and written != size:
        text = "blocks changed while they were indexed"
        raise FileChangedError(text, hint="try again when nothing else writes the file")
    return out


def index_blocks(at: int, all_series: Iterable[SeriesEntries]) -> Pieces:
    """Yield the series index blocks of all series, the first at offset *at*, then the file index block."""
    names, offsets, hashes = [], [], []
    for series, declared, size, payloads, entries in all_series:
        names.append(series.identifier)
        offsets.append(at)
        hashes.append(series.hash)
        first, last = number(1, series.index) + number(2, declared), number(4, payloads)
        content = len(first) + size + len(last)
        # The entries are never in memory as a whole: headers are written around them.
        head = varint(records.SERIES_INDEX << 3 | BYTES) + varint(content)
        yield (len(head) + content | DESCRIPTOR << 56).to_bytes(8, "little") + head + first
        yield from entries
        yield last
        at += 8 + len(head) + content
    yield file_index(FileIndex(tuple(names), tuple(offsets), tuple(hashes)))


CHECKSUMS = {"sha1": CHECKSUM_SHA1, "none": CHECKSUM_NONE}
#: Bytes of the checksum, also in files without one.
DIGEST = 20
#: Bytes of a data block before its DataDescriptor.
DATA_HEAD = 12
#: Bytes of data blocks composed at once.
BATCH_BYTES = 4 << 20


class BddfWriter(FormatWriter):
    """Writes version 1.0.0.

    checksum     ``sha1`` or ``none``
    definitions  files with descriptors of message types, or modules with their classes, for messages given by fields
    reserved     accept annotations whose keys have no organization, which the format reserves
    """

    title = "BDDF"
    largest = (1 << 31) - 1
    appends_only = True

    def __init__(
        self,
        out: Appender,
        *,
        checksum: str = "sha1",
        definitions: Iterable[str | os.PathLike[str]] = (),
        reserved: bool = False,
    ) -> None:
        self.schemas: BddfSchemaMaker = BddfSchemaMaker(self.title, definitions)
        super().__init__(out, self.schemas)
        self.reserved = reserved
        if checksum not in CHECKSUMS:
            raise UsageError(f"checksum {checksum!r}; a BDDF file has {' or '.join(CHECKSUMS)}")
        self.file = FileDescriptor((1, 0, 0), {}, CHECKSUMS[checksum], DIGEST)
        self._sha = hashlib.sha1(usedforsecurity=False)
        #: Buffer for composed blocks: reusing one is cheaper than allocating.
        self._buffer = np.empty(BATCH_BYTES, np.uint8)
        #: Builds the index while blocks are written, if the file cannot be read again.
        self._index = None if out.readable else IndexFromStream(out.again)
        self._begun = False
        #: Declarations of series before the first message.
        self._head = bytearray()
        self._known: set[Hashable] = set()
        #: Structs that have data blocks in source logs, which is damage; these blocks are kept.
        self.structs_with_blocks: set[Hashable] = set()
        self._hashes = MemberHashes()
        #: Names of series without a suffix such as ``[1]``, by topic in the source logs.
        self.base_names: dict[str, str] = {}
        #: Number of the next new series.
        self._next = 0
        #: Numbers of the channels with SignalSchema messages.
        self._signal_schemas: list[int] = []
        #: Argument of the kernel: series number and number of additional indexes of each channel, int64[n, 2].
        self._table = GrowingArray(np.int64, 2)
        #: Whether each channel is a struct, whose messages are not written.
        self._is_struct = GrowingArray(np.bool_)

    # ------------------------------------------------------------------------------------------ definitions

    def free_name(self, topic: str, taken: Collection[str]) -> str:
        """Return the name with ``[1]``, ``[2]`` … as readers name series of the same name in their order."""
        base = self.base_names.get(topic, topic)
        return next(name for name in chain([base], (f"{base}[{n}]" for n in count(1))) if name not in taken)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel and declare its series.

        schema    encoding ``protobuf`` with the name of the message; a content type (``text/plain``) as encoding; or
                  encoding ``bddf`` with a type of plain values (``float64``, ``float32[3]``) or ``struct`` as name
        metadata  as read channels have it: ``spec``, ``series_type``, ``annotations``, ``description``,
                  ``additional_indexes``, ``is_metadata``; for a struct ``members``: topic or hash by member name
        """
        series = declare(topic, schema, self._hashes.resolved(metadata))
        if not self.reserved:
            check_keys(series.annotations)
        if identity(series) in self._known:
            raise DefinitionError(f"channel {topic!r}: a series of this spec and type was added before")
        if self._next >= MAX_SERIES:
            raise UsageError(f"more than {MAX_SERIES} series")
        is_struct = isinstance(series.type, StructType) and identity(series) not in self.structs_with_blocks
        numbered = replace(series, index=self._next)
        self._add(numbered, metadata, is_struct)
        self._put(schema_maker.series_descriptor(numbered))

    def _add(self, series: SeriesDeclaration, metadata: Mapping[str, Any], is_struct: bool) -> None:
        """Add the next channel, whose series is declared in the file."""
        self._known.add(identity(series))
        self._hashes.add(series, metadata)
        if is_message(series, SCHEMA):
            self._signal_schemas.append(len(self.schemas.series))
        self.schemas.series.append(series)
        self._next = max(self._next, series.index + 1)
        self._table.append((series.index, len(series.names)))
        self._is_struct.append(is_struct)

    def continue_series(
        self,
        topic: str,
        schema: Schema,
        series: SeriesDeclaration,
        metadata: Mapping[str, Any],
        is_struct: bool,
    ) -> None:
        """Add a channel of the file that is continued; *is_struct*: its messages are joined from other series."""
        self._add(series, metadata, is_struct)
        self.old_channels[topic] = schema

    def is_same_schema(self, old: Schema, new: Schema) -> bool:
        """Return whether the types of two series are the same; definitions count only where a file contains them."""
        name = new.name or new.encoding
        if new.encoding == JSON and old.text:
            return super().is_same_schema(old, replace(new, name=name))
        return (name, new.encoding) == (old.name, old.encoding)

    # --------------------------------------------------------------------------------------------- messages

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message; its additional indexes are zero."""
        if not self.earliest <= time <= self.latest:
            raise UsageError(f"time {time} ns; BDDF is written with 64 bits of nanoseconds: 1677 to 2262")
        super().message(channel, time, data)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append data blocks; messages of structs are skipped, since readers join them from their members."""
        payloads = payloads.in_one()
        if self._signal_schemas:
            self._add_signal_schemas(channel, payloads)
        side_columns = self._padded(len(channel), payloads.side_columns)
        rows: slice | I64 = slice(None)
        if self._is_struct.rows[channel].any():
            rows = np.flatnonzero(~self._is_struct.rows[channel])
        channel = np.ascontiguousarray(channel[rows], np.int32)
        columns = (time, payloads.start, payloads.size, side_columns)
        time, start, size, side_columns = (np.ascontiguousarray(column[rows], np.int64) for column in columns)
        self._begin()
        head = np.empty(len(channel), np.int64)
        bddf.descriptor_sizes(channel, time, size, self._table.rows, side_columns, head)
        place = np.concatenate([np.zeros(1, np.int64), np.cumsum(head + size + DATA_HEAD)])
        for at in batches(place):
            need = int(place[at.stop] - place[at.start])
            out = self._buffer[:need] if need <= BATCH_BYTES else np.empty(need, np.uint8)
            parts = (channel[at], time[at], start[at], size[at])
            where = (head[at], place[at] - place[at.start])
            bddf.write_blocks(payloads.data, *parts, self._table.rows, side_columns[at], *where, out)
            self.write(out.data)

    def _add_signal_schemas(self, channel: NDArray[np.int32], payloads: Payloads) -> None:
        """Remember the signal schemas among the messages."""
        for row in np.flatnonzero(np.isin(channel, self._signal_schemas)).tolist():
            at = int(payloads.start[row])
            signals = Signals.parse(bytes(payloads.data[at : at + int(payloads.size[row])]))
            if signals is not None and signals not in self.schemas.signals:
                self.schemas.signals.append(signals)

    def _padded(self, n: int, side_columns: I64 | None) -> I64:
        """Return additional indexes as int64[n, k], k being the greatest number that a channel has."""
        width = int(self._table.rows[:, 1].max(initial=0))
        columns = np.zeros((n, width), np.int64)
        if side_columns is not None:
            k = side_columns.shape[1]
            if k > width:
                raise UsageError(f"{k} additional indexes; no channel has more than {width}")
            columns[:, :k] = side_columns
        return columns

    def metadata(self, name: str, value: Any) -> None:
        """Add an annotation of the file; its value becomes text. Only before the first message."""
        self.annotate(name, value)

    def annotate(self, name: str, value: Any, organization: str = "") -> None:
        """Add an annotation as ``metadata`` does.

        organization  added to a key without one; empty: none is added
        """
        if self._begun:
            raise UsageError(
                "annotations stand at the beginning of a BDDF file: add them before the first message of a new file"
            )
        if organization and ":" not in name:
            name = f"{organization}:{name}"
        if not self.reserved:
            check_keys([name])
        file = replace(self.file, annotations={**self.file.annotations, name: str(value)})
        check_descriptor(lambda: schema_maker.file_descriptor(file), f"annotation {name!r:.60}")
        self.file = file

    # --------------------------------------------------------------------------------------------- the file

    def continue_file(self, file: FileDescriptor, sha: Any) -> None:
        """Go on after the blocks of a file that are in *out* already; *sha*: SHA-1 of them, if the file has one."""
        self.file, self._begun, self._sha = file, True, sha

    def begin_copy(self, file: FileDescriptor) -> None:
        """Begin a file; the caller passes its blocks, from the first descriptor on, to ``write``."""
        self.file, self._begun = file, True
        self.write(MAGIC)

    def commit(self) -> None:
        """Write the declarations even if no message was given."""
        self._begin()

    def finish(self) -> None:
        """Write the index, the end block and the checksum."""
        # The bytes of the index itself must not be passed to the builder of the index.
        index, self._index = self._index or self._index_from_file(), None
        for data in index.pieces(self.out.tell()):
            file_index = self.out.tell()
            self.write(data)
        self.write(schema_maker.end_block_head(file_index))
        digest = self._sha.digest() if self.file.checksum == CHECKSUM_SHA1 else bytes(DIGEST)
        self.out.put(schema_maker.end_block_tail(digest))

    def _index_from_file(self) -> IndexFromFile:
        self.out.flush()
        try:
            return IndexFromFile(Source.open(self.out.unfinished))
        except OSError as error:
            raise LogError(f"cannot be read to make its index: {error}", path=self.out.name) from None

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.write(MAGIC + schema_maker.file_descriptor(self.file) + bytes(self._head))

    def _put(self, block: bytes) -> None:
        if self._begun:
            self.write(block)
        else:
            self._head += block

    def write(self, data: Payload) -> None:
        """Append bytes to the file."""
        if self.file.checksum == CHECKSUM_SHA1:
            self._sha.update(data)
        if self._index is not None:
            self._index.follow(data)
        self.out.put(data)


def batches(place: I64) -> Iterator[slice]:
    """Yield slices of rows with at most BATCH_BYTES bytes or a single block; *place*: starts of blocks and the end."""
    lo = 0
    while lo < len(place) - 1:
        hi = max(lo + 1, int(place.searchsorted(place[lo] + BATCH_BYTES, side="right")) - 1)
        yield slice(lo, hi)
        lo = hi


#: Problems that do not concern the blocks of the file.
_HARMLESS = ("definition", "payload", "unknown")
#: Kinds of the blocks after the last data block: the index of each series, and of the file (0: of one without series).
_INDEX_KINDS = (0, records.SERIES_INDEX, records.FILE_INDEX)


def append(
    out: Appender,
    log: Log,
    *,
    checksum: str | None = None,
    definitions: Iterable[str | os.PathLike[str]] = (),
    reserved: bool = False,
) -> BddfWriter:
    """Return the writer that continues *log*.

    checksum  must be that of the file; None: this
    definitions, reserved  as for a new file

    The checksum of the file covers all of its bytes, so the old ones are read once. Raises LogError if it is wrong, or
    if the file has no complete sequence of blocks and index: then only its recovery finds what it contains.
    """
    state: ScanBuilder = log.format_state
    file = state.found.file
    # Loads all series: in a large file, problems of the index may not have been noticed yet.
    _ = log.index.counts
    wrong = next((p for p in state.found.problems if p.code not in _HARMLESS), None)
    if wrong is not None:
        _refuse(log, wrong.text)
    if file.checksum not in (CHECKSUM_NONE, CHECKSUM_SHA1) or file.checksum_size != 20:
        _refuse(log, f"its checksum is of kind {file.checksum} with {file.checksum_size} bytes")
    own = next(name for name, number in CHECKSUMS.items() if number == file.checksum)
    if checksum not in (None, own):
        raise UsageError(f"checksum {checksum!r}; the file has {own!r}", path=log.name)
    try:
        end = _data_end(state)
    except (BadIndex, UnexpectedBlock) as error:
        _refuse(log, f"its blocks cannot be continued: {error}")
    sha = hashlib.sha1(usedforsecurity=False)
    if own == "sha1":
        sha = _verified_sha(log, state.source, end)
    out.keep_old(end)
    writer = BddfWriter(out, checksum=own, definitions=definitions, reserved=reserved)
    writer.continue_file(file, sha)
    for ch, series in zip(log.channels.values(), state.found.series, strict=True):
        is_struct = log.index.rules[ch.number].synthetic is not None
        writer.continue_series(ch.topic, ch.schema, series, ch.metadata, is_struct)
    writer.schemas.signals += state.signals
    return writer


def _refuse(log: Log, why: str) -> NoReturn:
    raise LogError(
        why,
        path=log.name,
        hint="make a complete file of it by logreel.recover, and append to that",
    )


def _data_end(state: ScanBuilder) -> int:
    """Return the offset at which the index begins; nothing but the rest of it and the end block follows."""
    source = state.source
    start = pos = _index_start(state)
    while pos < source.size:
        head = read_header(source, pos, source.size)
        if head is None or head.next > source.size:
            break
        if head.kind == END and head.next == source.size:
            return start
        if not _is_index(parse_non_data_block(source, head)):
            raise UnexpectedBlock(f"the block at {pos} follows the index")
        pos = head.next
    raise UnexpectedBlock("the index is cut")


def _index_start(state: ScanBuilder) -> int:
    """Return the offset of the first block of the index, or of the end block."""
    if state.found.indexed:
        index = FooterIndex(state.source)
        return min(index.file.offsets, default=index.ending.index)
    builder = IndexBuilder(state.source.data)
    for block in non_data_blocks(state.source, builder):
        if block.series is not None:
            builder.skip(block.series.index)
        if _is_index(block):
            return block.header.pos
    raise UnexpectedBlock("there is no end block")


def _is_index(block: NonDataBlock) -> bool:
    return block.header.kind == END or block.kind in _INDEX_KINDS


def _verified_sha(log: Log, source: Source, end: int) -> Any:
    """Return the SHA-1 of the bytes before *end*, to be continued; raise LogError if the file's own one is wrong."""
    sha = _continued(hashlib.sha1(usedforsecurity=False), source, 0, end)
    at = source.size - DIGEST_AT
    digest, due = _continued(sha.copy(), source, end, at).digest(), source.read(at, 20)
    if digest != due:
        _refuse(log, f"its checksum is wrong: {digest.hex()}, and the file says {due.hex()}")
    return sha


def _continued(sha: Any, source: Source, start: int, end: int) -> Any:
    for lo in range(start, end, STEP):
        sha.update(source.view[lo : min(lo + STEP, end)])
    return sha
