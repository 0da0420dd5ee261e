"""What a bag that is continued has besides messages: file header, connections, chunk infos, index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logreel.errors import LogError
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import Chunk
from logreel.formats.rosbag.found import FoundFile, add_connection
from logreel.formats.rosbag.records import U32, Record, read_record
from logreel.io.source import Source


@dataclass(frozen=True, slots=True)
class OldHeader:
    """The file header record: its bytes with its padding, and where the value of each field is in them.

    places  start and end of each value
    """

    data: bytes
    places: Mapping[bytes, tuple[int, int]]

    @classmethod
    def read(cls, source: Source, head: Record) -> OldHeader:
        """Return the header of a bag; *head* is its record."""
        data = source.read(head.pos, head.end - head.pos)
        places, at, end = {}, 4, head.data - head.pos - 4
        while at < end:
            (size,) = U32.unpack_from(data, at)
            name = data[at + 4 : at + 4 + size].partition(b"=")[0]
            places[name] = at + 5 + len(name), at + 4 + size
            at += 4 + size
        return cls(data, places)

    def with_values(self, values: Mapping[bytes, int]) -> bytes:
        """Return the bytes of the header with other numbers in fields that it has; sizes stay the same."""
        data = bytearray(self.data)
        for name, value in values.items():
            start, end = self.places[name]
            try:
                data[start:end] = value.to_bytes(end - start, "little")
            except OverflowError:
                text = (
                    f"its header has {end - start} bytes for {name.decode()}, which are too few for {value}"
                )
                raise LogError(text) from None
        return bytes(data)


@dataclass(frozen=True, slots=True)
class OldSummary:
    """Header and summary of a bag of version 2.0.

    connections  record of each connection by its number, in the order of the summary
    infos        chunk info records
    index_order  fields of index records in the order of the old ones: rosbags expects one order in all of a bag; empty
                 if there are none, or with other fields
    """

    header: OldHeader
    connections: Mapping[int, bytes]
    infos: list[bytes]
    index_order: tuple[str, ...]

    @classmethod
    def read(cls, source: Source, head: Record, header: OldHeader, chunks: Sequence[Chunk]) -> OldSummary:
        """Return the summary of a bag whose index was found to be valid; *head* is the record of its *header*."""
        connections: dict[int, bytes] = {}
        infos, known = [], FoundFile()
        at = head.u32(b"index_pos")
        while at < source.size:
            record = read_record(source, at, source.size)
            data = source.read(at, record.end - at)
            if record.op == records.OP_CHUNK_INFO:
                infos.append(data)
            elif record.op == records.OP_CONNECTION:
                # Of a connection that is described twice, the record counts that readers use.
                number = record.u32(b"conn")
                before = known.connections.get(number)
                add_connection(source, record, known)
                if known.connections[number] is not before:
                    connections[number] = data
            at = record.end
        return cls(header, connections, infos, _index_order(source, chunks))


def _index_order(source: Source, chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """Return the names of the fields of the first index record, in their order; see OldSummary."""
    for chunk in chunks[:1]:
        at = chunk.data + chunk.stored
        if at < source.size:
            record = read_record(source, at, source.size)
            names = tuple(name.decode("latin-1") for name in record.fields)
            if record.op == records.OP_INDEX and sorted(names) == ["conn", "count", "op", "ver"]:
                return names
    return ()
