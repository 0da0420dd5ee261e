"""Read an MCAP file while it is written: go on from the last complete record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from logreel.errors import Problem
from logreel.formats.mcap import records
from logreel.formats.mcap.channels import channel_infos
from logreel.formats.mcap.chunks import COMPRESSIONS, cache
from logreel.formats.mcap.definitions import Decoders
from logreel.formats.mcap.found import FoundFile
from logreel.formats.mcap.index_builder import SIDE_COLUMNS
from logreel.formats.mcap.reader import (
    Buffers,
    after_footer,
    read_compressed,
    read_until_chunk,
    skip_damage,
)
from logreel.formats.mcap.records import HEAD, MAGIC, BadRecord, Chunk, record_at
from logreel.formats.mcap.scan_builder import assemble, is_cheap, scan
from logreel.index.growing_table import GrowingTable
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, StoredValues
from logreel.io.chunks import FILE, Chunks
from logreel.io.source import Source
from logreel.kernels import mcap
from logreel.log.scan import Scan

#: Bytes behind damage with which it is judged as in a complete file.
ENOUGH = 1 << 20
#: Bytes of an incomplete record after which its stated size is not believed any more.
PENDING = 1 << 28


class McapGrowing:
    """The Growing of one MCAP file.

    Chunks are decompressed when they are complete; the index of a chunk is not used, because it follows later.
    """

    def __init__(self) -> None:
        self._file, self._pos = FoundFile(), len(MAGIC)
        self._finished = False
        #: Channel number by channel id, in the order in which the channels appeared.
        self._number: dict[int, int] = {}
        self._table = GrowingTable(time=np.int64, size=np.uint32)
        self._first: int | None = None
        self._last: int | None = None
        #: Whether all messages are in the file as they are; None before the first message.
        self._is_plain: bool | None = None

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        self._file.source = source
        if not self._read(source) or not self._collect():
            return None
        return self._scan(source)

    def _read(self, source: Source) -> bool:
        """Read the complete records after the position; return whether all bytes could be judged."""
        file, end = self._file, source.size
        buffers = Buffers(max(0, end - self._pos))
        while self._pos < end:
            why, self._pos = read_until_chunk(source, self._pos, end, file, buffers)
            if why == mcap.STOP and source.view[self._pos] == records.CHUNK:
                self._pos = self._read_chunk(source, self._pos, end)
            elif why == mcap.STOP:
                footer = record_at(source, self._pos, end)
                if footer.end + len(MAGIC) > end:
                    return True
                # The offset of the summary, which a file without one states as 0.
                file.by_summary = any(source.read(self._pos + HEAD, 8))
                self._pos, self._finished = after_footer(source, self._pos, end, file), True
            elif why == mcap.CUT:
                return end - self._pos < PENDING
            elif why == mcap.BAD:
                if end - self._pos < ENOUGH:
                    return False
                self._pos = skip_damage(source, self._pos, end, file, False)
        return True

    def _read_chunk(self, source: Source, pos: int, end: int) -> int:
        """Read the complete chunk at *pos*; return the offset of the next record to be read."""
        file, after = self._file, record_at(source, pos, end).end
        try:
            chunk = Chunk.read(source, pos, end)
        except BadRecord:
            return skip_damage(source, pos, end, file, False)
        if chunk.compression not in COMPRESSIONS:
            text = f"a chunk of unknown compression {chunk.compression[:20]!r}"
            file.note("chunk", pos, after - pos, True, text)
            return after
        file.every.append(chunk)
        if chunk.is_plain:
            # Its records are read like records outside of chunks.
            return chunk.data
        read_compressed(source, chunk, file)
        return after

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
            chunk, found = file.chunks[part.chunk], part.found
            if found is None:
                return False
            channel = column[found.key]
            if (channel < 0).any() or self._is_plain not in (None, chunk.is_plain):
                return False
            self._is_plain = chunk.is_plain
            base, number = (part.base + chunk.data, FILE) if chunk.is_plain else (part.base, part.chunk)
            self._table.add(base, number, channel, found.entry, time=found.time, size=found.size)
            first, last = int(found.time.min()), int(found.time.max())
            self._first = first if self._first is None else min(first, self._first)
            self._last = last if self._last is None else max(last, self._last)
            del file.parts[0]
        if self._is_plain:
            # Only those of compressed chunks are needed again.
            file.chunks.clear()
        return True

    def _scan(self, source: Source) -> Scan:
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
            problems=[*self._file.problems, *self._problems_at_the_end(source)],
        )
        _, channels = channel_infos(file, Decoders(source, file.problems), self._number)
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

    def _problems_at_the_end(self, source: Source) -> list[Problem]:
        found, left = list[Problem](), source.size - self._pos
        if left > 0:
            text = f"the last {left} bytes are a record that is not complete yet"
            found.append(Problem("truncated", self._pos, left, True, text))
        if not self._finished:
            text = "there is no footer: the file was cut, or never finished"
            found.append(Problem("unfinished", source.size, 0, False, text))
        return found
