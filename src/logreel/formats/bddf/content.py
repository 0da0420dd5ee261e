"""From the blocks of a file to a Scan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

from logreel.errors import Problem, UnsupportedError
from logreel.formats.bddf import indexed
from logreel.formats.bddf.indexed import BadIndex, Index
from logreel.formats.bddf.messages import CHECKSUM_NONE, CHECKSUM_SHA1, MessageType, PodType, Series
from logreel.formats.bddf.pods import RAW, PodBody, describe, layout_of, type_text
from logreel.formats.bddf.readings import Body, NumberedReading, PlainBody, distinct_names, with_numbers
from logreel.formats.bddf.scan import Found, Scanner
from logreel.model.chunks import Chunks
from logreel.model.index import Aligned, MessageIndex, Track
from logreel.model.layout import Field, Layout, Rest, Struct
from logreel.model.reading import Reading
from logreel.model.scan import ChannelInfo, Scan
from logreel.model.schema import Schema
from logreel.model.source import Source

TEXT = Layout(Struct((Field("text", Rest(text=True)),)), "text")
PROTOBUF = "application/protobuf"


def find(source: Source) -> Found:
    """Everything in a file: by its index where that accounts for the whole file, else by reading from the front."""
    try:
        index = Index(source)
    except BadIndex as error:
        return _scanned(source, Scanner(source), None if error.missing else str(error))
    try:
        return indexed.read(source, index)
    except BadIndex as error:
        return _scanned(source, Scanner(source, index.places()), str(error))


def _scanned(source: Source, scanner: Scanner, why: str | None) -> Found:
    found = scanner.run()
    # Where files are glued together, the index is that of the last one and counts from its beginning.
    if why is not None and not any(p.code == "segment" for p in found.problems):
        found.problems.insert(
            0, Problem("index", source.size - 32, 0, False, f"the index is not used: {why}")
        )
    return found


def scan(source: Source) -> Scan:
    """The Scan of a file. Raises UnsupportedError for a version from the future."""
    return Content(source, find(source)).scan()


class Content:
    """Channels, index and metadata of what was found."""

    def __init__(self, source: Source, found: Found) -> None:
        self.source, self.found = source, found
        if found.file.version[0] > 1:
            shown = ".".join(map(str, found.file.version))
            raise UnsupportedError(f"a BDDF file of version {shown}", path=source.name)

    def scan(self) -> Scan:
        """The Scan."""
        found = self.found
        collected = found.collected
        infos = [
            self._info(number, topic, series)
            for number, (topic, series) in enumerate(zip(self._topics, found.series, strict=True))
        ]
        track = Track(Aligned(collected.time), Aligned(collected.size))
        blocks = collected.blocks
        if blocks.start.shape[1] < len(infos) + 1:
            have = blocks.start.shape[1] - 1
            blocks = blocks.reshaped(list(range(have)), len(infos) - have)
        self.index = MessageIndex(Chunks(self.source), blocks, [track] * len(infos))
        time = collected.time
        return Scan(
            version=".".join(map(str, found.file.version)),
            epoch="unix",
            start=int(time.min()) if len(time) else None,
            end=int(time.max()) if len(time) else None,
            channels=infos,
            index=self.index,
            problems=found.problems,
            metadata=self._metadata,
            utc_offset=lambda: 0,
        )

    def _metadata(self) -> Mapping[str, Any]:
        file = self.found.file
        kinds = {CHECKSUM_NONE: "none", CHECKSUM_SHA1: "sha1"}
        told: dict[str, Any] = dict(file.annotations)
        told["indexed"] = self.found.indexed
        told["checksum"] = kinds.get(file.checksum, "unknown")
        if self.found.ending is not None and file.checksum == CHECKSUM_SHA1:
            told["sha1"] = self.found.ending.digest.hex()
        return told

    # -------------------------------------------------------------------------------------------- channels

    @cached_property
    def _topics(self) -> list[str]:
        """A name for each series, all different."""
        seen: dict[str, int] = {}
        topics = []
        for series in self.found.series:
            name = topic_of(series)
            n = seen[name] = seen.get(name, -1) + 1
            while n and f"{name}[{n}]" in seen:
                n = seen[name] = n + 1
            topics.append(f"{name}[{n}]" if n else name)
            seen.setdefault(topics[-1], 0)
        return topics

    def _info(self, number: int, topic: str, series: Series) -> ChannelInfo:
        if isinstance(series.type, PodType):
            schema = Schema(type_text(series.type), "bddf", describe(series, series.type))
        elif isinstance(series.type, MessageType):
            kind = series.type
            encoding = "protobuf" if kind.content_type == PROTOBUF else kind.content_type
            schema = Schema(kind.name or kind.content_type, encoding)
        else:
            schema = Schema("unknown", "bddf")
        layout, reading = partial(self._layout, series), partial(self._reading, number, series)
        return ChannelInfo(topic, schema, layout, metadata_of(series), reading)

    def _body_layout(self, series: Series) -> Layout:
        kind = series.type
        if isinstance(kind, PodType):
            return layout_of(series, kind) or RAW
        if isinstance(kind, MessageType):
            is_text = kind.content_type.startswith("text/") or kind.content_type == "application/json"
            return TEXT if is_text else RAW
        return RAW

    def _body(self, series: Series) -> Body | None:
        """What decodes payloads where no Layout can."""
        kind = series.type
        if isinstance(kind, PodType) and layout_of(series, kind) is not None:
            return PodBody(kind)
        return None

    def _layout(self, series: Series) -> Layout:
        layout = self._body_layout(series)
        return with_numbers(layout, distinct_names(series.names, layout)) if series.names else layout

    def _reading(self, number: int, series: Series) -> Reading | None:
        body = self._body(series)
        if not series.names:
            return body
        layout = self._body_layout(series)
        names = distinct_names(series.names, layout)
        return NumberedReading(number, names, self.found.collected.head, body or PlainBody(layout))


def topic_of(series: Series) -> str:
    """What people call a series: its channel, or the values of its name in the order of their keys."""
    spec = series.identifier.spec
    name = spec.get("bosdyn:channel") or "/".join(spec[key] for key in sorted(spec) if spec[key])
    name = name or series.identifier.type or f"series {series.index}"
    # Names that begin with a tilde are reserved.
    return f"_{name}" if name.startswith("~") else name


def metadata_of(series: Series) -> Mapping[str, Any]:
    """What the declaration of a series tells besides its type."""
    told: dict[str, Any] = {
        "series_type": series.identifier.type,
        "spec": dict(series.identifier.spec),
        "hash": f"{series.hash:016x}",
    }
    kind = series.type
    if isinstance(kind, MessageType):
        told |= {"content_type": kind.content_type, "type_name": kind.name, "is_metadata": kind.is_metadata}
    elif isinstance(kind, PodType):
        told |= {"type_name": kind.type, "dimension": list(kind.dimension)}
    if series.names:
        told["additional_indexes"] = list(series.names)
    if series.annotations:
        told["annotations"] = dict(series.annotations)
    if series.description:
        told["description"] = series.description
    return told
