"""From a bag of any version to a Scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from logreel.errors import Problem, UnsupportedError
from logreel.formats.rosbag import old, v1, v2
from logreel.formats.rosbag.chunks import cache
from logreel.formats.rosbag.connections import Channels, Connection
from logreel.formats.rosbag.definitions import Definitions
from logreel.formats.rosbag.encryption import ENCRYPTOR
from logreel.formats.rosbag.found import Found, Indexed
from logreel.formats.rosbag.index_builder import build_index
from logreel.formats.rosbag.version import version_of
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.log.scan import Scan

#: Times before this count from the start of the recording or are simulated: 1973 in seconds since 1970.
RELATIVE_NS = 10**8 * 10**9

_OLD: dict[str, Callable[[Source], old.OldBag]] = {"0": old.read_0, "1.0": old.read_1_0, "1.1": old.read_1_1}


def scan(source: Source) -> Scan:
    """The Scan of a bag; what it keeps for its writer are the sizes of its chunks.

    Raises UnsupportedError for bags that cannot be decrypted and versions from the future.
    """
    version = version_of(source) or "2.0"
    if version in _OLD:
        bag = _OLD[version](source)
        return _scan(source, version, bag.parts(), bag.connections.values(), bag.problems, Chunks(source), {})
    if version == "1.2":
        parts, connections, problems, index = v1.read(source)
        topics = {one.key: one.topic for one in connections}
        scan = _scan(source, version, parts, connections, problems, Chunks(source), {})
        # Without an index nothing needs to be kept to compare it with.
        if index.stated or index.records:
            scan = replace(scan, verify=lambda: index.findings(source, parts, topics))
        return scan
    if version == "1.3" or version.split(".")[0] == "2":
        found = v2.read(source)
        chunks = Chunks(
            source,
            cache(source, found.chunks, found.problems),
            lambda n: found.chunks[n].size,
            lambda n: found.chunks[n].pos,
        )
        told = {
            "chunks": found.chunk_count,
            "compression": sorted(found.compressions),
            "indexed": found.index is not None,
        }
        if found.cipher is not None:
            told |= {"encryptor": ENCRYPTOR, "gpg_user": found.cipher.user}
        scan = _scan(
            source,
            version,
            found.parts if found.index is None else found.index,
            found.connections.values(),
            found.problems,
            chunks,
            told,
            found.is_cheap,
        )
        scan.format_state = [chunk.size for chunk in found.chunks]
        return scan
    raise UnsupportedError(f"a bag of version {version}", path=source.name)


def _scan(
    source: Source,
    version: str,
    messages: list[Found] | Indexed,
    connections: Iterable[Connection],
    problems: list[Problem],
    chunks: Chunks,
    metadata: dict[str, Any],
    cheap: bool = True,
) -> Scan:
    channels = Channels(Definitions(source, problems))
    for connection in connections:
        channels.add(connection)
    collected = build_index(messages, channels, problems)
    start, end = collected.bounds()
    relative = end is not None and end < RELATIVE_NS
    return Scan(
        version=version,
        epoch="start" if relative else "unix",
        start=start,
        end=end,
        channels=channels.infos(),
        index=collected.index(chunks, cheap),
        problems=problems,
        metadata=lambda: metadata,
        utc_offset=lambda: None if relative else 0,
        verify=collected.verify,
    )
