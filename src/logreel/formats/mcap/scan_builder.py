"""From an MCAP file to a Scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logreel.formats.mcap import full_read, index_check, reader, summary
from logreel.formats.mcap.channels import OWN, from_json, infos, unique
from logreel.formats.mcap.chunks import cache, compressions
from logreel.formats.mcap.clock import Clock, source_facts
from logreel.formats.mcap.definitions import Decoders
from logreel.formats.mcap.found import FoundFile
from logreel.formats.mcap.index_builder import IndexBuilder
from logreel.formats.mcap.records import Attached, BadRecord
from logreel.formats.mcap.verify import verify
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.log.scan import MADE_OF, Attachment, Change, Parameter, Scan

#: Looking at this many packed bytes takes a fraction of a second.
CHEAP_BYTES = 1 << 28


def scan(source: Source) -> Scan:
    """The Scan of an MCAP file. Raises UnsupportedError for one with more channels and chunks than fit an index."""
    return _scan_of(source, _read(source))


def _read(source: Source) -> FoundFile:
    """What is in the file, by its summary where that tells everything."""
    try:
        file = summary.read(source) or reader.read(source)
        # Counts of a damaged file say nothing about its index.
        index_check.settle(source, file, not any(problem.lost for problem in file.problems))
    except BadRecord as error:
        file = reader.read(source, trust=False)
        file.note("index", source.size, 0, False, f"the summary is not used: {error}")
    return file


def _reread(source: Source, file: FoundFile, collected: IndexBuilder) -> Scan:
    """The Scan of everything that is wholly there; both tell the same problems from here on."""
    found = full_read.read(source, file, collected).file
    full_read.share_problems(file, collected, found)
    return _scan_of(source, found)


def _scan_of(source: Source, file: FoundFile) -> Scan:
    origin = dict(next((told for name, told in file.metadata if name == OWN), {}))
    number, channels = infos(file, Decoders(source, file.problems))
    collected = IndexBuilder(source, file, number)
    chunks = Chunks(
        source,
        cache(source, file.chunks, file.problems),
        lambda n: file.chunks[n].size,
        lambda n: file.chunks[n].pos,
    )
    cheap = sum(one.stored for one in file.chunks if not one.is_plain) < CHEAP_BYTES
    index = collected.index(chunks, cheap)
    clock = Clock.read(origin)
    # What a conversion added repeats what is there: it is not of the log that was converted.
    own = [n for n, info in enumerate(channels) if MADE_OF not in info.metadata]
    start, end = _bounds(clock, collected, int(index.counts[own].sum()))
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
        verify=lambda: verify(source, file, collected),
        reread=lambda: _reread(source, file, collected),
        format_state=file,
        converted_from=origin.get("format", ""),
    )


def _bounds(clock: Clock, collected: IndexBuilder, messages: int) -> tuple[int | None, int | None]:
    """First and last moment: those of the log that this one was converted from while all of its messages are there."""
    if clock.span is not None and clock.span[2] == messages:
        return clock.span[:2]
    return collected.bounds()


def _metadata(file: FoundFile, origin: Mapping[str, str]) -> Mapping[str, Any]:
    """Metadata records by name, of repeated names a list; what a converted log told; facts of the file itself."""
    found: dict[str, Any] = {}
    for name, told in file.metadata:
        if name == OWN:
            continue
        before = found.get(name)
        found[name] = told if before is None else [*(before if isinstance(before, list) else [before]), told]
    facts: dict[str, Any] = {
        "profile": file.profile,
        "library": file.library,
        "chunks": len(file.every),
        "compression": compressions(file.every),
        "indexed": file.by_summary,
    }
    if (told_by := file.statistics) is not None:
        facts["statistics"] = {
            "messages": told_by.messages,
            "schemas": told_by.schemas,
            "channels": told_by.channels,
            "attachments": told_by.attachments,
            "metadata": told_by.metadata,
            "chunks": told_by.chunks,
            "start_ns": told_by.start,
            "end_ns": told_by.end,
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
