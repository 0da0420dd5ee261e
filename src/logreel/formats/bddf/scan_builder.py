"""Build the Scan of a file: channels, index and metadata."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from logreel.dataclass import replace
from logreel.errors import UnsupportedError
from logreel.formats.bddf.index_reader import (
    BadIndex,
    FooterIndex,
    read_by_index,
    read_in_ranges,
    unused_index,
)
from logreel.formats.bddf.payload_decoders import (
    SCHEMA,
    TICK,
    AdditionalIndexDecoder,
    MessageDecoders,
    SignalDecoder,
    Signals,
    column_names,
    distinct_names,
    distinct_sizes,
    with_additional_indexes,
)
from logreel.formats.bddf.reader import SERIES_RULES, Found, Reader
from logreel.formats.bddf.records import (
    BEFORE,
    CHECKSUM_NONE,
    CHECKSUM_SHA1,
    JSON,
    MAGIC,
    PROTOBUF,
    MessageSeriesType,
    PodType,
    SeriesDeclaration,
    StructType,
    own_descriptors,
    schema_in_annotations,
)
from logreel.formats.bddf.value_series import RAW, PodDecoder, StructJoin, block_layout, describe, type_text
from logreel.formats.bddf.verify import compare_checksum, verify
from logreel.index.channel_index import SyntheticMessages
from logreel.index.message_index import MessageIndex
from logreel.io.source import Buffer, Chunks, Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.log import Log
from logreel.log.scan import ORIGINAL, ChannelInfo, PayloadDecoder, Scan, ScanPart, Schema, TextLine
from logreel.log.side_columns import LayoutDecoder
from logreel.log.times import seconds_text, utc_text
from logreel.schemas.jsonschema import JsonDecoder
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder
from logreel.schemas.protobuf.wire import BadWire, items

#: Syslog severity by the level of a TextMessage.
LEVELS = {1: 7, 2: 6, 3: 4, 4: 3}
#: Name and syslog severity by the level of an Event. Without a level, an event counts as low, but says no level.
#: Source: data_buffer.proto of the vendor's SDK.
EVENT_LEVELS = {
    1: ("low", 6),
    2: ("medium", 5),
    3: ("high", 4),
    4: ("mission critical", 2),
    5: ("system critical", 1),
}
_TEXT, _COMMENT, _EVENT = "bosdyn.api.TextMessage", "bosdyn.api.OperatorComment", "bosdyn.api.Event"


def is_text(series_type: MessageSeriesType) -> bool:
    """Return True if the messages of a series become text lines."""
    return series_type.content_type.startswith("text/") or series_type.name in (_TEXT, _COMMENT, _EVENT)


def text_line(series_type: MessageSeriesType, topic: str, time: int, data: bytes) -> TextLine | None:
    """Return a message of such a series as a text line, or None if it cannot be parsed."""
    if series_type.content_type.startswith("text/"):
        return TextLine(time, None, data.decode("utf-8", "replace"), topic)
    try:
        fields = {item.number: item for item in items(data)}
    except BadWire:
        return None

    def text(number: int) -> str:
        return fields[number].text if number in fields else ""

    if series_type.name == _COMMENT:
        return TextLine(time, None, text(1), "operator", "comment")
    if series_type.name == _TEXT:
        level = fields[4].integer if 4 in fields else 0
        return TextLine(time, LEVELS.get(level), text(1), text(3))
    name, severity = EVENT_LEVELS.get(fields[7].integer if 7 in fields else 0, ("", None))
    parts = [": ".join(part for part in (text(1), text(2)) if part), f"[{name}]" if name else ""]
    try:
        parts += [parameter(item.bytes) for item in items(data) if item.number == 8]
    except BadWire:
        return None
    return TextLine(time, severity, " ".join(part for part in parts if part), text(3), "event")


def parameter(data: bytes) -> str:
    """Return a ``bosdyn.api.Parameter`` as ``label=value units``; raises BadWire for malformed bytes.

    Source: parameter.proto of the vendor's SDK.
    """
    label = units = value = ""
    for item in items(data):
        match item.number:
            case 1:
                label = item.text
            case 2:
                units = item.text
            case 3:
                value = str(item.signed)
            case 4:
                value = f"{struct.unpack('<d', item.integer.to_bytes(8, 'little'))[0]:g}"
            case 5:
                value = utc_text(_nanoseconds(item.bytes))
            case 6:
                value = f"{seconds_text(_nanoseconds(item.bytes), 9)} s"
            case 7:
                value = json.dumps(item.text, ensure_ascii=False)
            case 8:
                value = "true" if item.integer else "false"
    return f"{label}={value}" + (f" {units}" if units else "")


def _nanoseconds(data: bytes) -> int:
    """Return a Timestamp or Duration as ns."""
    numbers = {item.number: item.signed for item in items(data)}
    return numbers.get(1, 0) * 10**9 + numbers.get(2, 0)


TEXT = Layout(Struct((Field("text", Rest(text=True)),)), "text")


def find(source: Source) -> Found:
    """Return the content of a file: by its index if that accounts for the whole file, else read from the front."""
    try:
        index = FooterIndex(source)
    except BadIndex as error:
        return _read_from_front(source, Reader(source), None if error.missing else str(error))
    if source.in_ranges:
        with suppress(BadIndex):
            if (content := read_in_ranges(source, index)) is not None:
                return content
        # The content decides what is wrong with the index.
        _ = source.data
    try:
        return read_by_index(source, index)
    except BadIndex as error:
        return _read_from_front(source, Reader(source, index.all_offsets()), str(error))


def _read_from_front(source: Source, reader: Reader, why: str | None) -> Found:
    content = reader.finish()
    # The index of concatenated files is that of the last one, with offsets from the beginning of that file.
    if why is not None and not any(p.code == "segment" for p in content.problems):
        content.problems.insert(0, unused_index(source, why))
    return content


def scan(source: Source) -> Scan:
    """Return the Scan of a file. Raises UnsupportedError for a major version greater than 1."""
    return ScanBuilder(source, find(source)).scan()


class BddfGrowing:
    """The Growing of one BDDF file."""

    def __init__(self) -> None:
        self._reader: Reader | None = None

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._reader is None:
            if source.size < len(MAGIC):
                raise UnsupportedError("the file ends inside its header", path=source.name)
            self._reader = Reader(source)
        if not self._reader.feed(source):
            return None
        grown = ScanBuilder(source, self._reader.found()).scan()
        grown.reread = lambda: scan(source)
        return grown


def share(logs: Sequence[Log], shifts: Sequence[int]) -> Sequence[Log]:
    """Return files of one log, which use the signal schemas of all."""
    files = [log.format_state for log in logs]
    for file in files:
        file.files = files
    return logs


class ScanBuilder:
    """Builds channels, index and metadata from what was found in a file."""

    def __init__(self, source: Source, content: Found) -> None:
        self.source, self.found = source, content
        #: The files of the log, if it is opened from several.
        self.files: Sequence[ScanBuilder] = [self]
        self._decoders = MessageDecoders(source, content.problems)
        if content.file.version[0] > 1:
            shown = ".".join(map(str, content.file.version))
            raise UnsupportedError(f"a BDDF file of version {shown}", path=source.name)

    def scan(self) -> Scan:
        """Return the Scan."""
        content = self.found
        infos = [
            self._info(number, topic, series)
            for number, (topic, series) in enumerate(zip(self._topics, content.series, strict=True))
        ]
        return Scan(
            version=".".join(map(str, content.file.version)),
            epoch="unix",
            start=None,
            end=None,
            bounds=content.times,
            verify=partial(verify, self.source, content),
            checksums=None
            if self.source.in_ranges
            else lambda rows: compare_checksum(self.source, content.problems),
            channels=infos,
            index=self.index,
            problems=content.problems,
            metadata=self._metadata,
            text=self._text,
            utc_offset=lambda: 0,
            format_state=self,
            part=self._part,
        )

    def _part(self, selected: ScanPart) -> Scan:
        """Return the Scan of a part; struct series are joined from the members there."""
        from logreel.index.part import PartIndex

        rows = {number: rows for number, rows in selected.index.rows.items() if number not in self._joins}
        stored = PartIndex(self._stored, rows)
        # A file of the part has no declarations of other series, so that structs do without these members: no hash is
        # negative.
        series = [
            declared if number in selected.shown else replace(declared, hash=-1 - number)
            for number, declared in enumerate(self.found.series)
        ]
        content = replace(
            self.found,
            series=series,
            table=stored.table,
            times=selected.span,
            problems=list(self.found.problems),
            ranged=None if self.found.ranged is None else stored,
        )
        return replace(ScanBuilder(self.source, content).scan(), shown=selected.shown)

    @cached_property
    def index(self) -> MessageIndex:
        """Index of all channels; messages of struct series are built when they are first used."""
        stored = self._stored
        rules = list(stored.rules)
        for number, join in self._joins.items():
            rules[number] = replace(SERIES_RULES, synthetic=partial(getattr, join, "count"))
        resolve = stored.resolve if stored.resolves_lazily else None
        return MessageIndex(stored.chunks, stored.table, rules, self._synthetic_messages, resolve)

    @cached_property
    def _stored(self) -> MessageIndex:
        """Index of the data blocks in the file."""
        if self.found.ranged is not None:
            return self.found.ranged
        return MessageIndex(Chunks(self.source), self.found.table, [SERIES_RULES] * len(self.found.series))

    @cached_property
    def _joins(self) -> dict[int, StructJoin]:
        series = self.found.series
        # Data blocks of a struct mean that its declaration is damaged: they are shown as bytes.
        return {
            i: StructJoin(declared, series, self._stored, self.found.problems)
            for i, declared in enumerate(series)
            if isinstance(declared.type, StructType) and not self._stored.count(i)
        }

    def _synthetic_messages(self) -> tuple[Buffer, dict[int, SyntheticMessages]]:
        data, messages = b"", {}
        for number, join in self._joins.items():
            more, messages[number] = join.messages(len(data))
            data += more
        return np.frombuffer(data, np.uint8), messages

    def _text(self) -> list[TextLine]:
        lines = []
        for number, (topic, series) in enumerate(zip(self._topics, self.found.series, strict=True)):
            if isinstance(series.type, MessageSeriesType) and is_text(series.type):
                rows = zip(self.index.times(number).tolist(), self._payloads_of(number), strict=True)
                lines += [text_line(series.type, topic, time, data) for time, data in rows]
        return sorted((line for line in lines if line is not None), key=lambda line: line.time)

    def _payloads_of(self, number: int) -> Iterator[bytes]:
        locations = self._stored.offsets(number), self._stored.sizes(number)
        for at, size in zip(*(p.tolist() for p in locations), strict=True):
            yield self.source.read(at, size)

    def _metadata(self) -> Mapping[str, Any]:
        file = self.found.file
        kinds = {CHECKSUM_NONE: "none", CHECKSUM_SHA1: "sha1"}
        metadata: dict[str, Any] = dict(file.annotations)
        metadata["indexed"] = self.found.indexed
        metadata["checksum"] = kinds.get(file.checksum, "unknown")
        if self.found.ending is not None and file.checksum == CHECKSUM_SHA1:
            metadata["sha1"] = self.found.ending.digest.hex()
        return metadata

    # -------------------------------------------------------------------------------------------- channels

    @cached_property
    def _topics(self) -> list[str]:
        """Topic of each series; series with the same name get ``[1]``, ``[2]`` …."""
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

    def _info(self, number: int, topic: str, series: SeriesDeclaration) -> ChannelInfo:
        if isinstance(series.type, PodType):
            schema = Schema(type_text(series.type), "bddf", describe(series, series.type))
        elif isinstance(series.type, MessageSeriesType):
            series_type = series.type
            encoding = "protobuf" if series_type.content_type == PROTOBUF else series_type.content_type
            text = schema_in_annotations(series.annotations) or "" if encoding == JSON else ""
            schema = Schema(
                series_type.name or series_type.content_type,
                encoding,
                text,
                self._decoders.descriptors(series_type, own_descriptors(series.annotations)),
            )
        elif isinstance(series.type, StructType):
            names = ", ".join(series.type.members)
            schema = Schema("struct", "bddf", f"{names}: members of other series, joined by their times.")
        else:
            schema = Schema("unknown", "bddf")
        layout, decoder = partial(self._layout, number, series), partial(self._decoder, number, series)
        return ChannelInfo(topic, schema, layout, series_metadata(series), decoder)

    def _payload_layout(self, number: int, series: SeriesDeclaration) -> Layout:
        series_type = series.type
        if number in self._joins:
            return self._joins[number].layout
        if isinstance(series_type, PodType):
            return block_layout(series, series_type) or RAW
        if isinstance(series_type, MessageSeriesType):
            if series_type.content_type == PROTOBUF:
                return self._protobuf_decoder(number, series_type).layout
            if (decoder := self._json_decoder(number)) is not None:
                return decoder.layout
            is_text = series_type.content_type.startswith("text/") or series_type.content_type == JSON
            return TEXT if is_text else RAW
        return RAW

    @cached_property
    def signals(self) -> list[Signals]:
        """Signal schemas in the file, and in other files of the same log."""
        return distinct_sizes(signal for state in self.files for signal in state.own_signals())

    def own_signals(self) -> Iterator[Signals | None]:
        """Yield the signal schemas in the file; None for those that cannot be read."""
        numbers = [
            i
            for i, declared in enumerate(self.found.series)
            if isinstance(declared.type, MessageSeriesType) and declared.type.name == SCHEMA
        ]
        yield from (Signals.parse(data) for i in numbers for data in self._payloads_of(i))

    @cache  # noqa: B019 - lives as long as the log, whose closures hold it anyway
    def _protobuf_decoder(
        self, number: int, series_type: MessageSeriesType
    ) -> ProtobufDecoder | WireDecoder | SignalDecoder:
        own = own_descriptors(self.found.series[number].annotations)
        decoder = self._decoders.protobuf(self._topics[number], series_type, own)
        return SignalDecoder(decoder, self.signals) if series_type.name == TICK and self.signals else decoder

    @cache  # noqa: B019 - as above
    def _json_decoder(self, number: int) -> JsonDecoder | None:
        series = self.found.series[number]
        series_type, schema = series.type, schema_in_annotations(series.annotations)
        if (
            not isinstance(series_type, MessageSeriesType)
            or series_type.content_type != JSON
            or schema is None
        ):
            return None
        return self._decoders.json(self._topics[number], schema)

    def _payload_decoder(self, number: int, series: SeriesDeclaration) -> PayloadDecoder | None:
        """Return the decoder of payloads that no Layout describes, else None."""
        series_type = series.type
        if isinstance(series_type, MessageSeriesType) and series_type.content_type == PROTOBUF:
            return self._protobuf_decoder(number, series_type)
        if isinstance(series_type, PodType) and block_layout(series, series_type) is not None:
            return PodDecoder(series_type)
        return self._json_decoder(number)

    def _layout(self, number: int, series: SeriesDeclaration) -> Layout:
        layout = self._payload_layout(number, series)
        if not series.names or number in self._joins:
            return layout
        return with_additional_indexes(layout, distinct_names(series.names, column_names(layout)))

    def _decoder(self, number: int, series: SeriesDeclaration) -> PayloadDecoder | None:
        decoder = self._payload_decoder(number, series)
        if not series.names or number in self._joins:
            return decoder
        layout = self._payload_layout(number, series)
        names = distinct_names(series.names, column_names(layout))
        return AdditionalIndexDecoder(number, names, decoder or LayoutDecoder(layout))


def topic_of(series: SeriesDeclaration) -> str:
    """Return the topic of a series: its ``bosdyn:channel``, or the values of its spec in the order of their keys."""
    spec = series.identifier.spec
    name = spec.get("bosdyn:channel") or "/".join(spec[key] for key in sorted(spec) if spec[key])
    name = name or series.identifier.type or f"series {series.index}"
    # Names that begin with a tilde are reserved.
    return f"_{name}" if name.startswith("~") else name


def series_metadata(series: SeriesDeclaration) -> Mapping[str, Any]:
    """Return the metadata of a channel: the content of the declaration of its series."""
    metadata: dict[str, Any] = {
        "series_type": series.identifier.type,
        "spec": dict(series.identifier.spec),
        "hash": f"{series.hash:016x}",
    }
    series_type = series.type
    if isinstance(series_type, MessageSeriesType):
        metadata |= {
            "content_type": series_type.content_type,
            "type_name": series_type.name,
            "is_metadata": series_type.is_metadata,
        }
    elif isinstance(series_type, PodType):
        metadata |= {"type_name": series_type.type, "dimension": list(series_type.dimension)}
    elif isinstance(series_type, StructType):
        metadata["members"] = {name: f"{value:016x}" for name, value in series_type.members.items()}
    if series.names:
        metadata["additional_indexes"] = list(series.names)
    if series.annotations:
        metadata["annotations"] = dict(series.annotations)
        if BEFORE in series.annotations:
            metadata[ORIGINAL] = series.annotations[BEFORE]
    if series.description:
        metadata["description"] = series.description
    return metadata
