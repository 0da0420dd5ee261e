"""How the records of a format lie in its files, for ``logreel du``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from logreel.io.arrays import I64
from logreel.io.chunks import Buffer

#: Kinds of records that several formats have; a format can name others.
FILE_HEADER, DEFINITIONS, METADATA, ATTACHMENTS = "file header", "definitions", "metadata", "attachments"
INDEX, CHUNK_HEADERS, UNASSIGNED = "index", "chunk headers", "messages of no channel"


class StoredRecord(NamedTuple):
    """A record that is no message of a channel.

    kind         what it holds, for people
    size         bytes; of a chunk whose content is stored as it is, only those before the content
    compression  of a chunk: its name, ``none`` if the content is stored as it is; else empty
    head         of a chunk: bytes before its content
    content      of a chunk: stored bytes of its content
    """

    kind: str
    size: int
    compression: str = ""
    head: int = 0
    content: int = 0


@dataclass(frozen=True, slots=True)
class Storage:
    """The records of a format.

    head     bytes of a record before the payload of its message: a number, or a function that returns int64[n] from
             uint8[b] bytes, int64[n] payload starts and int64[n] payload sizes
    records  yields the records from one position on up to another one, in order; ends where the bytes are no record.
             The content of a chunk follows the chunk unless it is compressed
    """

    head: int | Callable[[Buffer, I64, I64], I64]
    records: Callable[[Buffer, int, int], Iterator[StoredRecord]]
