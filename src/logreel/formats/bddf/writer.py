"""Write BDDF files: declarations of series, data blocks in the order given, and the index at the end."""

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
from logreel.formats.bddf import encode_blocks
from logreel.formats.bddf.content_types import JSON
from logreel.formats.bddf.descriptors import (
    CHECKSUM_NONE,
    CHECKSUM_SHA1,
    FileDescriptor,
    Series,
    StructType,
)
from logreel.formats.bddf.index_builder import MAX_SERIES
from logreel.formats.bddf.index_writer import IndexFromFile, IndexFromStream
from logreel.formats.bddf.records import MAGIC
from logreel.formats.bddf.schema_maker import BddfSchemaMaker, is_message
from logreel.formats.bddf.series_declaration import (
    MemberHashes,
    check_descriptor,
    check_keys,
    declare,
    identity,
)
from logreel.formats.bddf.signals import SCHEMA, Signals
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.log.schema import Schema
from logreel.write.format_writer import FormatWriter
from logreel.write.payloads import Payload, Payloads

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
        self._put(encode_blocks.series_descriptor(numbered))

    def _add(self, series: Series, metadata: Mapping[str, Any], is_struct: bool) -> None:
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
        self, topic: str, schema: Schema, series: Series, metadata: Mapping[str, Any], is_struct: bool
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
            found = Signals.parse(bytes(payloads.data[at : at + int(payloads.size[row])]))
            if found is not None and found not in self.schemas.signals:
                self.schemas.signals.append(found)

    def _padded(self, n: int, side_columns: I64 | None) -> I64:
        """Return additional indexes as int64[n, k], k being the greatest number that a channel has."""
        width = int(self._table.rows[:, 1].max(initial=0))
        found = np.zeros((n, width), np.int64)
        if side_columns is not None:
            k = side_columns.shape[1]
            if k > width:
                raise UsageError(f"{k} additional indexes; no channel has more than {width}")
            found[:, :k] = side_columns
        return found

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
        check_descriptor(lambda: encode_blocks.file_descriptor(file), f"annotation {name!r:.60}")
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
        for piece in index.pieces(self.out.tell()):
            file_index = self.out.tell()
            self.write(piece)
        self.write(encode_blocks.end_block_head(file_index))
        digest = self._sha.digest() if self.file.checksum == CHECKSUM_SHA1 else bytes(DIGEST)
        self.out.put(encode_blocks.end_block_tail(digest))

    def _index_from_file(self) -> IndexFromFile:
        self.out.flush()
        try:
            return IndexFromFile(Source.open(self.out.unfinished))
        except OSError as error:
            raise LogError(f"cannot be read to make its index: {error}", path=self.out.name) from None

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.write(MAGIC + encode_blocks.file_descriptor(self.file) + bytes(self._head))

    def _put(self, block: bytes) -> None:
        if self._begun:
            self.write(block)
        else:
            self._head += block

    def write(self, piece: Payload) -> None:
        """Append bytes to the file."""
        if self.file.checksum == CHECKSUM_SHA1:
            self._sha.update(piece)
        if self._index is not None:
            self._index.follow(piece)
        self.out.put(piece)


def batches(place: I64) -> Iterator[slice]:
    """Yield slices of rows with at most BATCH_BYTES bytes or a single block; *place*: starts of blocks and the end."""
    lo = 0
    while lo < len(place) - 1:
        hi = max(lo + 1, int(place.searchsorted(place[lo] + BATCH_BYTES, side="right")) - 1)
        yield slice(lo, hi)
        lo = hi
