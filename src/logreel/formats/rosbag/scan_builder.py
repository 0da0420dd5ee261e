"""Building of the Scan of a bag of any version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import replace
from logreel.errors import Finding, Problem, UnsupportedError
from logreel.formats.rosbag import reader_v2, version_of
from logreel.formats.rosbag.chunks import ENCRYPTOR, cache, cipher_of
from logreel.formats.rosbag.definitions import CONNECTION, Channels, Connection, Definitions
from logreel.formats.rosbag.index_builder import build_index
from logreel.formats.rosbag.reader import ChunkMessages, FoundFile, IndexedMessages, Reader, after_padding
from logreel.formats.rosbag.records import OP_FILE, BadRecord, Record, read_record
from logreel.formats.rosbag.summary import RemoteChunks, SummaryBuilder, chunk_statements
from logreel.index.channel_index import ChannelRules, StoredValues
from logreel.index.gather import places
from logreel.index.growing_table import GrowingTable
from logreel.index.message_index import MessageIndex
from logreel.io.source import FILE, Chunks, Source
from logreel.log.scan import Scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Versions whose headers are lines of text.
TEXT_VERSIONS = ("0", "1.0", "1.1")
#: Earlier times (1973 if they counted from 1970) are relative to the start of the recording, or simulated.
RELATIVE_NS = 10**8 * 10**9
#: Number of messages by which the version of a type is chosen if the bag does not state it.
FIRST = 32


def scan(source: Source) -> Scan:
    """Return the Scan of a bag; its format_state is the decompressed size of each chunk of version 2.0, for the writer.

    Raises UnsupportedError for bags that cannot be decrypted and for unknown versions.
    """
    version = version_of(source) or "2.0"
    if version in TEXT_VERSIONS:
        return _scan_text(source, version)
    if version == "1.2":
        return _scan_v1(source, version)
    if version == "1.3" or version.split(".")[0] == "2":
        return _scan_v2(source, version)
    raise UnsupportedError(f"a bag of version {version}", path=source.name)


def _scan_text(source: Source, version: str) -> Scan:
    from logreel.formats.rosbag import reader_v1

    bag = reader_v1.read_text(source, version)
    return _scan(source, version, bag.parts(), bag.connections.values(), bag.problems, Chunks(source), {})


def _scan_v1(source: Source, version: str) -> Scan:
    from logreel.formats.rosbag import reader_v1

    reader = reader_v1.read(source)
    connections, index = reader.connections(), reader.index
    scan = _scan(source, version, reader.parts, connections, reader.problems, Chunks(source), {})
    # Without an index, parts need not be kept for a comparison.
    kept = reader.parts if index.stated or index.records else []
    return replace(scan, verify=lambda: index.findings(source, kept, connections))


def _scan_v2(source: Source, version: str) -> Scan:
    bag = reader_v2.read(source)
    remote = None if bag.summary is None else RemoteChunks(source, bag, bag.summary)
    chunks = _chunks(source, bag) if remote is None else remote.as_chunks()
    metadata = _metadata(bag, bag.index is not None or remote is not None)
    if bag.cipher is not None:
        metadata |= {"encryptor": ENCRYPTOR, "gpg_user": bag.cipher.user}
    messages = remote or (bag.parts if bag.index is None else bag.index)
    scan = _scan(
        source,
        version,
        messages,
        bag.connections.values(),
        bag.problems,
        chunks,
        metadata,
        bag.is_cheap,
    )

    def verify() -> Iterator[Finding]:
        yield from scan.verify()
        yield from chunk_statements(source, bag)

    sizes = [chunk.size for chunk in bag.chunks] if remote is None else remote.known_sizes()
    encryption = "" if bag.cipher is None else f"{ENCRYPTOR} for the GnuPG user {bag.cipher.user!r}"
    return replace(scan, format_state=sizes, verify=verify, encryption=encryption)


def _chunks(source: Source, bag: FoundFile) -> Chunks:
    return Chunks(
        source,
        cache(source, bag.chunks, bag.problems),
        lambda n: bag.chunks[n].size,
        lambda n: bag.chunks[n].pos,
    )


def _metadata(bag: FoundFile, has_index: bool) -> dict[str, Any]:
    return {"chunks": bag.chunk_count, "compression": sorted(bag.compressions), "indexed": has_index}


def _scan(
    source: Source,
    version: str,
    messages: list[ChunkMessages] | IndexedMessages | RemoteChunks,
    connections: Iterable[Connection],
    problems: list[Problem],
    chunks: Chunks,
    metadata: dict[str, Any],
    cheap: bool = True,
) -> Scan:
    channels = Channels(Definitions(source, problems))
    for connection in connections:
        channels.add(connection)
    builder = (
        SummaryBuilder(messages, channels, chunks)
        if isinstance(messages, RemoteChunks)
        else build_index(messages, channels, chunks, problems)
    )
    index = builder.index(cheap)
    if version.split(".")[0] != "2":
        # Before, messages are not in chunks, and 2008 there were no checksums.
        channels.choose_versions(partial(_first_messages, source, index))
    return assemble(version, channels, index, builder.bounds(), problems, metadata, builder.verify)


def _first_messages(source: Source, index: MessageIndex, channel: int) -> list[NDArray[np.uint8]]:
    _, offset, size = places(index, channel, slice(0, min(index.count(channel), FIRST)))
    return [source.data[at : at + max(n, 0)] for at, n in zip(offset.tolist(), size.tolist(), strict=True)]


def assemble(
    version: str,
    channels: Channels,
    index: MessageIndex,
    bounds: tuple[int | None, int | None],
    problems: list[Problem],
    metadata: dict[str, Any],
    verify: Callable[[], Iterable[Finding]],
) -> Scan:
    """Return the Scan of what was found; *bounds*: earliest and latest time in ns; *verify*: as in Scan."""
    start, end = bounds
    relative = end is not None and end < RELATIVE_NS
    return Scan(
        version=version,
        epoch="start" if relative else "unix",
        start=start,
        end=end,
        channels=channels.infos(),
        index=index,
        problems=problems,
        metadata=lambda: metadata,
        utc_offset=lambda: None if relative else 0,
        verify=verify,
    )


class BagGrowing:
    """The Growing of one bag."""

    def __init__(self) -> None:
        self._version, self._reader = "", None  # type: tuple[str, Reader | None]
        self._is_readable = True
        #: Messages that the table does not have yet.
        self._parts: list[ChunkMessages] = []
        self._table = GrowingTable(time=np.int64, size=np.uint32, turn=np.uint32)
        self._first: int | None = None
        self._last: int | None = None
        #: Channel number of each connection, which must not change.
        self._number: dict[int, int] = {}
        #: Whether the messages are in the file as they are, or in chunks; None before the first message.
        self._is_plain: bool | None = None

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._reader is None and self._is_readable:
            self._reader = self._begun(source)
            self._is_readable = self._reader is not None
        reader = self._reader
        if reader is None or not reader.feed(source):
            return None
        problems = [*reader.problems, *_problems_at_the_end(reader, source)]
        channels = Channels(Definitions(source, problems))
        for connection in reader.connections():
            channels.add(connection)
        if not self._collect(reader, channels):
            return None
        chunks, metadata = Chunks(source), dict[str, Any]()
        is_cheap, sizes = True, None
        if isinstance(reader, reader_v2.ReaderV2):
            bag = replace(reader.bag, chunks=list(reader.bag.chunks), problems=problems)
            # Recorders state where the index begins when they finish the file.
            head = read_record(source, source.head.find(b"\n") + 1, source.size).fields
            has_index = 0 < int.from_bytes(head.get(b"index_pos", b""), "little") < source.size
            chunks, metadata = _chunks(source, bag), _metadata(bag, has_index)
            is_cheap, sizes = bag.is_cheap, [chunk.size for chunk in bag.chunks]
        side_columns = {CONNECTION: StoredValues(self._table.column("turn"))} if channels.are_several else {}
        time, size = (StoredValues(self._table.column(name)) for name in ("time", "size"))
        rules = [ChannelRules(time, size, side_columns=side_columns)] * len(channels)
        blocks = self._table.blocks(len(channels))
        index = MessageIndex(chunks, blocks, rules, sizes_are_cheap=is_cheap)
        bounds = self._first, self._last
        grown = assemble(
            self._version, channels, index, bounds, problems, metadata, lambda: scan(source).verify()
        )
        return replace(grown, format_state=sizes, reread=lambda: scan(source))

    def _begun(self, source: Source) -> Reader | None:
        """Return the reader of the bag; None for one that is encrypted or whose header is damaged, which is rare.

        Raises UnsupportedError if the file ends in its header, and for unknown versions.
        """
        version = version_of(source)
        if version is None:
            raise UnsupportedError("the file ends before its version is clear", path=source.name)
        self._version = version
        if version == "1.2" or version in TEXT_VERSIONS:
            from logreel.formats.rosbag import reader_v1

            if version in TEXT_VERSIONS:
                return reader_v1.TextReader(source, version)
            _header(source, reader_v1.FIRST_RECORD)
            reader = reader_v1.ReaderV1(source)
            return None if reader.problems else reader
        if version == "1.3" or version.split(".")[0] == "2":
            head = _header(source, source.head.find(b"\n") + 1)
            if head is None or cipher_of(source, head) is not None:
                return None
            bag = FoundFile(is_early=b"topic_count" in head.fields)
            begin = after_padding(source, head, bag.problems)
            return None if bag.problems else reader_v2.ReaderV2(source, bag, begin)
        raise UnsupportedError(f"a bag of version {version}", path=source.name)

    def _collect(self, reader: Reader, channels: Channels) -> bool:
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
        self._parts += reader.take_parts()
        while self._parts:
            part = self._parts[0]
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
            del self._parts[0]
        return True


def _problems_at_the_end(reader: Reader, source: Source) -> list[Problem]:
    left = source.size - reader.pos
    text = f"the last {left} bytes are a record that is not complete yet"
    return [Problem("truncated", reader.pos, left, True, text)] if left > 0 else []


def _header(source: Source, pos: int) -> Record | None:
    """Return the file header at *pos*, None if it is damaged; raise UnsupportedError if the file ends in it."""
    try:
        head = read_record(source, pos, source.size)
        is_cut = head.op == OP_FILE and head.end > source.size
    except BadRecord as error:
        head, is_cut = None, error.cut
    if is_cut:
        raise UnsupportedError("the file ends inside its header", path=source.name)
    return head
