"""BDDF files being written: series as they are declared, data blocks as they come, and the index at the end."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, UsageError
from logreel.formats.bddf import encode
from logreel.formats.bddf.declare import Hashes, check, check_keys, declare, identity
from logreel.formats.bddf.follower import Follower
from logreel.formats.bddf.index_builder import MAX_SERIES
from logreel.formats.bddf.indexer import Indexer
from logreel.formats.bddf.messages import (
    CHECKSUM_NONE,
    CHECKSUM_SHA1,
    FileDescriptor,
    StructType,
)
from logreel.formats.bddf.records import MAGIC
from logreel.formats.bddf.schema_maker import BddfSchemaMaker, is_message
from logreel.formats.bddf.signals import SCHEMA, Signals
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.log.schema import Schema
from logreel.write.format_writer import FormatWriter
from logreel.write.payloads import Payload, Payloads

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
        #: Organization added to the keys of annotations that have none; empty: none is added.
        self.organization = ""
        if checksum not in CHECKSUMS:
            raise UsageError(f"checksum {checksum!r}; a BDDF file has {' or '.join(CHECKSUMS)}")
        self.file = FileDescriptor((1, 0, 0), {}, CHECKSUMS[checksum], DIGEST)
        self._sha = hashlib.sha1(usedforsecurity=False)
        #: Where blocks are made; memory that is there already costs less than fresh one.
        self._room = np.empty(STRETCH, np.uint8)
        #: What makes the index where the file cannot be read again.
        self._follower = None if out.readable else Follower(out.again)
        self._begun = False
        self._head = bytearray()
        self._known: set[Hashable] = set()
        #: Structs of source logs that have data blocks of their own: damage, but it is kept.
        self.structs_with_blocks: set[Hashable] = set()
        self._hashes = Hashes()
        #: Names of series without the number that tells several of one name apart, by topic in the source logs.
        self.base_names: dict[str, str] = {}
        #: Numbers of the series that hold schemas of signals.
        self._signal_schemas: list[int] = []
        #: Number of each series and of its additional indexes, as the kernel wants it; and whether it is a struct.
        self._table = np.zeros((0, 2), np.int64)
        self._joined = np.zeros(0, np.bool_)

    # ------------------------------------------------------------------------------------------ definitions

    def free_name(self, topic: str, taken: Collection[str]) -> str:
        """Series of one name and different types are told apart by their order: ``[1]``, ``[2]`` …"""
        base = self.base_names.get(topic, topic)
        return next(name for name in chain([base], (f"{base}[{n}]" for n in count(1))) if name not in taken)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel.

        schema    of encoding ``protobuf``, with the name of the message; of a content type (``text/plain``); or
                  ``bddf``, with the name of a type of plain values (``float64``, ``float32[3]``) or ``struct``
        metadata  as channels have it: ``spec``, ``series_type``, ``annotations``, ``description``,
                  ``additional_indexes``, ``is_metadata``; of a struct ``members``: a topic, or a hash, by name
        """
        series = declare(topic, schema, self._hashes.resolved(metadata))
        if not self.reserved:
            check_keys(series.annotations)
        if identity(series) in self._known:
            raise DefinitionError(f"channel {topic!r}: a series of this spec and type was added before")
        if number >= MAX_SERIES:
            raise UsageError(f"more than {MAX_SERIES} series")
        self._known.add(identity(series))
        self._hashes.add(series, metadata)
        numbered = replace(series, index=number)
        self.schemas.series.append(numbered)
        if is_message(series, SCHEMA):
            self._signal_schemas.append(number)
        self._table = np.append(self._table, [[number, len(series.names)]], axis=0)
        joined = isinstance(series.type, StructType) and identity(series) not in self.structs_with_blocks
        self._joined = np.append(self._joined, joined)
        self._put(encode.series_descriptor(numbered))

    # --------------------------------------------------------------------------------------------- messages

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message; its additional indexes are zero."""
        if not self.earliest <= time <= self.latest:
            raise UsageError(f"time {time} ns; BDDF is written with 64 bits of nanoseconds: 1677 to 2262")
        super().message(channel, time, data)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append data blocks. What was read of a struct is left out: its members have it."""
        payloads = payloads.in_one()
        if self._signal_schemas:
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
            self.write(out.data)

    def _learn(self, channel: NDArray[np.int32], payloads: Payloads) -> None:
        """Take in the schemas of signals among messages."""
        for row in np.flatnonzero(np.isin(channel, self._signal_schemas)).tolist():
            at = int(payloads.start[row])
            found = Signals.parse(bytes(payloads.data[at : at + int(payloads.size[row])]))
            if found is not None and found not in self.schemas.signals:
                self.schemas.signals.append(found)

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
        if self.organization and ":" not in name:
            name = f"{self.organization}:{name}"
        if not self.reserved:
            check_keys([name])
        file = replace(self.file, annotations={**self.file.annotations, name: str(value)})
        check(lambda: encode.file_descriptor(file), f"annotation {name!r:.60}")
        self.file = file

    # --------------------------------------------------------------------------------------------- the file

    def begin_copy(self, file: FileDescriptor) -> None:
        """Begin a file whose blocks, from its first descriptor on, are written as they are by ``write``."""
        self.file, self._begun = file, True
        self.write(MAGIC)

    def commit(self) -> None:
        """Write the declarations even if no message has come."""
        self._begin()

    def finish(self) -> None:
        """Write the index, which is made of the file itself, and the checksum."""
        maker, self._follower = self._follower or self._indexer(), None
        for piece in maker.pieces(self.out.tell()):
            index = self.out.tell()
            self.write(piece)
        self.write(encode.ending(index))
        digest = self._sha.digest() if self.file.checksum == CHECKSUM_SHA1 else bytes(DIGEST)
        self.out.put(encode.closing(digest))

    def _indexer(self) -> Indexer:
        self.out.flush()
        try:
            return Indexer(Source.open(self.out.unfinished))
        except OSError as error:
            raise LogError(f"cannot be read to make its index: {error}", path=self.out.name) from None

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.write(MAGIC + encode.file_descriptor(self.file) + bytes(self._head))

    def _put(self, block: bytes) -> None:
        if self._begun:
            self.write(block)
        else:
            self._head += block

    def write(self, piece: Payload) -> None:
        """Append bytes to the file."""
        if self.file.checksum == CHECKSUM_SHA1:
            self._sha.update(piece)
        if self._follower is not None:
            self._follower.follow(piece)
        self.out.put(piece)


def stretches(place: I64) -> Iterator[slice]:
    """Rows of which each slice makes STRETCH bytes or a single block; *place* is where each begins, and the end."""
    lo = 0
    while lo < len(place) - 1:
        hi = max(lo + 1, int(place.searchsorted(place[lo] + STRETCH, side="right")) - 1)
        yield slice(lo, hi)
        lo = hi
