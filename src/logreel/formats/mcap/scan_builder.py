"""Building of the Scan of an MCAP file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from logreel.errors import Finding
from logreel.formats.mcap import full_read, index_check, reader, summary
from logreel.formats.mcap.channels import channel_infos, from_json, unique
from logreel.formats.mcap.chunks import cache, compressions
from logreel.formats.mcap.clock import Clock, source_facts
from logreel.formats.mcap.definitions import Decoders
from logreel.formats.mcap.found import OWN, FoundFile
from logreel.formats.mcap.index_builder import IndexBuilder
from logreel.formats.mcap.records import Attached, BadRecord
from logreel.formats.mcap.verify import verify
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.log.scan import MADE_OF, Attachment, Change, ChannelInfo, Parameter, Scan

#: Decompressing this many stored bytes takes a fraction of a second.
CHEAP_BYTES = 1 << 28


def scan(source: Source) -> Scan:
    """Return the Scan of an MCAP file; raise UnsupportedError for more channels × chunks than an index can hold."""
    return _scan_of(source, _read(source))


def _read(source: Source) -> FoundFile:
    """Return the content of the file, by its summary if that is complete and consistent."""
    try:
        file = summary.read(source) or reader.read(source)
        # Statistics of a damaged file say nothing about its index.
        index_check.check_index(source, file, not any(problem.lost for problem in file.problems))
    except BadRecord as error:
        file = reader.read(source, trust=False)
        file.note("index", source.size, 0, False, f"the summary is not used: {error}")
    return file


def _reread(source: Source, file: FoundFile, builder: IndexBuilder) -> Scan:
    """Return the Scan of all whole records; it shares its list of problems with *file*."""
    found = full_read.read_all(source, file, builder).file
    full_read.share_problems(file, builder, found)
    return _scan_of(source, found)


def _scan_of(source: Source, file: FoundFile) -> Scan:
    file.source = source
    number, channels = channel_infos(file, Decoders(source, file.problems))
    chunks = Chunks(
        source,
        cache(source, file.chunks, file.problems),
        lambda n: file.chunks[n].size,
        lambda n: file.chunks[n].pos,
        (lambda n: file.chunks[n].data + file.chunks[n].stored) if file.by_summary else None,
    )
    builder = IndexBuilder(source, file, number, chunks)
    return assemble(
        source,
        file,
        channels,
        builder.index(is_cheap(file) and not chunks.in_ranges),
        builder.bounds,
        builder.compare_checksums,
        lambda: verify(source, file, builder),
        lambda: _reread(source, file, builder),
    )


def is_cheap(file: FoundFile) -> bool:
    """Return whether decompressing all chunks takes a fraction of a second."""
    return sum(one.stored for one in file.chunks if not one.is_plain) < CHEAP_BYTES


def assemble(
    source: Source,
    file: FoundFile,
    channels: list[ChannelInfo],
    index: MessageIndex,
    bounds: Callable[[], tuple[int | None, int | None]],
    checksums: Callable[[I64], None] | None,
    verify: Callable[[], Iterable[Finding]],
    reread: Callable[[], Scan],
) -> Scan:
    """Return the Scan of what was found; *bounds*: earliest and latest time in ns; others: as in Scan."""
    origin = dict(file.origin or {})
    clock = Clock.read(origin)
    # Channels that a conversion added repeat others: their messages are not those of the log that was converted.
    own = [n for n, info in enumerate(channels) if MADE_OF not in info.metadata]
    start, end = _bounds(clock, bounds, int(index.counts[own].sum()))
    epoch = clock.epoch_until(end)
    offset = clock.offset_in(epoch)
    return Scan(
        version="0",
        epoch=epoch,
        start=start,
        end=end,
        channels=channels,
        index=index,
        problems=file.problems,
        metadata=lambda: _metadata(file, origin),
        attachments=lambda: _attachments(source, file.attachments),
        parameters=lambda: _parameters(origin),
        utc_offset=lambda: offset,
        checksums=checksums,
        verify=verify,
        reread=reread,
        format_state=file,
        converted_from=origin.get("format", ""),
    )


def _bounds(
    clock: Clock, bounds: Callable[[], tuple[int | None, int | None]], messages: int
) -> tuple[int | None, int | None]:
    """Return start and end in ns; those of the log that was converted as long as all of its messages are there."""
    if clock.span is not None and clock.span[2] == messages:
        return clock.span[:2]
    return bounds()


def _metadata(file: FoundFile, origin: Mapping[str, str]) -> Mapping[str, Any]:
    """Return metadata records by name (lists of repeated ones), metadata of the converted log, facts of the file."""
    found: dict[str, Any] = {}
    for name, record in file.metadata:
        if name == OWN:
            continue
        before = found.get(name)
        found[name] = (
            record if before is None else [*(before if isinstance(before, list) else [before]), record]
        )
    facts: dict[str, Any] = {
        "profile": file.profile,
        "library": file.library,
        "chunks": len(file.every),
        "compression": compressions(file.every),
        "indexed": file.by_summary,
    }
    if (stats := file.statistics) is not None:
        facts["statistics"] = {
            "messages": stats.messages,
            "schemas": stats.schemas,
            "channels": stats.channels,
            "attachments": stats.attachments,
            "metadata": stats.metadata,
            "chunks": stats.chunks,
            "start_ns": stats.start,
            "end_ns": stats.end,
        }
    if "mcap" in found:
        facts["metadata"] = found["mcap"]
    if origin:
        facts["converted_from"] = source_facts(origin)
    return found | from_json(origin.get("metadata", "")) | {"mcap": facts}


def _attachments(source: Source, attached: list[Attached]) -> list[Attachment]:
    names = unique(one.name for one in attached)
    return [
        Attachment(
            name,
            one.media_type,
            one.size,
            lambda one=one: source.read(one.data, one.size),  # type: ignore[misc]
            one.log_time,
            one.create_time,
        )
        for name, one in zip(names, attached, strict=True)
    ]


def _parameters(origin: Mapping[str, str]) -> list[Parameter]:
    made = []
    for one in from_json(origin.get("parameters", "")).get("parameters", []):
        try:
            changes = tuple(Change(int(time), value) for time, value in one["changes"])
            made.append(
                Parameter(str(one["name"]), str(one["type"]), one["value"], changes, dict(one["defaults"]))
            )
        except (KeyError, TypeError, ValueError):
            continue
    return made
