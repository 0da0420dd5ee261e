"""BDDF files being written: series as they are declared, data blocks as they come, and the index at the end."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, UsageError
from logreel.formats.bddf import copier, encode_blocks
from logreel.formats.bddf.descriptors import (
    CHECKSUM_NONE,
    CHECKSUM_SHA1,
    FileDescriptor,
    MessageType,
    Series,
    StructType,
)
from logreel.formats.bddf.from_layout import schema_from_layout
from logreel.formats.bddf.index_builder import MAX_SERIES
from logreel.formats.bddf.index_writer import IndexFromFile, IndexFromStream
from logreel.formats.bddf.input_layout import InputLayout
from logreel.formats.bddf.payload_decoders import distinct_names
from logreel.formats.bddf.records import MAGIC
from logreel.formats.bddf.scan_builder import ScanBuilder, topic_of
from logreel.formats.bddf.series_declaration import (
    MemberHashes,
    check_descriptor,
    check_keys,
    declare,
    identity,
)
from logreel.formats.bddf.signals import SCHEMA, TICK, Signals
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.layout.layout import Layout
from logreel.log.log import Log
from logreel.log.schema import Schema
from logreel.write.format_writer import Excerpt, FormatWriter, Payload, Wrapping
from logreel.write.payloads import Payloads

if TYPE_CHECKING:
    from logreel.schemas.protobuf.types import Types

CHECKSUMS = {"sha1": CHECKSUM_SHA1, "none": CHECKSUM_NONE}
#: Bytes of the checksum, also where there is none.
DIGEST = 20
#: Bytes of a data block before its descriptor.
DATA_HEAD = 12
#: Blocks are made this many bytes at a time.
STRETCH = 4 << 20


class BddfWriter(FormatWriter):
    """Writes version 1.0.

    checksum     ``sha1``, or ``none``
    definitions  files with descriptors of message types, or modules with their classes, for messages given by fields
    reserved     take annotations by keys that the format reserves, without an organization, as files may have them
    """

    title = "BDDF"
    largest = (1 << 31) - 1
    forward = True

    def __init__(
        self,
        out: Appender,
        *,
        checksum: str = "sha1",
        definitions: Iterable[str | os.PathLike[str]] = (),
        reserved: bool = False,
    ) -> None:
        super().__init__(out)
        self._reserved = reserved
        #: The format of the log whose metadata is taken over, while it is.
        self._organization = ""
        if checksum not in CHECKSUMS:
            raise UsageError(f"checksum {checksum!r}; a BDDF file has {' or '.join(CHECKSUMS)}")
        self._file = FileDescriptor((1, 0, 0), {}, CHECKSUMS[checksum], DIGEST)
        self._sha = hashlib.sha1(usedforsecurity=False)
        #: Where blocks are made; memory that is there already costs less than fresh one.
        self._room = np.empty(STRETCH, np.uint8)
        #: What makes the index where the file cannot be read again.
        self._follower = None if out.readable else IndexFromStream(out.again)
        self._begun = False
        self._head = bytearray()
        self._series: list[Series] = []
        self._input_layouts: dict[int, InputLayout] = {}
        self._definitions = tuple(definitions)
        self._types: Types | None = None
        self._known: set[Hashable] = set()
        #: Structs with blocks of their state, which are damage, but there.
        self._solid: set[Hashable] = set()
        self._hashes = MemberHashes()
        #: What the numbered ones of several series of one name are called without their number.
        self._names: dict[str, str] = {}
        #: Schemas of signals, by which reading tells the values of ticks.
        self._signals: list[Signals] = []
        self._shapes: list[int] = []
        #: Where payloads and blocks begin, of channels with additional indexes.
        self._places: dict[tuple[int, int], tuple[Log, I64, I64]] = {}
        #: Number of each series and of its additional indexes, as the kernel wants it; and whether it is a struct.
        self._table = np.zeros((0, 2), np.int64)
        self._joined = np.zeros(0, np.bool_)

    # ------------------------------------------------------------------------------------------ definitions

    def free_name(self, topic: str, taken: Collection[str]) -> str:
        """Series of one name and different types are told apart by their order: ``[1]``, ``[2]`` …"""
        base = self._names.get(topic, topic)
        return next(name for name in chain([base], (f"{base}[{n}]" for n in count(1))) if name not in taken)

    def identity(self, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
        """Series with the same name, type, additional indexes and annotations are one."""
        try:
            return identity(declare(topic, schema, metadata))
        except DefinitionError:
            # What cannot be declared is refused when it is added, as a channel of its state.
            return super().identity(topic, schema, metadata)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel.

        schema    of encoding ``protobuf``, with the name of the message; of a content type (``text/plain``); or
                  ``bddf``, with the name of a type of plain values (``float64``, ``float32[3]``) or ``struct``
        metadata  as channels have it: ``spec``, ``series_type``, ``annotations``, ``description``,
                  ``additional_indexes``, ``is_metadata``; of a struct ``members``: a topic, or a hash, by name
        """
        series = declare(topic, schema, self._hashes.resolved(metadata))
        if not self._reserved:
            check_keys(series.annotations)
        if identity(series) in self._known:
            raise DefinitionError(f"channel {topic!r}: a series of this spec and type was added before")
        if number >= MAX_SERIES:
            raise UsageError(f"more than {MAX_SERIES} series")
        self._known.add(identity(series))
        self._hashes.add(series, metadata)
        self._series.append(replace(series, index=number))
        if _is_message(series, SCHEMA):
            self._shapes.append(number)
        self._table = np.append(self._table, [[number, len(series.names)]], axis=0)
        joined = isinstance(series.type, StructType) and identity(series) not in self._solid
        self._joined = np.append(self._joined, joined)
        self._put(encode_blocks.series_descriptor(self._series[-1]))

    def schema_for(self, topic: str, layout: Layout) -> Schema:
        """Plain values for records of nothing but a number ``value``, for others JSON with a JSON Schema."""
        return schema_from_layout(layout)

    def takes(self, schema: Schema) -> bool:
        """Messages of a content type, and plain values."""
        return schema.encoding in ("bddf", "protobuf") or "/" in schema.encoding

    def layout(self, number: int) -> Layout:
        """Additional indexes, then ``sample`` and ``value``, ``text``, ``data``, or the fields of a described type."""
        return self._by_fields(number).layout

    def wrapping(self, number: int) -> Wrapping | None:
        """Additional indexes lie beside the payload, and other payloads than text and bytes are no walk of a Layout."""
        return self._by_fields(number).wrapping

    def derived(self, number: int) -> Collection[str]:
        """The values of a tick of signals, by the schemas that were written so far or that the first log has."""
        if not self._signals or not _is_message(self._series[number], TICK):
            return ()
        return distinct_names([one.name for one in self._signals], self._by_fields(number).fields)

    def _by_fields(self, number: int) -> InputLayout:
        if number not in self._input_layouts:
            self._input_layouts[number] = InputLayout(self._series[number], self._find)
        return self._input_layouts[number]

    def _find(self, name: str) -> Any:
        from logreel.schemas.protobuf.types import Types

        if self._types is None:
            self._types = Types(map(Path, self._definitions))
        return self._types.find(name)

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Take over metadata as annotations; those of another format get its name as their organization."""
        if returns:
            self._reserved = True
        else:
            self._organization = log.format
        told = super().import_foreign(log, returns)
        self._organization = ""
        return told

    def copy_metadata(self, log: Log) -> list[str]:
        """Take over the annotations of the file, and how its series are called."""
        self._reserved = True
        state: ScanBuilder = log.format_state
        told = []
        notes = dict(self._file.annotations)
        for name, value in state.found.file.annotations.items():
            if notes.setdefault(name, value) != value:
                told.append(f"annotation {name!r} has another value in {log.name}: the first one is kept")
        self._file = replace(self._file, annotations=notes)
        for ch, series in zip(log.channels.values(), state.found.series, strict=True):
            self._names.setdefault(ch.topic, topic_of(series))
            if isinstance(series.type, StructType) and log.index.rules[ch.number].synthetic is None:
                self._solid.add(identity(series))
        self._signals += [one for one in state.signals if one not in self._signals]
        return told

    def side_columns(self, log: Log, channel: int, offset: I64) -> I64 | None:
        """The additional indexes of blocks."""
        state: ScanBuilder = log.format_state
        names = state.found.series[channel].names
        if not names or log.index.rules[channel].synthetic is not None:
            return None
        if (id(log), channel) not in self._places:
            self._places[id(log), channel] = log, log.index.offsets(channel), log.index.starts(channel)
        _, payload, start = self._places[id(log), channel]
        out = np.zeros((len(offset), len(names)), np.int64)
        if len(offset):
            bddf.gather_numbers(log.index.chunks[FILE], start[payload.searchsorted(offset)], out)
        return out

    def copy(self, excerpt: Excerpt) -> bool:
        """Copy blocks as they lie in the file; not where channels are left out, since that renumbers the others."""
        plan = copier.plan(excerpt)
        if plan is None:
            return False
        self._file, self._begun = plan.file, True
        self._write(MAGIC)
        copier.copy(excerpt, plan, lambda piece: self._write(piece.data))
        return True

    # --------------------------------------------------------------------------------------------- messages

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message; its additional indexes are zero."""
        if not self.earliest <= time <= self.latest:
            raise UsageError(f"time {time} ns; BDDF is written with 64 bits of nanoseconds: 1677 to 2262")
        super().message(channel, time, data)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append data blocks. What was read of a struct is left out: its members have it."""
        payloads = payloads.in_one()
        if self._shapes:
            self._learn(channel, payloads)
        side_columns = self._padded(len(channel), payloads.side_columns)
        rows: slice | I64 = slice(None)
        if self._joined[channel].any():
            rows = np.flatnonzero(~self._joined[channel])
        channel = np.ascontiguousarray(channel[rows], np.int32)
        columns = (time, payloads.start, payloads.size, side_columns)
        time, start, size, side_columns = (np.ascontiguousarray(column[rows], np.int64) for column in columns)
        self._begin()
        head = np.empty(len(channel), np.int64)
        bddf.descriptor_sizes(channel, time, size, self._table, side_columns, head)
        place = np.concatenate([np.zeros(1, np.int64), np.cumsum(head + size + DATA_HEAD)])
        for at in stretches(place):
            need = int(place[at.stop] - place[at.start])
            out = self._room[:need] if need <= STRETCH else np.empty(need, np.uint8)
            parts = (channel[at], time[at], start[at], size[at])
            where = (head[at], place[at] - place[at.start])
            bddf.write_blocks(payloads.data, *parts, self._table, side_columns[at], *where, out)
            self._write(out.data)

    def _learn(self, channel: NDArray[np.int32], payloads: Payloads) -> None:
        """Take in the schemas of signals among messages."""
        for row in np.flatnonzero(np.isin(channel, self._shapes)).tolist():
            at = int(payloads.start[row])
            found = Signals.parse(bytes(payloads.data[at : at + int(payloads.size[row])]))
            if found is not None and found not in self._signals:
                self._signals.append(found)

    def _padded(self, n: int, side_columns: I64 | None) -> I64:
        """int64[n, k] with room for the additional indexes of every channel."""
        width = int(self._table[:, 1].max(initial=0))
        found = np.zeros((n, width), np.int64)
        if side_columns is not None:
            k = side_columns.shape[1]
            if k > width:
                raise UsageError(f"{k} additional indexes; no channel has more than {width}")
            found[:, :k] = side_columns
        return found

    def metadata(self, name: str, value: Any) -> None:
        """Add an annotation of the whole file, which is text; before the first message."""
        if self._begun:
            raise UsageError(
                "annotations stand at the beginning of a BDDF file: add them before the first message"
            )
        if self._organization and ":" not in name:
            name = f"{self._organization}:{name}"
        if not self._reserved:
            check_keys([name])
        file = replace(self._file, annotations={**self._file.annotations, name: str(value)})
        check_descriptor(lambda: encode_blocks.file_descriptor(file), f"annotation {name!r:.60}")
        self._file = file

    # --------------------------------------------------------------------------------------------- the file

    def settle(self) -> None:
        """Write the declarations even if no message has come."""
        self._begin()

    def finish(self) -> None:
        """Write the index, which is made of the file itself, and the checksum."""
        maker, self._follower = self._follower or self._indexer(), None
        for piece in maker.pieces(self.out.tell()):
            index = self.out.tell()
            self._write(piece)
        self._write(encode_blocks.end_block_head(index))
        digest = self._sha.digest() if self._file.checksum == CHECKSUM_SHA1 else bytes(DIGEST)
        self.out.put(encode_blocks.end_block_tail(digest))

    def _indexer(self) -> IndexFromFile:
        self.out.flush()
        try:
            return IndexFromFile(Source.open(self.out.unfinished))
        except OSError as error:
            raise LogError(f"cannot be read to make its index: {error}", path=self.out.name) from None

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._write(MAGIC + encode_blocks.file_descriptor(self._file) + bytes(self._head))

    def _put(self, block: bytes) -> None:
        if self._begun:
            self._write(block)
        else:
            self._head += block

    def _write(self, piece: Payload) -> None:
        if self._file.checksum == CHECKSUM_SHA1:
            self._sha.update(piece)
        if self._follower is not None:
            self._follower.follow(piece)
        self.out.put(piece)


def _is_message(series: Series, name: str) -> bool:
    return isinstance(series.type, MessageType) and series.type.name == name


def stretches(place: I64) -> Iterator[slice]:
    """Rows of which each slice makes STRETCH bytes or a single block; *place* is where each begins, and the end."""
    lo = 0
    while lo < len(place) - 1:
        hi = max(lo + 1, int(place.searchsorted(place[lo] + STRETCH, side="right")) - 1)
        yield slice(lo, hi)
        lo = hi
