"""What schemas and metadata of an MCAP say: Layouts and decoders of its messages, and the clock of a converted log.

The clock is in the metadata record ``logreel``:

    epoch       meaning of time 0 of the converted log: ``unix``, ``boot`` or ``start``
    utc_offset  ns to add to a time of that log to get UTC since 1970, as a decimal number; absent if unknown
    clock       ``log``: times of the MCAP are those of that log; ``utc``: the offset was added to all of them
    span        JSON: ``start`` and ``end`` of that log, as times of the MCAP, and its number of ``messages``

Until 0.1 the key ``clock`` contained JSON with the offset and the span.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from logreel.dataclass import dataclass, replace
from logreel.errors import DefinitionError, LogError, Problem
from logreel.formats.mcap.reader import OWN, FoundFile
from logreel.formats.mcap.records import ChannelRecord
from logreel.index.gather import payload_ranges
from logreel.index.message_index import MessageIndex
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.scan import ChannelInfo, Noted, PayloadDecoder, Schema
from logreel.registry.registry import layout_by_format
from logreel.schemas.languages import Hints, language_of

#: Encoding of messages of ROS 2.
CDR = "cdr"
#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Decoders:
    """Layouts and PayloadDecoders of one file's channels; each unusable definition is added to *problems* once."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source = source
        # Without a cycle through this object, so that a Source that is replaced is closed at once.
        self._note = partial(_note, Noted(), problems)
        self._hints = Hints(tuple(source.definitions), note=self._note)
        self._decoded: dict[int, tuple[Layout, PayloadDecoder | None]] = {}
        self._messages: tuple[MessageIndex, Mapping[int, int]] | None = None

    def look_at(self, index: MessageIndex, number: Mapping[int, int]) -> None:
        """Take the encoding of channels in CDR from their messages; *number*: of each channel by its id."""
        self._messages = index, number

    def given(self, topic: str, channel: ChannelRecord, schema: Schema, md5: str) -> tuple[Schema, str]:
        """Return schema and md5 of the channel named *topic*: those of the file, completed by what the user gave.

        Raises UsageError if the given type is no type name of the language.
        """
        type_name = self._source.types.get(topic)
        if type_name is None and not self._source.definitions:
            return schema, md5
        language = language_of(schema, channel.encoding, schemaless=not schema.encoding)
        if language is None:
            return schema, md5
        return language.given(schema, type_name, replace(self._hints, checksum=md5))

    def find(self, channel: ChannelRecord, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        """Return Layout and PayloadDecoder of a channel's messages; None: the Layout describes their bytes."""
        if channel.id not in self._decoded:
            try:
                self._decoded[channel.id] = self._make(channel, schema)
            except DefinitionError as error:
                self._note(f"{channel.topic}: {error.text}; its messages are raw bytes")
                self._decoded[channel.id] = RAW, None
        return self._decoded[channel.id]

    def _make(self, channel: ChannelRecord, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        language = language_of(schema, channel.encoding, schemaless=True)
        if language is not None:
            hints = replace(self._hints, checksum=channel.metadata.get("md5sum", "*"))
            if language.encoding == CDR:
                hints = self._hints_of_cdr(channel, hints)
            layout = language.layout(schema, hints)
            if layout is not None:
                return layout, None
            decoder = language.decoder(schema, hints)
            if decoder is not None:
                return decoder.layout, decoder
        return layout_by_format(schema, channel.topic) or RAW, None

    def _first(self, channel: ChannelRecord, rows: slice, most: int) -> list[bytes]:
        """Return first messages of a channel; *most*: bytes of each."""
        if self._messages is None or channel.id not in self._messages[1]:
            return []
        taken = list[bytes]()
        with suppress(LogError):
            for stored in payload_ranges(self._messages[0], self._messages[1][channel.id], rows):
                for at, size in zip(stored.offset.tolist(), stored.size.tolist(), strict=True):
                    taken.append(bytes(stored.data[at : at + min(most, size)]))
        return taken

    def _hints_of_cdr(self, channel: ChannelRecord, hints: Hints) -> Hints:
        """Return *hints* with what the first messages of a channel in CDR say."""
        from logreel.schemas.ros2msg import LITTLE, LOOKED_AT, SAMPLE_BYTES, encapsulation_of

        begins = self._first(channel, slice(0, 1), 2)
        if begins not in ([], [LITTLE]):
            # Further messages may lie in further chunks: they are looked at where the first is unusual.
            begins = self._first(channel, slice(0, LOOKED_AT), 2)
        samples = partial(self._first, channel, slice(0, LOOKED_AT), SAMPLE_BYTES)
        return replace(hints, encapsulation=encapsulation_of(begins), samples=samples)


def _note(noted: Noted, problems: list[Problem], text: str) -> None:
    noted.add(problems, Problem("definition", 0, 0, False, text))


ENCODING = "message_encoding"
#: Metadata of a channel whose converted log had no definition of its messages: True if a standard one was added …
ADDED = "definition_added"
#: … or the encoding of the missing schema.
UNDEFINED = "undefined_in"
NO_SCHEMA = Schema("", "")


def channel_infos(
    file: FoundFile, decoders: Decoders, ids: Iterable[int] | None = None
) -> tuple[dict[int, int], list[ChannelInfo]]:
    """Return the channel number of each channel id, and the ChannelInfos in the order of *ids*, or by id for None.

    The second, third … channel of a topic is named ``topic[1]``, ``topic[2]`` …
    """
    channels = [file.channels[number] for number in (sorted(file.channels) if ids is None else ids)]
    names, made = unique(channel.topic for channel in channels), []
    for name, channel in zip(names, channels, strict=True):
        schema = file.schemas.get(channel.schema, NO_SCHEMA)
        if channel.schema and channel.schema not in file.schemas:
            file.note("schema", 0, 0, False, f"{channel.topic}: there is no schema {channel.schema}")
        metadata = channel_metadata(channel) | ({"topic": channel.topic} if name != channel.topic else {})
        if metadata.get(ADDED) is True:
            metadata.pop(ADDED)
            schema = Schema(schema.name, schema.encoding)
        if isinstance(metadata.get(UNDEFINED), str):
            schema = Schema(schema.name, metadata.pop(UNDEFINED))
        stated = str(metadata.get("md5sum", "*"))
        schema, md5 = decoders.given(name, channel, schema, stated)
        metadata |= {"md5sum": md5} if md5 != stated else {}
        find = partial(decoders.find, channel, schema)
        made.append(
            ChannelInfo(name, schema, lambda find=find: find()[0], metadata, lambda find=find: find()[1])  # type: ignore[misc]
        )
    return {channel.id: number for number, channel in enumerate(channels)}, made


def unique(names: Iterable[str]) -> list[str]:
    """Return the names with ``[1]``, ``[2]`` … appended to repeated ones."""
    wanted = list(names)
    taken, distinct = set(wanted), list[str]()
    used = set[str]()
    # The last number of each name: counting from 0 again is quadratic where all names are the same.
    last = dict[str, int]()
    for name in wanted:
        n = last.get(name, 0)
        distinct_name = f"{name}[{n}]" if n else name
        while distinct_name in used or (n and distinct_name in taken):
            n += 1
            distinct_name = f"{name}[{n}]"
        last[name] = n
        used.add(distinct_name)
        distinct.append(distinct_name)
    return distinct


def channel_metadata(channel: ChannelRecord) -> dict[str, Any]:
    """Return the metadata of a channel: text, values other than text that logreel wrote, and the message encoding."""
    text: dict[str, Any] = {name: value for name, value in channel.metadata.items() if name != OWN}
    return text | from_json(channel.metadata.get(OWN, "")) | {ENCODING: channel.encoding}


def metadata_to_text(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata as a channel record contains it, the inverse of ``channel_metadata``."""
    text = {name: value for name, value in metadata.items() if isinstance(value, str) and name != ENCODING}
    other = {name: value for name, value in metadata.items() if not isinstance(value, str)}
    return text | ({OWN: to_json(other)} if other else {})


def to_json(values: Any) -> str:
    """Return plain values as JSON; bytes become ``{"$base64": …}``."""
    return json.dumps(values, default=_default, ensure_ascii=False, separators=(",", ":"))


def _default(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    return list(value)


def from_json(text: str) -> dict[str, Any]:
    """Return the values of JSON from ``to_json``; an empty dict if the text is no JSON object."""
    if not text:
        return {}
    try:
        value = json.loads(text, object_hook=_hook)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _hook(values: dict[str, Any]) -> Any:
    if len(values) != 1 or "$base64" not in values:
        return values
    return base64.b64decode(str(values["$base64"]))


#: Times of a log that ends earlier (1973 if they counted from 1970) are relative to its start, or simulated.
RELATIVE_NS = 10**8 * 10**9
EPOCHS = ("unix", "boot", "start")
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of an MCAP's log times.

    epoch       ``unix``, ``boot`` or ``start``; None: derived from the times
    utc_offset  ns to add to a time to get UTC since 1970; None: unknown
    span        start, end and number of messages of the converted log; valid while the file has all of them
    """

    epoch: str | None = None
    utc_offset: int | None = None
    span: tuple[int | None, int | None, int] | None = None

    @classmethod
    def read(cls, record: Mapping[str, str]) -> Clock:
        """Return the clock of the metadata record; unreadable entries are ignored."""
        former = from_json(record.get("clock", ""))
        span = _span(former or from_json(record.get("span", "")))
        if record.get("clock") == "utc":
            return cls("unix", 0, span)
        epoch = record.get("epoch")
        offset = _int64(former["utc_offset"] if "utc_offset" in former else record.get("utc_offset"))
        return cls(epoch if epoch in EPOCHS else None, offset, span)

    def epoch_until(self, end: int | None) -> str:
        """Return the epoch of a log whose last message is at *end* ns."""
        return self.epoch or ("start" if end is not None and end < RELATIVE_NS else "unix")

    def offset_in(self, epoch: str) -> int | None:
        """Return the UTC offset in ns, None if unknown; 0 for the epoch ``unix`` unless the record states another."""
        return 0 if self.utc_offset is None and epoch == "unix" else self.utc_offset


def source_facts(record: Mapping[str, str]) -> dict[str, str]:
    """Return format, version, epoch, UTC offset (as text) and clock of the converted log, if *record* has them."""
    former = from_json(record.get("clock", ""))
    names = ("format", "version", "epoch", "utc_offset", "clock")
    facts = {name: record[name] for name in names if name in record}
    if former:
        facts["clock"] = "log"
        offset = _int64(former.get("utc_offset"))
        facts |= {} if offset is None else {"utc_offset": str(offset)}
    return facts


def shifted_to_utc(record: Mapping[str, str], shift: int) -> dict[str, str]:
    """Return the record of a file on the log's clock, after *shift*, the UTC offset in ns, was added to all times."""
    span = Clock.read(record).span or (None, None, -1)
    moved = tuple(None if time is None else time + shift for time in span[:2])
    epoch = record.get("epoch", "unix")
    shifted = dict(record) | clock_record(epoch, shift, True, (*moved, span[2]))  # type: ignore[arg-type]
    parameters = from_json(record.get("parameters", ""))
    for parameter in parameters.get("parameters", []):
        if isinstance(parameter, dict) and isinstance(parameter.get("changes"), list):
            parameter["changes"] = [
                [c[0] + shift, *c[1:]] if _is_change(c) else c for c in parameter["changes"]
            ]
    return shifted | ({"parameters": to_json(parameters)} if parameters else {})


def _is_change(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)


def clock_record(
    epoch: str, utc_offset: int | None, utc: bool, span: tuple[int | None, int | None, int]
) -> dict[str, str]:
    """Return the entries of the metadata record.

    utc   True: *utc_offset* was added to all times
    span  start and end of the log in ns, as times of the MCAP, and its number of messages
    """
    record = {"epoch": epoch, "clock": "utc" if utc else "log"}
    record |= {} if utc_offset is None else {"utc_offset": str(utc_offset)}
    return record | span_entry(span)


def span_entry(span: tuple[int | None, int | None, int]) -> dict[str, str]:
    """Return the entry with start and end of the log in ns, as times of the MCAP, and its number of messages."""
    return {"span": to_json(dict(zip(("start", "end", "messages"), span, strict=True)))}


def _int64(value: Any) -> int | None:
    """Return an int64 from JSON or text, None for anything else."""
    try:
        number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        return None
    return number if number is not None and -_INT64 <= number < _INT64 else None


def _span(entries: Mapping[str, Any]) -> tuple[int | None, int | None, int] | None:
    start, end, messages = (_int64(entries.get(name)) for name in ("start", "end", "messages"))
    return None if messages is None else (start, end, messages)
