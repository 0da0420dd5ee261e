"""Building of the Scan of a bag of any version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Finding, Problem, UnsupportedError
from logreel.formats.rosbag import reader_text, reader_v1, reader_v2
from logreel.formats.rosbag.channels import Channels, Connection
from logreel.formats.rosbag.chunks import cache
from logreel.formats.rosbag.definitions import Definitions
from logreel.formats.rosbag.encryption import ENCRYPTOR
from logreel.formats.rosbag.found import ChunkMessages, IndexedMessages
from logreel.formats.rosbag.index_builder import build_index
from logreel.formats.rosbag.statements import chunk_statements
from logreel.formats.rosbag.summary_builder import RemoteChunks, SummaryBuilder
from logreel.formats.rosbag.version import version_of
from logreel.index.message_index import MessageIndex
from logreel.index.ranges import places
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.log.scan import Scan

#: Earlier times (1973 if they counted from 1970) are relative to the start of the recording, or simulated.
RELATIVE_NS = 10**8 * 10**9
#: Number of messages by which the version of a type is chosen if the bag does not state it.
FIRST = 32


def scan(source: Source) -> Scan:
    """Return the Scan of a bag; its format_state is the decompressed size of each chunk of version 2.0, for the writer.

    Raises UnsupportedError for bags that cannot be decrypted and for unknown versions.
    """
    version = version_of(source) or "2.0"
    if version in reader_text.TEXT_VERSIONS:
        return _scan_text(source, version)
    if version == "1.2":
        return _scan_v1(source, version)
    if version == "1.3" or version.split(".")[0] == "2":
        return _scan_v2(source, version)
    raise UnsupportedError(f"a bag of version {version}", path=source.name)


def _scan_text(source: Source, version: str) -> Scan:
    bag = reader_text.read(source, version)
    return _scan(source, version, bag.parts(), bag.connections.values(), bag.problems, Chunks(source), {})


def _scan_v1(source: Source, version: str) -> Scan:
    parts, connections, problems, index = reader_v1.read(source)
    scan = _scan(source, version, parts, connections, problems, Chunks(source), {})
    # Without an index, parts need not be kept for a comparison.
    kept = parts if index.stated or index.records else []
    return replace(scan, verify=lambda: index.findings(source, kept, connections))


def _scan_v2(source: Source, version: str) -> Scan:
    found = reader_v2.read(source)
    remote = None if found.summary is None else RemoteChunks(source, found, found.summary)
    chunks = (
        Chunks(
            source,
            cache(source, found.chunks, found.problems),
            lambda n: found.chunks[n].size,
            lambda n: found.chunks[n].pos,
        )
        if remote is None
        else remote.as_chunks()
    )
    metadata = {
        "chunks": found.chunk_count,
        "compression": sorted(found.compressions),
        "indexed": found.index is not None or remote is not None,
    }
    if found.cipher is not None:
        metadata |= {"encryptor": ENCRYPTOR, "gpg_user": found.cipher.user}
    messages = remote or (found.parts if found.index is None else found.index)
    scan = _scan(
        source,
        version,
        messages,
        found.connections.values(),
        found.problems,
        chunks,
        metadata,
        found.is_cheap,
    )

    def verify() -> Iterator[Finding]:
        yield from scan.verify()
        yield from chunk_statements(source, found)

    sizes = [chunk.size for chunk in found.chunks] if remote is None else remote.known_sizes()
    encryption = "" if found.cipher is None else f"{ENCRYPTOR} for the GnuPG user {found.cipher.user!r}"
    return replace(scan, format_state=sizes, verify=verify, encryption=encryption)


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
