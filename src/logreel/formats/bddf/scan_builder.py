"""From the blocks of a file to a Scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from logreel.errors import UnsupportedError
from logreel.formats.bddf import indexed, text
from logreel.formats.bddf.index_builder import IN_BLOCKS
from logreel.formats.bddf.indexed import BadIndex, Index
from logreel.formats.bddf.messages import (
    CHECKSUM_NONE,
    CHECKSUM_SHA1,
    MessageType,
    PodType,
    Series,
    StructType,
)
from logreel.formats.bddf.payload_decoders import NumberedDecoder, distinct_names, names_of, with_numbers
from logreel.formats.bddf.payloads import JSON, PROTOBUF, Payloads, json_schema
from logreel.formats.bddf.pods import RAW, PodDecoder, describe, layout_of, type_text
from logreel.formats.bddf.reader import Found, Scanner
from logreel.formats.bddf.signals import SCHEMA, TICK, SignalDecoder, Signals, distinct_sizes
from logreel.formats.bddf.structs import Join
from logreel.formats.bddf.verify import verify
from logreel.index.message_index import MessageIndex
from logreel.index.rules import SyntheticMessages
from logreel.io.chunks import Buffer, Chunks
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.payload_decoder import PayloadDecoder
from logreel.log.scan import ChannelInfo, Scan, TextLine
from logreel.log.schema import Schema
from logreel.log.side_columns import LayoutDecoder
from logreel.schemas.json.payload_decoder import JsonDecoder
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder

TEXT = Layout(Struct((Field("text", Rest(text=True)),)), "text")


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
        found.problems.insert(0, indexed.unused(source, why))
    return found


def scan(source: Source) -> Scan:
    """The Scan of a file. Raises UnsupportedError for a version from the future."""
    return ScanBuilder(source, find(source)).scan()


class ScanBuilder:
    """Channels, index and metadata of what was found."""

    def __init__(self, source: Source, found: Found) -> None:
        self.source, self.found = source, found
        self._payloads = Payloads(source, found.problems)
        if found.file.version[0] > 1:
            shown = ".".join(map(str, found.file.version))
            raise UnsupportedError(f"a BDDF file of version {shown}", path=source.name)

    def scan(self) -> Scan:
        """The Scan."""
        found = self.found
        infos = [
            self._info(number, topic, series)
            for number, (topic, series) in enumerate(zip(self._topics, found.series, strict=True))
        ]
        return Scan(
            version=".".join(map(str, found.file.version)),
            epoch="unix",
            start=None,
            end=None,
            bounds=found.times,
            verify=partial(verify, self.source),
            channels=infos,
            index=self.index,
            problems=found.problems,
            metadata=self._metadata,
            text=self._text,
            utc_offset=lambda: 0,
            format_state=self,
        )

    @cached_property
    def index(self) -> MessageIndex:
        """Of all channels; those of struct series are made when first touched."""
        rules = list(self._plain.rules)
        for number, join in self._joins.items():
            rules[number] = replace(IN_BLOCKS, synthetic=partial(getattr, join, "count"))
        return MessageIndex(self._plain.chunks, self._plain.table, rules, self._make)

    @cached_property
    def _plain(self) -> MessageIndex:
        """Of the blocks in the file."""
        return MessageIndex(Chunks(self.source), self.found.table, [IN_BLOCKS] * len(self.found.series))

    @cached_property
    def _joins(self) -> dict[int, Join]:
        series = self.found.series
        # Blocks of a struct mean that its declaration is damaged, and are shown as they are.
        return {
            i: Join(one, series, self._plain, self.found.problems)
            for i, one in enumerate(series)
            if isinstance(one.type, StructType) and not self._plain.count(i)
        }

    def _make(self) -> tuple[Buffer, dict[int, SyntheticMessages]]:
        data, made = b"", {}
        for number, join in self._joins.items():
            more, made[number] = join.make(len(data))
            data += more
        return np.frombuffer(data, np.uint8), made

    def _text(self) -> list[TextLine]:
        lines = []
        for number, (topic, series) in enumerate(zip(self._topics, self.found.series, strict=True)):
            if isinstance(series.type, MessageType) and text.speaks(series.type):
                rows = zip(self.index.times(number).tolist(), self._payloads_of(number), strict=True)
                lines += [text.line(series.type, topic, time, data) for time, data in rows]
        return sorted((line for line in lines if line is not None), key=lambda line: line.time)

    def _payloads_of(self, number: int) -> Iterator[bytes]:
        places = self._plain.offsets(number), self._plain.sizes(number)
        for at, size in zip(*(p.tolist() for p in places), strict=True):
            yield self.source.read(at, size)

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
            text = json_schema(series.annotations) or "" if encoding == JSON else ""
            schema = Schema(kind.name or kind.content_type, encoding, text, self._payloads.given(kind))
        elif isinstance(series.type, StructType):
            names = ", ".join(series.type.members)
            schema = Schema("struct", "bddf", f"{names}: members of other series, joined by their times.")
        else:
            schema = Schema("unknown", "bddf")
        layout, reading = partial(self._layout, number, series), partial(self._decoder, number, series)
        return ChannelInfo(topic, schema, layout, metadata_of(series), reading)

    def _body_layout(self, number: int, series: Series) -> Layout:
        kind = series.type
        if number in self._joins:
            return self._joins[number].layout
        if isinstance(kind, PodType):
            return layout_of(series, kind) or RAW
        if isinstance(kind, MessageType):
            if kind.content_type == PROTOBUF:
                return self._message_body(number, kind).layout
            if (body := self._json_body(number)) is not None:
                return body.layout
            is_text = kind.content_type.startswith("text/") or kind.content_type == JSON
            return TEXT if is_text else RAW
        return RAW

    @cached_property
    def signals(self) -> list[Signals]:
        """The schemas of signals that the file holds."""
        numbers = [
            i
            for i, one in enumerate(self.found.series)
            if isinstance(one.type, MessageType) and one.type.name == SCHEMA
        ]
        return distinct_sizes(Signals.parse(data) for i in numbers for data in self._payloads_of(i))

    @cache  # noqa: B019 - lives as long as the log, whose closures hold it anyway
    def _message_body(self, number: int, kind: MessageType) -> ProtobufDecoder | WireDecoder | SignalDecoder:
        body = self._payloads.body(self._topics[number], kind)
        return SignalDecoder(body, self.signals) if kind.name == TICK and self.signals else body

    @cache  # noqa: B019 - as above
    def _json_body(self, number: int) -> JsonDecoder | None:
        series = self.found.series[number]
        kind, schema = series.type, json_schema(series.annotations)
        if not isinstance(kind, MessageType) or kind.content_type != JSON or schema is None:
            return None
        return self._payloads.json(self._topics[number], schema)

    def _body(self, number: int, series: Series) -> PayloadDecoder | None:
        """What decodes payloads where no Layout can."""
        kind = series.type
        if isinstance(kind, MessageType) and kind.content_type == PROTOBUF:
            return self._message_body(number, kind)
        if isinstance(kind, PodType) and layout_of(series, kind) is not None:
            return PodDecoder(kind)
        return self._json_body(number)

    def _layout(self, number: int, series: Series) -> Layout:
        layout = self._body_layout(number, series)
        if not series.names or number in self._joins:
            return layout
        return with_numbers(layout, distinct_names(series.names, names_of(layout)))

    def _decoder(self, number: int, series: Series) -> PayloadDecoder | None:
        body = self._body(number, series)
        if not series.names or number in self._joins:
            return body
        layout = self._body_layout(number, series)
        names = distinct_names(series.names, names_of(layout))
        return NumberedDecoder(number, names, body or LayoutDecoder(layout))


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
    elif isinstance(kind, StructType):
        told["members"] = {name: f"{value:016x}" for name, value in kind.members.items()}
    if series.names:
        told["additional_indexes"] = list(series.names)
    if series.annotations:
        told["annotations"] = dict(series.annotations)
    if series.description:
        told["description"] = series.description
    return told
